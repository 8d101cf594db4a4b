"""``edits.toml`` of a recording: what parts of the body shall do where the capture is known to be wrong.

[[edit]]
point = "left_wrist"         # joint or site of the body
frames = [120, 140]          # first and last
place = [12.0, -40.0, 310.0] # mm; a displacement in the modes relative and still
mode = "absolute"            # or "relative", "still"
priority = 2                 # feet that stand have 10
ramp = 10                    # frames in which it sets in and ends
"""

from __future__ import annotations

from pathlib import Path

from calibration.foundation.errors import InputError
from calibration.foundation.tables import Table, read_toml
from skeleton.inverse_kinematics.deformation import Constraint, limb_of
from skeleton.inverse_kinematics.shape_constraints import MODES, Hold, shape_goals
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["edit_constraints", "load_edits"]

_KEYS = ("point", "frames", "place", "mode", "priority", "ramp")


def load_edits(path: Path) -> dict[str, list[Hold]]:
    """Return the holds of each point that a file names; none if there is no such file."""
    if not path.is_file():
        return {}
    root = read_toml(path)
    root.allow(("edit",))
    rows = root.require("edit")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: edits are written as [[edit]] tables")
    out: dict[str, list[Hold]] = {}
    for number, row in enumerate(rows, 1):
        table = Table(path, f"edit {number}", row)
        table.allow(_KEYS)
        first, last = (int(value) for value in table.array("frames", (2,)))
        x, y, z = (float(value) for value in table.array("place", (3,)))
        mode = table.text("mode", "absolute", choices=MODES)
        try:
            hold = Hold(first, last, (x, y, z), mode, table.whole("priority", 2), table.whole("ramp", 10, least=0))
        except InputError as error:
            raise InputError(f"{path}: edit {number}: {error}") from None
        out.setdefault(table.text("point"), []).append(hold)
    return out


def edit_constraints(path: Path, skeleton: Skeleton, pose: Pose) -> list[Constraint]:
    """Return the constraints of a recording's edits: each moves the joints of its own limb and nothing else."""
    out = []
    for point, holds in load_edits(path).items():
        try:
            track = pose.points(*skeleton.points([point]))[:, 0]
            goals, priority = shape_goals(track, holds)
        except InputError as error:
            raise InputError(f"{path}: edit of '{point}': {error}") from None
        out.append(Constraint(f"edit {point}", point, goals, priority, joints=limb_of(skeleton, point)))
    return out
