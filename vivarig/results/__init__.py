"""What the results of a recording hold, as arrays with names.

Imports nothing of `vivarig`.
"""
