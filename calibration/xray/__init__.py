"""X-ray: spots and grids in images, undistortion, the calibration cube and its bundle adjustment.

Imports `foundation`, `geometry` and `cameras`.
"""
