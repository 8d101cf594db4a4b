"""The sections of a report in groups: each group can be made by a worker of its own."""

from __future__ import annotations

__all__ = ["GROUPS", "OUTLINES", "needed"]

OUTLINES = "outlines"
"""The group that shows silhouettes and hulls alone."""
#: The sections of each group, which are begun in the order of their names: those that show the same images not at once.
GROUPS: dict[str, tuple[str, ...]] = {
    OUTLINES: ("silhouettes",),
    "surfaces": ("surface", "tracking"),
    "plots": ("truth", "quality", "angles", "modes", "gait", "cameras"),
    "strip": ("head", "explorer"),
}


def needed(group: str, stages: tuple[str, ...]) -> tuple[str, ...]:
    """Return which of the stages that a report shows are to be done before a group of its sections can be made."""
    return ("silhouettes", "hull") if group == OUTLINES else stages
