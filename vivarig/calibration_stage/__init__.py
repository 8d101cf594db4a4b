"""Calibrating as the application does it: board videos and marks of a session, turned into what `calibration` takes.

Imports `console`.
"""
