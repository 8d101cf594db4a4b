"""What cameras film: recordings, backgrounds, silhouettes, hulls, and the studio that films what is known.

Imports `calibration` and `skeleton`.
"""
