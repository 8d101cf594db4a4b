"""Subjects from any closed mesh and a list of joints: quads, cage, prior, markers and skeleton without a built-in body.

Imports `quads`, `priors` and `subjects`.
"""
