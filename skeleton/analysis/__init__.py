"""What is read off a motion: joint angles, contacts, gait, and scores against truth, the HumanEva way.

Imports `tree`.
"""
