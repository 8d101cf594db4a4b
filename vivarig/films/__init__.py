"""Films of a recording with what was found drawn over it.

Imports `results` and `report` (its pictures).
"""
