"""Trees of joints: coordinates, forward kinematics, Jacobians, limits, and articulations of elementary motions.

Imports `calibration` alone.
"""
