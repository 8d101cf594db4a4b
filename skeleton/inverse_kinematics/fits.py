"""What inverse kinematics gives back, whichever solver made it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints, frozen
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import quaternion_from_rotation
from skeleton.tree.articulation import Articulation

__all__ = ["DOUBTFUL", "LOST", "REASONS", "TRUSTED", "SkeletonFit", "fit_of", "same_sign"]

TRUSTED, DOUBTFUL, LOST = (int(level) for level in Trust)

#: What the reason code of a frame says, and what to do about it.
REASONS = (
    "trusted",
    "few markers seen: add cameras or markers",
    "markers do not fit the body: check names, units and scaling",
    "many markers rejected as wrong: check the tracking of this frame",
    "the solver stopped early: allow more iterations",
    "no markers at all: pose held from the frame before",
    "the track that the markers are from is not trusted here",
)


_PER_FRAME = (
    "coordinates", "positions", "rotations", "residuals", "weights", "sigma", "trust", "reason", "iterations", "energy",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SkeletonFit:
    """Joint motion that was fitted to markers.

    Attributes:
        body: the articulation that was fitted.
        marker_names: M names.
        coordinates: (T, D) rad and mm, in the order of ``body.coordinate_names``.
        positions: (T, J, 3) joint centres, mm.
        rotations: (T, J, 4) wxyz, world from segment.
        residuals: (T, M) distance of each marker from its place on the body, mm; NaN where not seen.
        weights: (T, M) share of its stiffness that each marker kept, 0 (rejected or unseen) to 1.
        sigma: (T, J) standard deviation of the joint centres, mm, root mean square over the axes, from the
            Hessian;
            inf where nothing was measured.
        trust: (T,) 0 trusted, 1 doubtful, 2 lost.
        reason: (T,) index into `REASONS`.
        iterations: (T,) solver iterations.
        energy: (T,) what was minimised.
    """

    body: Articulation
    marker_names: tuple[str, ...]
    coordinates: Floats
    positions: Floats
    rotations: Floats
    residuals: Floats
    weights: Floats
    sigma: Floats
    trust: Ints
    reason: Ints
    iterations: Ints
    energy: Floats

    def __post_init__(self) -> None:
        for name in _PER_FRAME:
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def rows(self, first: int, last: int) -> SkeletonFit:
        """Return the fit of frames ``first`` to ``last`` - 1."""
        return replace(self, **{name: getattr(self, name)[first:last] for name in _PER_FRAME})

    @property
    def frames(self) -> int:
        """Number of frames T."""
        return len(self.coordinates)

    @property
    def rms_mm(self) -> float:
        """Root mean square of all marker residuals, mm."""
        return float(np.sqrt(np.nanmean(self.residuals**2)))

    @property
    def median_mm(self) -> float:
        """Median of all marker residuals, mm."""
        return float(np.nanmedian(self.residuals))

    @property
    def trusted_share(self) -> float:
        """Share of frames with trust 0."""
        return float(np.mean(self.trust == TRUSTED))

    def coordinate(self, name: str) -> Floats:
        """Return (T,) one coordinate by name."""
        column: Floats = self.coordinates[:, self.body.coordinate_names.index(name)]
        return column


def fit_of(
    body: Articulation,
    marker_names: tuple[str, ...],
    coordinates: Floats,
    residuals: Floats,
    weights: Floats,
    sigma: Floats,
    trust: Ints,
    reason: Ints,
    iterations: Ints,
    energy: Floats,
) -> SkeletonFit:
    """Return the fit with the joint places that its coordinates give."""
    positions, rotations = body.forward(coordinates)
    quaternions = quaternion_from_rotation(rotations)
    return SkeletonFit(
        body, marker_names, coordinates, positions, same_sign(quaternions), residuals, weights, sigma, trust, reason,
        iterations, energy,
    )  # fmt: skip


def same_sign(quaternions: Floats) -> Floats:
    """Return (T, J, 4) quaternions without sign changes from frame to frame: q and -q are one rotation."""
    out = np.array(quaternions)
    if len(out) < 2:
        return out
    along = np.einsum("tjk,tjk->tj", out[1:], out[:-1])
    turns = np.concatenate([np.ones((1, out.shape[1])), np.where(along < 0, -1.0, 1.0)])
    signs = np.cumprod(turns, axis=0)
    # Where a frame has nothing in common with the one before (or is not known), signs begin anew.
    anew = np.concatenate([np.zeros((1, out.shape[1]), bool), ~(along != 0) | np.isnan(along)])
    begin = np.maximum.accumulate(np.where(anew, np.arange(len(out))[:, None], 0), axis=0)
    return np.asarray(out * (signs * np.take_along_axis(signs, begin, axis=0))[..., None])
