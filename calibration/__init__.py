"""Cameras, rigs and everything that measures with them: the ground floor, importing no sibling package."""
