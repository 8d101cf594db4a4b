"""The other stages: silhouettes and hull, done in parts and joined at the end, skeleton and report."""
