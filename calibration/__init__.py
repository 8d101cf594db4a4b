"""Cameras and how they are calibrated; the habits that every package shares lie in `foundation`.

Imports no other package of ours.
"""
