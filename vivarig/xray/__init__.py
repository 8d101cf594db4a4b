"""The steps of `vivarig xray`, and springs that X-ray beads pull the skeleton with.

Imports `console`.
"""
