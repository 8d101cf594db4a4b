"""How good a rig is, on what it was not fitted to, and the page that says so.

Imports everything above it; nothing but the application imports it.
"""
