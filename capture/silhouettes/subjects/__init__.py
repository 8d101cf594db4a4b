"""Several subjects in one recording: told apart in a frame, followed over time, written as recordings of their own.

Imports `recordings`, `backgrounds` and `hull`.
"""
