"""Images by light: pixels, shading, shadows, sensor noise, boards.

Imports `scene`.
"""
