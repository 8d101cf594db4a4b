"""The sections of a report in groups: each group can be made by a worker of its own."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GROUPS", "Group"]


@dataclass(frozen=True)
class Group:
    """Sections that are made together, and whether they show the skeleton; those that do wait for it."""

    sections: tuple[str, ...]
    skeleton: bool = True


#: Of about equal cost: images are decoded once for the sections of one group.
GROUPS: dict[str, Group] = {
    "images": Group(("silhouettes", "surface"), skeleton=False),
    "plots": Group(("truth", "quality", "angles", "modes", "gait", "cameras")),
    "strip": Group(("head", "explorer")),
    "track": Group(("tracking",)),
}
