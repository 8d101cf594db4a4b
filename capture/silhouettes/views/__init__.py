"""What the views of one frame say about each other's silhouettes.

Imports `hull`.
"""
