"""The terms of the energy: silhouettes, surfaces, texture, rigidity, neighbours, prior.

Imports `quads`, `priors` and `observations`.
"""
