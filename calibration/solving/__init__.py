"""From sightings to a rig: planar poses, lenses, the graph of poses, the solver, wands, the world's axes.

Imports everything above it: `foundation`, `geometry`, `cameras`, `bundle` and `boards`.
"""
