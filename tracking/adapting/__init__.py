"""Finding the subject's size and shape, and making a subject of a scan.

Imports everything above it.
"""
