"""Results in the formats of other programs.

Imports `results`.
"""
