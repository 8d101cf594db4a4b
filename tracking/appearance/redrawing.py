"""A silhouette drawn again with the help of the subject: three witnesses, and the silhouette changes where two agree.

The silhouette as it was cut out, colours that other frames taught, and the template as the other cameras ask for it
each have a say, of limited weight: neither colours nor template alone can overrule the silhouette. Odds are smoothed
along the image within the silhouette and outside of it, each for itself, so that thin parts are not smeared away; a
graph cut with the image's edges does no better (docs/measured).
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Singles
from tracking.appearance.witnesses import Drawn, Seen, Witnesses

__all__ = ["redrawn"]

MASK, COLOUR, SHAPE = 3.0, 3.0, 2.0
"""Log odds that the silhouette is worth, and most that colours and template are."""
REACH = 0.12
"""How far outside of the silhouette something can be added, share of its extent."""
_SMOOTH_PX = 1.5


def redrawn(mask: Bools, seen: Seen, witnesses: Witnesses, drawn: Drawn) -> Bools:
    """Return a silhouette (H, W) drawn again, given what is seen around it."""
    told = np.clip(witnesses.colours(seen), -COLOUR, COLOUR) + np.clip(witnesses.shape(seen, drawn), -SHAPE, SHAPE)
    inside = _smoothed(told + np.float32(MASK), seen.mask) > 0
    outside = (_smoothed(told - np.float32(MASK), ~seen.mask) > 0) & (seen.depth >= -REACH)
    out = mask.copy()
    out[seen.window] = _attached(np.where(seen.mask, inside, outside), seen.mask)
    return out


def _smoothed(odds: Singles, where: Bools) -> Singles:
    """Return odds (h, w) smoothed over some of the pixels alone."""
    weight = where.astype(np.float32)
    blurred, share = (cv2.GaussianBlur(one, (0, 0), _SMOOTH_PX) for one in (odds * weight, weight))
    return np.asarray(blurred / (share + np.float32(1e-4)))


def _attached(new: Bools, old: Bools) -> Bools:
    """Return the pieces of a mask (h, w) that hold some of the old one."""
    count, pieces = cv2.connectedComponents(new.view(np.uint8), connectivity=8)
    keep = np.zeros(count, bool)
    keep[np.unique(pieces[new & old])] = True
    keep[0] = False
    return np.asarray(keep[pieces])
