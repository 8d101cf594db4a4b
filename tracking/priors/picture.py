"""A picture of a prior: where its training poses lie in latent space, where it is sure, and what it has learned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from calibration.foundation.arrays import Floats
from calibration.foundation.files import atomic_path
from calibration.geometry.transforms import RigidTransform
from tracking.priors.prior import Prior, require_rig
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = ["draw_latent_space"]

#: Positions along each latent direction at which poses are drawn, standard deviations of the training set.
STEPS = (-2.0, -1.0, 0.0, 1.0, 2.0)


def draw_latent_space(prior: Prior, rig: QuadRig, path: Path | str, *, sources: Sequence[str] | None = None) -> None:
    """Draw a prior to an image file.

    Left: the plane of the two latent directions in which the training poses spread most; grey is the prior's
    standard deviation there (dark: sure), dots the training poses, in one colour per motion. Right: one row per
    direction, poses at -2 to +2 standard deviations, seen from the front left.

    Args:
        prior: the prior.
        rig: its quads.
        path: image to write (.png, .svg, .pdf).
        sources: motion of each training pose ("file:frame"), for the colours.
    """
    require_rig(prior, rig.name, rig.quad_names)
    centre, directions, spread = _principal_directions(prior.training_latents)
    rows = min(4, prior.latent_dim)
    figure = Figure(figsize=(4.2 + 2.0 * len(STEPS), max(4.2, 2.2 * rows)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(rows, 2 + len(STEPS))
    _draw_plane(figure, figure.add_subplot(grid[:, :2]), prior, centre, directions, sources)
    view = _Viewer(prior, rig)
    for row in range(rows):
        for column, step in enumerate(STEPS):
            axes = figure.add_subplot(grid[row, 2 + column])
            view.draw(axes, centre + step * spread[row] * directions[row])
            axes.set_title(f"{'xyzw'[row] if row < 4 else row}: {step:+.0f} sd", fontsize=8)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=110)


def _principal_directions(latents: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean (d,), orthonormal directions (d, d) by falling spread, and the spreads (d,)."""
    centre = latents.mean(axis=0)
    _, singular, directions = np.linalg.svd(latents - centre, full_matrices=True)
    spread = np.zeros(latents.shape[1])
    spread[: len(singular)] = singular / np.sqrt(len(latents))
    return centre, directions, spread


def _draw_plane(
    figure: Figure, axes: Any, prior: Prior, centre: Floats, directions: Floats, sources: Sequence[str] | None
) -> None:
    """Standard deviation of the prior over a plane, with the training poses."""
    plane = directions[:2] if prior.latent_dim > 1 else np.vstack([directions[0], np.zeros(1)])
    placed = (prior.training_latents - centre) @ plane.T
    reach = 1.25 * np.abs(placed).max(axis=0) + 1e-6
    across, up = (np.linspace(-r, r, 80) for r in reach)
    points = centre + across[None, :, None] * plane[0] + up[:, None, None] * plane[1]
    deviation = np.sqrt(prior.variance(points))
    extent = (-reach[0], reach[0], -reach[1], reach[1])
    image = axes.imshow(deviation, origin="lower", extent=extent, cmap="gray", aspect="auto")
    figure.colorbar(image, ax=axes, location="bottom", label="standard deviation of a pose entry", shrink=0.8)
    motions = [source.split(":")[0] for source in sources] if sources is not None else [""] * len(placed)
    if len(motions) != len(placed):
        motions = [""] * len(placed)
    for name in dict.fromkeys(motions):
        mine = np.array([motion == name for motion in motions])
        axes.plot(*placed[mine].T, ".", markersize=5, label=name or None)
    if 1 < len(set(motions)) <= 12:
        axes.legend(fontsize=6, loc="upper right")
    axes.set_xlabel("first latent direction")
    axes.set_ylabel("second latent direction")
    axes.set_title(f"{prior.rig_name}: {len(placed)} poses, {prior.latent_dim} latent dimensions", fontsize=9)


class _Viewer:
    """Draws posed quads from the front left, a little from above, all at one scale."""

    def __init__(self, prior: Prior, rig: QuadRig) -> None:
        self.prior, self.rig = prior, rig
        self.root = RigidTransform(rig.rotations[rig.root], rig.centres[rig.root])
        azimuth, elevation = np.radians(55.0), np.radians(12.0)
        right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
        toward = np.array([np.cos(azimuth) * np.cos(elevation), np.sin(azimuth) * np.cos(elevation), np.sin(elevation)])
        self.screen = np.stack([right, np.cross(toward, right)])
        rest = rig.posed_corners(rig.rest).reshape(-1, 3)
        self.middle = self.screen @ (0.5 * (rest.min(axis=0) + rest.max(axis=0)))
        self.reach = 0.62 * float(np.ptp(rest @ self.screen.T, axis=0).max())

    def draw(self, axes: Any, latent: Floats) -> None:
        """Draw the prior's pose at a latent point."""
        rotations, centres = self.prior.chart.from_vector(self.root, self.prior.mean(latent))
        corners = self.rig.posed_corners(QuadPose(rotations, centres)) @ self.screen.T
        flat = centres @ self.screen.T
        links = [flat[[a, b]] for a, b in self.rig.neighbours]
        sides = ["tab:red" if "left" in n else "tab:blue" if "right" in n else "0.3" for n in self.rig.quad_names]
        axes.add_collection(LineCollection(links, colors="0.8", linewidths=0.6))
        axes.add_collection(PolyCollection(list(corners), facecolors="none", edgecolors=sides, linewidths=0.9))
        axes.set_xlim(self.middle[0] - self.reach, self.middle[0] + self.reach)
        axes.set_ylim(self.middle[1] - self.reach, self.middle[1] + self.reach)
        axes.set_aspect("equal")
        axes.axis("off")
