"""The stages that are done in parts: silhouettes, hull and track, each cut by frames and joined at the end."""
