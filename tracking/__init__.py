"""The template surface: oriented quads, cage, Green coordinates, pose prior, tracker, and X-ray beads."""
