"""Articulated bodies, their skinned actors, motion files and inverse kinematics."""
