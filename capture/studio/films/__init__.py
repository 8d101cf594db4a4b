"""Whole recordings and calibration sessions: acting, filming, writing.

Imports all of the studio and `recordings`.
"""
