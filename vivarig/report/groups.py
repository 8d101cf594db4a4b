"""The sections of a report in groups: each group can be made by a worker of its own."""

from __future__ import annotations

__all__ = ["GROUPS"]

#: The sections of each group, of about equal cost: images are decoded once for the sections of one group.
GROUPS: dict[str, tuple[str, ...]] = {
    "images": ("silhouettes", "surface", "tracking"),
    "plots": ("truth", "quality", "angles", "modes", "gait", "cameras"),
    "strip": ("head", "explorer"),
}
