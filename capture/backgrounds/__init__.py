"""What a camera sees without the subject, in several ways of learning it.

Imports `recordings`.
"""
