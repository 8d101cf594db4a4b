"""Skeletons of other programs: OpenSim and MuJoCo.

Imports `tree` and `bodies`.
"""
