"""How strongly frames of a sequence are pulled to the middle of their neighbours, told by the sequence itself.

A frame lies beside the middle of its neighbours for two reasons: the body is accelerated, which goes on from frame to
frame, and its fit errs, anew in each. The second makes successive distances alternate: with motion of variance q that
changes slowly and errors of variance r, the distances c have the variance q + 3/2 r, and q - r is the mean product of
two that follow each other. So r = 2/5 (mean c_t c_t - mean c_t c_t+1), and q is what is left. The energy of a frame
believes in errors of the variance h, the inverse of its curvature. What is worth the same to it as motion of variance q
beside errors of variance r is a pull with the variance q h / r: noisy silhouettes are smoothed more, quick hands less
than a slow trunk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.foundation.arrays import Floats, Singles
from tracking.fitting.solver import FrameFit

__all__ = ["Steadiness", "steadiness"]

FEWEST = 24
"""Frames between two others without which nothing is estimated."""
LOOKED_AT = 12
"""Frames, at most, whose curvature is inverted."""
OUTLYING = 4.0
"""Distances beyond so many typical ones are counted as that far: a jump is no noise."""
LEAST = 0.1
"""Motion is at least this share of the variance: of some tens of frames no less can be told."""


class Steadiness:
    """What a sequence tells of its motion and noise.

    Attributes:
        pull: (6 Q,) how far the quads lie from their neighbours' middle, 1 sigma in units of the energy, rad and mm.
        noisy: whether the fits err by more than their energy knows.
    """

    def __init__(self, pull: Floats, *, noisy: bool) -> None:
        self.pull, self.noisy = pull, noisy


def steadiness(fits: Sequence[FrameFit | None], bends: Sequence[Floats | None]) -> Steadiness | None:
    """Estimate motion and noise of a sequence; None where it is too short.

    Args:
        fits: per frame.
        bends: per frame how far the quads lie from the middle of the frames beside (6 Q,), rad and mm; None where one
            of these is missing.
    """
    known = [(fit, bend) for fit, bend in zip(fits, bends, strict=True) if fit is not None and bend is not None]
    if len(known) < FEWEST:
        return None
    size = len(known[0][1])
    away = np.full((len(bends), size // 3, 3), np.nan)
    for row, bend in zip(away, bends, strict=True):
        if bend is not None:
            row[:] = bend.reshape(-1, 3)
    most = OUTLYING * 1.4826 * np.nanmedian(np.abs(away), axis=(0, 2))[:, None]
    away = np.clip(away, -most, most)
    square = np.nanmean(away**2, axis=(0, 2))
    beside = np.nanmean(away[1:] * away[:-1], axis=(0, 2))
    noise = np.clip(0.4 * (square - beside), 1e-3 * square, square / 1.5) + 1e-12
    motion = np.maximum(square - 1.5 * noise, LEAST * square) + 1e-12
    some = known[:: -(-len(known) // LOOKED_AT)]
    believed = np.mean([_variances(fit.hessian) for fit, _ in some], axis=0).reshape(-1, 3).mean(axis=1)
    pull = np.sqrt(motion * believed / noise)
    return Steadiness(np.repeat(pull, 3), noisy=bool(np.median(noise / believed) > 1.0))


def _variances(hessian: Singles) -> Floats:
    """(6 Q,) variances that a curvature stands for."""
    size = len(hessian)
    return np.asarray(np.diag(np.linalg.inv(hessian + 1e-9 * np.mean(np.diag(hessian)) * np.eye(size))))
