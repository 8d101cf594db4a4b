"""What the tracker returns: a sequence as followed, and in the end a whole one, frame by frame and limb by limb."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats, Ints
from tracking.fitting.solver import FrameFit
from tracking.limbs.evidence import LimbRecord
from tracking.sequence.trust import Reason, Trust

__all__ = ["Course", "Track"]


@dataclass(frozen=True, eq=False)
class Course:
    """A sequence followed from its start both ways, before it is looked at as a whole.

    Attributes:
        fits: one a frame, None where fewer than two cameras see anything.
        first: frame it started at.
        lead: (T,) by how much what is followed beat what is clearly different; 1 where nothing was.
        rival: another fit of that frame that is hardly worse.
    """

    fits: tuple[FrameFit | None, ...]
    first: int
    lead: Floats
    rival: FrameFit | None = None


@dataclass(frozen=True, eq=False)
class Track:
    """Result over T frames; NaN where a frame was not tracked.

    Attributes:
        rotations: (T, Q, 3, 3). centres: (T, Q, 3) mm. latent: (T, d).
        overlap: (T, C) silhouette overlap per view. agreement: (T,) its mean. residual: (T,) mm.
        variance: (T,) of the prior. departure: (T,) from the prior, in its sigmas.
        hessian: per frame (6 Q, 6 Q) curvature, or None.
        trust, reason: (T,) codes of `tracking.sequence.trust`.
        start: frame where tracking started. lead: (T,) by how much the hypothesis that a frame follows beat its rivals.
        point_status: (T, C, P) `MarkStatus` of the marks of 2D points, None where there are none.
    """

    rotations: Floats
    centres: Floats
    latent: Floats
    overlap: Floats
    agreement: Floats
    residual: Floats
    variance: Floats
    departure: Floats
    trust: Ints
    reason: Ints
    limb_names: tuple[str, ...]
    limb_record: LimbRecord
    limb_trust: Ints
    limb_reason: Ints
    start: int
    lead: Floats
    fits: tuple[FrameFit | None, ...]
    point_status: Ints | None = None

    def padded(self, first: int, frames: int) -> Track:
        """Return the track as frames ``first`` on of a longer recording; the others are not tracked."""
        after = frames - first - len(self.trust)

        def pad(values: NDArray[Any], fill: float) -> NDArray[Any]:
            widths = [(first, after)] + [(0, 0)] * (values.ndim - 1)
            return np.pad(values, widths, constant_values=fill)

        return replace(
            self,
            rotations=pad(self.rotations, np.nan),
            centres=pad(self.centres, np.nan),
            latent=pad(self.latent, np.nan),
            overlap=pad(self.overlap, np.nan),
            agreement=pad(self.agreement, np.nan),
            residual=pad(self.residual, np.nan),
            variance=pad(self.variance, np.nan),
            departure=pad(self.departure, np.nan),
            trust=pad(self.trust, int(Trust.LOST)),
            reason=pad(self.reason, int(Reason.NOT_TRACKED)),
            limb_record=LimbRecord(**{key: pad(rows, np.nan) for key, rows in self.limb_record.rows().items()}),
            limb_trust=pad(self.limb_trust, int(Trust.LOST)),
            limb_reason=pad(self.limb_reason, int(Reason.NOT_TRACKED)),
            start=self.start + first,
            lead=pad(self.lead, np.nan),
            fits=(None,) * first + self.fits + (None,) * after,
            point_status=None if self.point_status is None else pad(self.point_status, 0),
        )
