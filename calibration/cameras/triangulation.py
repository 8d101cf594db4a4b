"""3D points from pixels in several views: linear, maximum-likelihood, and robust to wrong detections.

Per point: a start from the viewing rays, a choice of the views that agree, Gauss-Newton on the reprojection error
over those views, and the covariance of the result. A geometry that fixes no point gives NaN and a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.cameras import triangulation_kernels as kernels
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["Reason", "Triangulation", "triangulate", "triangulate_linear"]


class Reason(IntEnum):
    """Why a point has no position."""

    OK = kernels.OK
    UNSEEN = kernels.UNSEEN
    ONE_VIEW = kernels.ONE_VIEW
    PARALLEL_RAYS = kernels.PARALLEL_RAYS
    VIEWS_DISAGREE = kernels.VIEWS_DISAGREE
    BEHIND_CAMERA = kernels.BEHIND_CAMERA
    NOT_CONVERGED = kernels.NOT_CONVERGED

    @property
    def text(self) -> str:
        """The reason in words."""
        return {
            Reason.OK: "triangulated",
            Reason.UNSEEN: "seen by no camera",
            Reason.ONE_VIEW: "seen by one camera only",
            Reason.PARALLEL_RAYS: "the viewing rays are nearly parallel",
            Reason.VIEWS_DISAGREE: "no two views agree within the gate",
            Reason.BEHIND_CAMERA: "the rays meet behind a camera",
            Reason.NOT_CONVERGED: "the refinement did not converge",
        }[self]


@dataclass(frozen=True, eq=False)
class Triangulation:
    """Points with how well they are known.

    Attributes:
        points: (n, 3) mm, NaN where there is none.
        covariance: (n, 3, 3) mm^2, from the pixel noise given; NaN likewise.
        residual_px: (n,) root mean square reprojection error over the views used, px.
        views_used: (C, n), which detections the point rests on.
        parallax: (n,) largest angle between two rays used, rad.
        reason: (n,) codes of `Reason`.
    """

    points: Floats
    covariance: Floats
    residual_px: Floats
    views_used: Bools
    parallax: Floats
    reason: NDArray[np.uint8]


def triangulate(
    rig: Rig,
    pixels: ArrayLike,
    *,
    sigma_px: float | ArrayLike = 0.5,
    robust: bool = True,
    gate_px: float = 5.0,
    min_parallax: float = math.radians(0.5),
    min_share: float = 0.5,
    pairs: int = 66,
    seed: int = 0,
) -> Triangulation:
    """Triangulate points seen in any number of views.

    Args:
        rig: C cameras.
        pixels: (C, n, 2) detections, NaN where a camera does not see the point.
        sigma_px: standard deviation of a detection, px: one number or (C, n).
        robust: find the views that agree within ``gate_px`` and use only those.
        gate_px: largest reprojection error of a detection that counts as agreeing, px.
        min_share: share of the views that see a point which must agree; with fewer, two may agree by chance.
        min_parallax: below this angle between all its rays a point is NaN, rad.
        pairs: pairs of views tried per point; all of them up to 12 cameras, else a seeded choice.
        seed: of that choice.
    """
    chosen = _view_pairs(len(rig), pairs, seed)
    rules = kernels.Rules(chosen, robust, float(gate_px), math.cos(min_parallax), float(min_share))
    return Triangulation(*kernels.solve_all(_detections(rig, pixels, sigma_px), rules))


def triangulate_linear(rig: Rig, pixels: ArrayLike) -> Floats:
    """Return points (n, 3) mm nearest to their viewing rays, all views trusted; NaN below two views."""
    p = _checked_pixels(rig, pixels)
    return kernels.nearest_to_rays(*_rays(rig, p))


def _checked_pixels(rig: Rig, pixels: ArrayLike) -> Floats:
    p = np.ascontiguousarray(pixels, dtype=np.float64)
    if p.ndim != 3 or p.shape[0] != len(rig) or p.shape[2] != 2:
        raise InputError(f"triangulation: pixels must be ({len(rig)}, n, 2) for this rig, got {p.shape}")
    return p


def _detections(rig: Rig, pixels: ArrayLike, sigma_px: float | ArrayLike) -> kernels.Detections:
    p = _checked_pixels(rig, pixels)
    sigma = np.asarray(sigma_px, dtype=np.float64)
    if sigma.shape not in ((), p.shape[:2]) or not (sigma > 0).all():
        raise InputError("triangulation: sigma_px must be positive, one number or one per camera and point")
    whole = np.ascontiguousarray(np.broadcast_to(sigma, p.shape[:2]))
    return kernels.Detections(rig.packed(), p, whole, *_rays(rig, p))


def _rays(rig: Rig, pixels: Floats) -> tuple[Floats, Floats]:
    """Return ray origins (C, 3) and unit directions (C, n, 3), NaN where there is no detection or no inverse."""
    directions = np.stack([camera.rays(view)[1] for camera, view in zip(rig, pixels, strict=True)])
    return rig.centres, directions


def _view_pairs(cameras: int, most: int, seed: int) -> Ints:
    every = np.array(list(combinations(range(cameras), 2)), dtype=np.int64).reshape(-1, 2)
    if len(every) <= most:
        return every
    chosen = np.random.default_rng(seed).choice(len(every), most, replace=False)
    return every[np.sort(chosen)]
