"""Whether silhouettes that were drawn again are better: a camera decides that had no part in it.

The hull of the other cameras' silhouettes, as cut out and as drawn again, is held against the silhouette of the camera
left out. Drawn again means: without that camera in any fit of the template. What follows the template where the scene
does not makes the hull of the others lose what the camera left out still shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from capture.hull.implicit import implicit_hull
from tracking.observations.rasteriser import cast_masks

__all__ = ["Verdict", "agreement_of_view", "judged"]

LEAST_GAIN, SURE = 0.015, 3.0
"""Rise of the agreement with views left out that is worth a second round, and in how many standard errors of it.

The errors are of the views looked at; from one set of frames to another it scatters by more. In five sets of one
recording, whose silhouettes hold nothing to be taken off, it rose by 0.005 with a standard deviation of 0.005.
"""


@dataclass(frozen=True)
class Verdict:
    """How views left out agree with the hull of the others: before and after, IoU; the rise's standard error."""

    before: float
    after: float
    error: float

    @property
    def better(self) -> bool:
        """Whether silhouettes drawn again are to be used."""
        return self.after - self.before > max(LEAST_GAIN, SURE * self.error)


def agreement_of_view(masks: Sequence[Bools], rig: Rig, left_out: int) -> float:
    """Return the IoU of a view's silhouette (H, W) with the hull of the others; NaN where that is not there."""
    others = [k for k in range(len(rig)) if k != left_out and masks[k].any()]
    if len(others) < 2 or not masks[left_out].any():
        return float("nan")
    hull = implicit_hull([masks[k] for k in others], rig.subset([rig.names[k] for k in others]), score=False)
    if not len(hull.faces):
        return 0.0
    seen = cast_masks(rig.subset([rig.names[left_out]]), hull.vertices, hull.faces.astype(np.int64))[0]
    here = masks[left_out]
    return float((seen & here).sum() / (seen | here).sum())


def judged(before: Floats, after: Floats) -> Verdict | None:
    """Judge by agreements of views left out (n,); None where there are too few."""
    known = np.isfinite(before) & np.isfinite(after)
    rise = (after - before)[known]
    if len(rise) < 2:
        return None
    error = float(rise.std(ddof=1) / np.sqrt(len(rise)))
    return Verdict(float(before[known].mean()), float(after[known].mean()), error)
