"""Fitting one frame, or all of them at once: the solver, its start, and the virtual markers read off a fit.

Imports `terms` and what is above it.
"""
