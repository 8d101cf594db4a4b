"""What the views left of each other's silhouettes, held against each other: a sound camera's agree by then.

A camera that sees mirror images or shade beside the subject is far off the others by itself. The other views take these
away, and what is left is the subject. Of a camera that looks elsewhere than its calibration says they take the subject
itself, or a part of it: what it shows lies where they see nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from capture.camera_checks.fits import Placed, residuals
from capture.camera_checks.outlines import Outlines
from capture.camera_checks.tangency import view_of

__all__ = ["left_px", "stays_far"]

#: A camera stays far off if what is left is this many pixels, and so many times what is left of the others.
_LEAST_PX = 2.0
_TIMES = 2.0


def stays_far(px: Floats) -> Bools:
    """Return which cameras are still far off the others by what is left (C,), px."""
    others = [np.delete(px, c) for c in range(len(px))]
    usual = np.array([np.median(one[~np.isnan(one)]) if not np.isnan(one).all() else np.nan for one in others])
    return np.asarray((px > _LEAST_PX) & (px > _TIMES * usual))


def left_px(rig: Rig, outlines: Sequence[Outlines], left: Sequence[Outlines], frames: Ints) -> Floats:
    """Return (C,) the median distance between a camera's tangent planes and the others' once the views are done, px.

    It is infinite for a camera of whose silhouettes nothing is left in most frames, NaN if nothing is known.

    Args:
        rig: the cameras.
        outlines: of each camera by itself, rows are ``frames``.
        left: the same after the views mended each other.
        frames: (T,) recording frames in rising order.
    """
    alone, mended = _placed(rig, outlines), _placed(rig, left)
    found = []
    for c, (before, after) in enumerate(zip(alone, mended, strict=True)):
        apart = np.abs(residuals(c, after, mended, frames))
        gone = before.view.seen & ~after.view.seen
        could = np.isfinite(residuals(c, before, alone, frames)[:, gone])
        apart[:, gone] = np.where(could, np.inf, np.nan)
        known = apart[~np.isnan(apart)]
        found.append(float(np.median(known)) if len(known) else float("nan"))
    return np.array(found)


def _placed(rig: Rig, outlines: Sequence[Outlines]) -> list[Placed]:
    nothing = np.zeros(3)
    return [Placed(view_of(c, o), 0.0, nothing, nothing) for c, o in zip(rig, outlines, strict=True)]
