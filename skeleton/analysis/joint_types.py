"""What kind of joint two rigid bones form, from their poses alone: hinge, ball or none, and whether it slides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from calibration.foundation.arrays import Floats, frozen
from calibration.foundation.errors import InputError, SolveError

__all__ = ["JointMotion", "joint_motion"]

_HINGE = 0.9
"""Share of all turning about one axis from which a joint is a hinge."""
_SLIDES = 0.1
"""A joint slides if its centre wanders by more than this share of what its turning moves a place 10 mm off, and by more
than three times the noise."""


@dataclass(frozen=True, eq=False)
class JointMotion:
    """How one bone moves against another.

    Attributes:
        kind: "hinge" or "ball".
        slides: whether it slides besides.
        axis: (3,) of the turning, in the first bone's frame.
        centre: (3,) the place of the second bone that moves least, in the first bone's frame at its mean.
        range_deg: from the least to the greatest turn about the axis.
        about_axis: share of all turning that is about it.
        slide_mm: from the least to the greatest of the centre's way along its main direction.
        slide_axis: (3,) that direction.
    """

    kind: str
    slides: bool
    axis: Floats
    centre: Floats
    range_deg: float
    about_axis: float
    slide_mm: float
    slide_axis: Floats


def joint_motion(first: Floats, second: Floats, *, noise_mm: float = 0.1) -> JointMotion:
    """Return the kind of joint between two bones with poses (T, 4, 4), world from bone, mm; NaN where not seen."""
    if first.shape != second.shape or first.ndim != 3 or first.shape[1:] != (4, 4):
        raise InputError(f"joint: wanted two sets of poses (T, 4, 4), got {first.shape} and {second.shape}")
    seen = np.isfinite(first).all(axis=(1, 2)) & np.isfinite(second).all(axis=(1, 2))
    if seen.sum() < 5:
        raise InputError(f"joint: wanted 5 frames with both bones, got {int(seen.sum())}")
    between = np.linalg.inv(first[seen]) @ second[seen]
    turns = Rotation.from_matrix(between[:, :3, :3])
    middle = turns.mean()
    vectors = (turns * middle.inv()).as_rotvec()
    vectors = vectors - vectors.mean(axis=0)
    _, size, rows = np.linalg.svd(vectors, full_matrices=False)
    if size[0] < 1e-4:
        raise SolveError("joint: the bones do not turn against each other; a joint needs motion")
    share = float(size[0] ** 2 / (size**2).sum())
    along = vectors @ rows[0]
    places = _centre_path(between)
    away = places - places.mean(axis=0)
    _, _, ways = np.linalg.svd(away, full_matrices=False)
    slide = float(np.ptp(away @ ways[0]))
    return JointMotion(
        "hinge" if share > _HINGE else "ball", slide > max(3.0 * noise_mm, _SLIDES * 10.0 * float(np.ptp(along))),
        frozen(rows[0]), frozen(places.mean(axis=0)), float(np.degrees(np.ptp(along))), share, slide,
        frozen(ways[0]),
    )  # fmt: skip


def _centre_path(between: Floats) -> Floats:
    """Return (T, 3) where the place of the second bone that moves least was in the first.

    Least squares on ``R c + t - m``; along an axis that it hardly turns about a place is as good as the next: the one
    nearest the second bone's mean origin is taken.
    """
    rotation, shift = between[:, :3, :3], between[:, :3, 3]
    turned, moved = rotation - rotation.mean(axis=0), shift - shift.mean(axis=0)
    rows, wanted = turned.reshape(-1, 3), -moved.reshape(-1)
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    good = s > 0.1 * s[0]
    centre = vt.T @ (np.where(good, 1.0 / np.maximum(s, 1e-300), 0.0) * (u.T @ wanted))
    return np.asarray(np.einsum("tij,j->ti", rotation, centre) + shift)
