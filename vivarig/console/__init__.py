"""What the command line shows and takes: numbers, progress, reports.

Imports nothing of `vivarig`.
"""
