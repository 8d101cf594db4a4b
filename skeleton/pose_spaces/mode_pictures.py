"""A picture of a pose space: its first modes as stick figures, two standard deviations either way."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.files import atomic_path
from skeleton.pose_spaces.principal_geodesics import PoseSpace
from skeleton.pose_spaces.rotation_tree import place_rotations, tree_of_skeleton
from skeleton.tree.joint_tree import Skeleton

__all__ = ["draw_modes"]


def draw_modes(space: PoseSpace, body: Skeleton, path: Path, *, modes: int = 6) -> None:
    """Draw the first modes from the side, with the share of the variance that each holds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    space.check_joints(body.joint_names, f"body '{body.name}'")
    tree = tree_of_skeleton(body)
    shown = min(modes, space.modes)
    figure = Figure(figsize=(2.2 * shown, 3.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(1, shown, sharex=True, sharey=True))
    for mode, plot in enumerate(axes):
        for amount, colour in ((-2.0, "tab:blue"), (0.0, "0.7"), (2.0, "tab:red")):
            x = np.zeros((1, space.modes))
            x[0, mode] = amount * space.deviations[mode]
            places = place_rotations(tree, space.rotations(x), np.zeros((1, 3))).positions[0]
            for joint, parent in enumerate(tree.parents):
                if parent >= 0:
                    ends = places[[parent, joint]]
                    plot.plot(ends[:, 0] - 0.35 * ends[:, 1], ends[:, 2] - 0.15 * ends[:, 1], color=colour, lw=1.2)
        plot.set_title(f"mode {mode + 1}: {100 * space.deviations[mode] ** 2 / space.total:.0f} %", fontsize=9)
        plot.set_aspect("equal")
        plot.axis("off")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=110)
