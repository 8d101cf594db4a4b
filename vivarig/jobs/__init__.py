"""A recording being worked on: how it is cut into parts, where they lie, and by what content they are known as done.

Imports `console`.
"""
