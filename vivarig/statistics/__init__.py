"""Many recordings in one table, and what is drawn from it: curves over the cycle, groups beside each other.

Imports `report`.
"""
