"""Skeletons from markers: springs, windows of frames, scaling, prioritised tasks, functional joint centres, and the
file of the result.

Imports `tree` and `bodies`.
"""
