"""Tracking through time: the tracker, how far it is to be trusted, the file of the track and its parts.

Imports `fitting` and what is above it.
"""
