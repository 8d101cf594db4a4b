"""A picture of a pose space: its first modes as stick figures, two standard deviations either way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.files import atomic_path
from skeleton.pose_spaces.principal_geodesics import PoseSpace
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations, tree_of_skeleton
from skeleton.tree.joint_tree import Skeleton

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_modes", "modes_figure"]


def modes_figure(space: PoseSpace, tree: RotationTree, *, modes: int = 6) -> Figure:
    """Draw the first modes from the side, with the share of the variance that each holds; z is up."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = min(modes, space.modes)
    across, up = np.ptp(_drawn(tree, space, np.zeros((1, space.modes))), axis=0)
    figure = Figure(figsize=(2.2 * shown, min(3.0, 0.6 + 2.8 * up / max(across, 1e-9))), layout="constrained")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(1, shown, sharex=True, sharey=True))
    for mode, plot in enumerate(axes):
        for amount, colour in ((-2.0, "tab:blue"), (0.0, "0.7"), (2.0, "tab:red")):
            x = np.zeros((1, space.modes))
            x[0, mode] = amount * space.deviations[mode]
            places = _drawn(tree, space, x)
            for joint, parent in enumerate(tree.parents):
                if parent >= 0:
                    plot.plot(*places[[parent, joint]].T, color=colour, lw=1.2)
        plot.set_title(f"mode {mode + 1}: {100 * space.deviations[mode] ** 2 / space.total:.0f} %", fontsize=9)
        plot.set_aspect("equal")
        plot.axis("off")
    return figure


def _drawn(tree: RotationTree, space: PoseSpace, x: Floats) -> Floats:
    """Return (J, 2) where the joints of a pose (1, modes) are drawn: obliquely from the side."""
    places = place_rotations(tree, space.rotations(x), np.zeros((1, 3))).positions[0]
    return np.stack([places[:, 0] - 0.35 * places[:, 1], places[:, 2] - 0.15 * places[:, 1]], axis=1)


def draw_modes(space: PoseSpace, body: Skeleton, path: Path, *, modes: int = 6) -> None:
    """Write the picture of a pose space's first modes on a body."""
    space.check_joints(body.joint_names, f"body '{body.name}'")
    figure = modes_figure(space, tree_of_skeleton(body), modes=modes)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=110)
