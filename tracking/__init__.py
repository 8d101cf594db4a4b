"""From silhouettes to a tracked surface, and from X-ray images to tracked beads.

Imports `calibration`, `skeleton` and `capture`.
"""
