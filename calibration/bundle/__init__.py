"""Bundle adjustment: parameters, equations, elimination of the board poses, steps, and the adjustment itself.

Imports `foundation`, `geometry` and `cameras`.
"""
