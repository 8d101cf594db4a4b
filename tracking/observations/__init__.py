"""What the images show, prepared for fitting: outlines, features followed over time, surfaces.

Imports nothing of `tracking`.
"""
