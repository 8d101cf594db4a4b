"""A body with its joints and quads seen from the side, the front and above, for people to check and to mend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.files import atomic_path
from tracking.own_bodies.joints_file import BodyPlan
from tracking.quads.oriented_quads import QuadRig

__all__ = ["draw_body"]

#: Title, and the two directions that run to the right and up in the picture.
VIEWS = (
    ("from its right", (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    ("from above", (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    ("from behind", (0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
)


def draw_body(
    path: Path,
    vertices: Floats,
    faces: Ints,
    *,
    plan: BodyPlan | None = None,
    rig: QuadRig | None = None,
    wrong: Sequence[Floats] = (),
    title: str = "",
) -> None:
    """Draw a mesh (V, 3), mm, z up, with joints, quads and circled places where something is wrong, to an image."""
    figure = Figure(figsize=(15, 6), layout="constrained")
    FigureCanvasAgg(figure)
    for column, (name, right, up) in enumerate(VIEWS):
        axes = figure.add_subplot(1, 3, column + 1)
        screen = np.stack([right, up])
        _draw(axes, screen, vertices, faces, plan, rig)
        for place in wrong:
            at = screen @ place
            axes.plot(*at, "o", color="red", markersize=18, fillstyle="none", markeredgewidth=2)
        axes.set_title(name, fontsize=9)
        axes.set_aspect("equal")
        axes.tick_params(labelsize=6)
    figure.suptitle(title, fontsize=9, wrap=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=90, format="png")


def _draw(axes: Any, screen: Floats, vertices: Floats, faces: Ints, plan: BodyPlan | None, rig: QuadRig | None) -> None:
    flat = vertices @ screen.T
    axes.add_collection(PolyCollection(list(flat[faces]), facecolors="0.87", edgecolors="none", linewidths=0))
    low, high = flat.min(axis=0), flat.max(axis=0)
    axes.set_xlim(low[0] - 0.05 * (high - low).max(), high[0] + 0.05 * (high - low).max())
    axes.set_ylim(low[1] - 0.05 * (high - low).max(), high[1] + 0.05 * (high - low).max())
    if rig is not None:
        corners = rig.posed_corners(rig.rest) @ screen.T
        axes.add_collection(
            PolyCollection(list(corners), facecolors=(0.2, 0.5, 0.9, 0.12), edgecolors="tab:blue", lw=0.9)
        )
    if plan is None:
        return
    places = plan.places @ screen.T
    axes.add_collection(LineCollection(list(places[plan.bones]), colors="tab:red", linewidths=1.2))
    axes.plot(*places.T, ".", color="tab:red", markersize=5)
    for name, place in zip(plan.names, places, strict=True):
        axes.annotate(name, place, fontsize=5, xytext=(2, 2), textcoords="offset points")
