"""``joints.toml``: the joints of a body, their parents and their places in its mesh::

    [joints]
    pelvis   = { at = [0.0, 0.0, 1.21] }                        # the root has no parent
    spine    = { at = [0.35, 0.0, 1.25], parent = "pelvis" }
    left_hip = { at = [-0.1, 0.12, 1.05], parent = "pelvis", range_deg = 40 }

Places are in the units and axes of the mesh. A joint without children is an end of the body (nose, paw, tip of the
tail). ``range_deg`` is how far a joint bends from the mesh's pose; left out, a default is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import write_text
from calibration.foundation.names import checked_label
from calibration.foundation.tables import Table, read_toml

__all__ = ["BodyPlan", "load_joints", "save_joints"]

MOST_JOINTS = 80
"""More are no plan of a body: each costs the tracker six numbers."""


@dataclass(frozen=True, eq=False)
class BodyPlan:
    """Joints of a body, parents before children.

    Attributes:
        names: J names.
        parents: (J,) index of each joint's parent, -1 for the root, which is the first.
        places: (J, 3) in the mesh, mm.
        ranges: (J,) how far each bends, rad; NaN where nothing was said.
    """

    names: tuple[str, ...]
    parents: Ints
    places: Floats
    ranges: Floats

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Per joint its children."""
        return tuple(tuple(map(int, np.flatnonzero(self.parents == joint))) for joint in range(len(self)))

    @cached_property
    def bones(self) -> Ints:
        """(J - 1, 2) parent and child of each bone; bone k ends at joint k + 1."""
        return np.stack([self.parents[1:], np.arange(1, len(self))], axis=1)

    @cached_property
    def degree(self) -> Ints:
        """(J,) how many bones meet at each joint."""
        return np.bincount(self.bones.ravel(), minlength=len(self))

    def moved(self, places: Floats) -> BodyPlan:
        """Return the same joints at other places (J, 3), mm."""
        return replace(self, places=places)


@guarded("the joints of a body")
def load_joints(path: Path | str) -> BodyPlan:
    """Read the joints of a body, places as they stand in the file.

    Raises:
        InputError: a parent that is not there, none or several roots, a cycle, or too few joints.
    """
    table = read_toml(path)
    table.allow(["joints"])
    joints = table.table("joints")
    names = [checked_label(str(name), f"{joints.path}: a joint") for name in joints.content]
    if not 3 <= len(names) <= MOST_JOINTS:
        raise InputError(f"{joints.path}: [joints] wants 3 to {MOST_JOINTS} joints, got {len(names)}")
    rows = [_row(joints, name, names) for name in names]
    order = _parents_first(str(joints.path), names, [parent for parent, _, _ in rows])
    place = {index: k for k, index in enumerate(order)}
    return BodyPlan(
        tuple(names[index] for index in order),
        np.array([-1 if rows[i][0] is None else place[names.index(str(rows[i][0]))] for i in order], np.int64),
        np.array([rows[index][1] for index in order]),
        np.array([rows[index][2] for index in order]),
    )


def _row(joints: Table, name: str, names: Sequence[str]) -> tuple[str | None, Floats, float]:
    table = joints.table(name)
    table.allow(["at", "parent", "range_deg"])
    parent = table.text("parent") if "parent" in table else None
    if parent is not None and parent not in names:
        raise InputError(f"{table.where('parent')}: there is no joint '{parent}'; {nearest(parent, names)}")
    degrees = table.number("range_deg", above=0) if "range_deg" in table else float("nan")
    if degrees > 180:
        raise InputError(f"{table.where('range_deg')} must be a number up to 180, got {degrees:g}")
    return parent, table.array("at", (3,)), float(np.radians(degrees))


def _parents_first(where: str, names: Sequence[str], parents: Sequence[str | None]) -> list[int]:
    """Indices of the joints, depth first, each branch to its end, in the file's order otherwise."""
    roots = [index for index, parent in enumerate(parents) if parent is None]
    if len(roots) > 1:
        raise InputError(
            f"{where}: {len(roots)} joints have no parent ({', '.join(names[root] for root in roots[:4])}); one body "
            "has one root"
        )
    order: list[int] = []
    waiting = roots.copy()
    while waiting:
        index = waiting.pop()
        order.append(index)
        waiting += [child for child in reversed(range(len(names))) if parents[child] == names[index]]
    left = [names[index] for index in range(len(names)) if index not in order]
    if left:
        raise InputError(
            f"{where}: the parents of {', '.join(left[:6])} run in a circle; follow them from each joint to the root, "
            "which has no parent"
        )
    return order


def save_joints(plan: BodyPlan, path: Path | str, *, comment: str = "", digits: int = 4) -> None:
    """Write joints, one line each, places as they are in ``plan``."""
    lines = [f"# {line}" for line in comment.splitlines()] + ["[joints]"]
    width = max(len(_key(name)) for name in plan.names)
    for index, name in enumerate(plan.names):
        at = ", ".join(f"{value:.{digits}f}" for value in plan.places[index])
        words = [f"at = [{at}]"]
        if plan.parents[index] >= 0:
            words.append(f'parent = "{plan.names[plan.parents[index]]}"')
        if np.isfinite(plan.ranges[index]):
            words.append(f"range_deg = {np.degrees(plan.ranges[index]):.0f}")
        lines.append(f"{_key(name):<{width}} = {{ {', '.join(words)} }}")
    write_text(path, "\n".join(lines) + "\n")


def _key(name: str) -> str:
    plain = name.isascii() and all(letter.isalnum() or letter in "_-" for letter in name)
    return name if plain else '"' + name.replace('"', '\\"') + '"'
