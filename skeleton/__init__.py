"""Articulated bodies: trees of joints, actors with skin, motions, inverse kinematics and what is read off a motion.

Imports `calibration`.
"""
