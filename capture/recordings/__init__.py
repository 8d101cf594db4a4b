"""Recording folders, their videos and image stacks, stored masks, and HumanEva's layout.

Imports `calibration`.
"""
