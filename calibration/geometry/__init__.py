"""Rotations, rigid motions and small matrices.

Imports `foundation`.
"""
