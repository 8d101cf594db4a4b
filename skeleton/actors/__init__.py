"""Skinned actors for the studio and for templates: flesh, mesh, weights, soft tissue and bones.

Imports `tree` and `bodies`.
"""
