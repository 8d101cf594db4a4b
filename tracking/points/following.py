"""Marks of 2D points over time: a body's place errs slowly, marks err anew in each frame, so neighbours steady them.

For each point the marks of the frames around, seen from the quad that carries it, are taken together (weights of a
Gaussian in time). How wide that is, the recording tells: the width whose prediction of marks it did not use is best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from tracking.observations.marks import Marks
from tracking.points.placing import Placed, carriers, frame_rows
from tracking.quads.deformation import CageRig
from tracking.subjects.body_points import BodyPoints

__all__ = ["steadied"]

WIDTHS = (2.0, 4.0, 8.0, 16.0)
"""Widths in time that are tried, frames, 1 sigma."""
HELD = 20.0
"""How far a tracked point strays from its place on the body, 1 sigma, thousandths of the size: what marks are weighed
against."""
CUT = 3.0
"""Sigmas in time beyond which a mark is left out."""


@dataclass(frozen=True, eq=False)
class _Marks:
    """Rows of one point: frame (N,), direction in its quad's axes (N, 3), residual and weight (N,)."""

    frames: Ints
    directions: Floats
    residuals: Floats
    weights: Floats

    def strays(self, at: Ints, width: float, held: float, *, own: bool) -> tuple[Floats, Floats]:
        """Where the marks put the point at some frames (T,), off its place on the body.

        Args:
            at: frames.
            width: in time. held: 1 sigma of how far it strays, mm.
            own: whether the marks of a frame itself are used.

        Returns:
            (T, 3) in the quad's axes, mm, and (T,) 1 sigma.
        """
        stray, sigma = np.zeros((len(at), 3)), np.full(len(at), held)
        low = np.searchsorted(self.frames, at - CUT * width)
        high = np.searchsorted(self.frames, at + CUT * width, side="right")
        for k, frame in enumerate(at):
            rows = slice(low[k], high[k])
            away = self.frames[rows] - frame
            weight = self.weights[rows] * np.exp(-0.5 * (away / width) ** 2)
            if not own:
                weight = np.where(away == 0, 0.0, weight)
            directions = self.directions[rows]
            system = (directions * weight[:, None]).T @ directions + np.eye(3) / held**2
            inverse = np.linalg.inv(system)
            stray[k] = -inverse @ (directions.T @ (weight * self.residuals[rows]))
            sigma[k] = np.sqrt(np.trace(inverse) / 3.0)
        return stray, sigma


def steadied(
    cage_rig: CageRig, points: BodyPoints, frames: Sequence[Placed | None], camera_rows: Floats, unit: float
) -> list[Marks | None]:
    """Return each frame's sightings with places in space (P, 3) that the frames around agree on, NaN where none do.

    Args:
        cage_rig: quads and cage.
        points: as placed on the body (`place_points`).
        frames: poses and marks of a sequence; None where a frame was not tracked or has none.
        camera_rows: (C, 36) packed cameras.
        unit: one thousandth of the subject's size, mm.
    """
    carrier = carriers(cage_rig, points.binding)
    marks = _gathered(cage_rig, points, carrier, frames, camera_rows, unit)
    held = HELD * unit
    width = min(WIDTHS, key=lambda width: _missed(marks, width, held))
    count = len(frames)
    places, sigma = np.full((count, len(marks), 3), np.nan), np.full((count, len(marks)), np.inf)
    for point, one in enumerate(marks):
        if one is None:
            continue
        near = np.unique(one.frames)
        stray, sigma[near, point] = one.strays(near, width, held, own=True)
        for frame, offset in zip(near, stray, strict=True):
            known = frames[frame]
            assert known is not None
            places[frame, point] = known.pose.rotations[carrier[point]] @ offset
    result: list[Marks | None] = []
    for frame, known in enumerate(frames):
        if known is None:
            result.append(None)
            continue
        at = cage_rig.deform(points.binding, known.pose) + places[frame]
        result.append(replace(known.sightings, places=at, place_sigma=sigma[frame]))
    return result


def _gathered(
    cage_rig: CageRig,
    points: BodyPoints,
    carrier: Ints,
    frames: Sequence[Placed | None],
    camera_rows: Floats,
    unit: float,
) -> list[_Marks | None]:
    """Rows of each point over all frames; None for a point without say or marks."""
    found = [
        (frame, *frame_rows(cage_rig, points, carrier, one, camera_rows))
        for frame, one in enumerate(frames)
        if one is not None and len(one.sightings)
    ]
    marks: list[_Marks | None] = []
    for point in range(len(points.names)):
        sigma = points.sigma[point] * unit
        parts = [(frame, owner == point, way, left) for frame, owner, way, left in found]
        if not np.isfinite(sigma) or not any(ours.any() for _, ours, _, _ in parts):
            marks.append(None)
            continue
        residuals = np.concatenate([left[ours] for _, ours, _, left in parts])
        weights = 1.0 / (1.0 + (residuals / (2.0 * sigma)) ** 2) ** 2 / sigma**2
        at = np.concatenate([np.full(ours.sum(), frame) for frame, ours, _, _ in parts])
        marks.append(_Marks(at, np.concatenate([way[ours] for _, ours, way, _ in parts]), residuals, weights))
    return marks


def _missed(marks: Sequence[_Marks | None], width: float, held: float) -> float:
    """How far marks lie from where those of other frames put them, median over points, in sigmas of a mark."""
    missed = []
    for one in marks:
        if one is None:
            continue
        frames, row = np.unique(one.frames, return_inverse=True)
        stray, _ = one.strays(frames, width, held, own=False)
        left = one.residuals + np.sum(one.directions * stray[row], axis=1)
        missed.append(float(np.median(np.abs(left))))
    return float(np.mean(missed)) if missed else 0.0
