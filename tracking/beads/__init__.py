"""X-ray beads: found, followed, matched between two views, and put together in space.

Imports nothing of `tracking`.
"""
