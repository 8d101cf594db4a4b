"""Oriented quads, the cage they carry, Green coordinates, and how both are placed in a body.

Imports nothing of `tracking`.
"""
