"""Scores of results against truth: joints, beads, HumanEva's submission files.

Imports `results` and `xray`.
"""
