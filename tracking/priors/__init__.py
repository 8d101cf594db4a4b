"""Pose priors: linear and Gaussian-process models, their training poses, files and the built-in ones.

Imports `quads`.
"""
