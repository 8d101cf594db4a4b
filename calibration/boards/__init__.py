"""Calibration boards from the printed sheet to the list of what each camera saw of it.

Imports `foundation`.
"""
