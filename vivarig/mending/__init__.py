"""Edits made by hand, laid over what the stages made: what they made stays in ``results/unedited``."""
