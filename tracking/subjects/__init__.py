"""Subjects: template, quads, prior, skeleton and markers of one animal or person, and their files.

Imports `quads` and `priors`.
"""
