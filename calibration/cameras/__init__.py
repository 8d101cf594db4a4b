"""Camera models, projection, rigs, rings of cameras, and triangulation.

Imports `foundation` and `geometry`.
"""
