"""What stands before the studio's cameras: surfaces, texture, stage, and the truth that is kept.

Imports `calibration` and `skeleton`.
"""
