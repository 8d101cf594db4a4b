"""Habits shared by all: errors, atomic files, result files, arrays, tables, compiled functions and their cache.

Imports nothing of ours.
"""
