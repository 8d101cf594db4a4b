"""The end of a thin part (a tail) followed beyond where its looks still tell it from the ground.

A tail thins out and darkens towards its tip; pixel by pixel it looks like the ground there, but it goes on as a ridge
in its own direction. From the far end of the silhouette's thin part the ridge is followed while it stands out.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from capture.discs import disc

__all__ = ["follow_thin_end"]

#: A part is thin if a disc of this radius does not fit, and long if it reaches this often as far from the body.
_THIN_PX = 7
_LONG = 3.0
#: Step along the ridge, how far it may turn per step (radians), and at which distance its sides are looked at.
_STEP_PX = 2.0
_TURN = 0.5
_SIDE_PX = 6.0
#: It is followed while it stands out by this share of its contrast at the end, and no farther than it reaches
#: already. Where it goes is judged by its mean over some steps ahead: stalks that cross it are short.
_SHARE = 0.25
_AHEAD = 4


def follow_thin_end(mask: Bools, grey: Bytes) -> Bools:
    """Return the silhouette (h, w) with the ridge that goes on from the far end of its longest thin part."""
    body = cv2.morphologyEx(mask.view(np.uint8), cv2.MORPH_OPEN, disc(_THIN_PX))
    if not body.any():
        return mask
    away = cv2.distanceTransform(1 - body, cv2.DIST_L2, cv2.DIST_MASK_5)
    thin = np.where(mask, away, 0.0)
    row, column = np.unravel_index(int(thin.argmax()), thin.shape)
    reach = float(thin[row, column])
    if reach < _LONG * _THIN_PX:
        return mask
    # The direction of the end: from the thin pixels a little nearer to the body, within reach of the tip.
    rows, columns = np.nonzero(mask & (away > reach - 2.0 * _THIN_PX) & (away < reach - _THIN_PX))
    near = np.hypot(rows - row, columns - column) < 4.0 * _THIN_PX
    if not near.any():
        return mask
    base = np.array([columns[near].mean(), rows[near].mean()])
    position = np.array([float(column), float(row)])
    heading = position - base
    heading /= np.linalg.norm(heading)
    smooth = cv2.GaussianBlur(grey.astype(np.float32), (0, 0), 1.0)
    inner = base + 0.5 * (position - base)
    reference = max(_contrast(smooth, point, heading) for point in (base, inner))
    if not reference > 0:
        return mask
    path, plain = [position], [True]
    for _ in range(round(reach / _STEP_PX)):
        turns = [_turned(heading, angle) for angle in np.linspace(-_TURN, _TURN, 7)]
        contrasts = [
            [_contrast(smooth, path[-1] + step * _STEP_PX * turn, turn) for step in range(1, _AHEAD + 1)]
            for turn in turns
        ]
        means = np.mean(contrasts, axis=1)
        best = int(np.argmax(means))
        if not means[best] > _SHARE * reference:
            break
        plain.append(contrasts[best][0] > _SHARE * reference)
        path.append(path[-1] + _STEP_PX * turns[best])
        heading = 0.5 * (heading + turns[best])
        heading /= np.linalg.norm(heading)
    out = mask.view(np.uint8).copy()
    line = np.rint(np.array(path[: int(np.flatnonzero(plain)[-1]) + 1])).astype(np.int32)
    cv2.polylines(out, [line[:, None]], False, 1, thickness=3)
    return out.view(np.bool_)


def _turned(direction: Floats, angle: float) -> Floats:
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.array([cosine * direction[0] - sine * direction[1], sine * direction[0] + cosine * direction[1]])


def _contrast(smooth: Singles, point: Floats, heading: Floats) -> float:
    """Return by how much a point (x, y) is brighter than the brighter of its sides; minus infinity off the picture."""
    across = np.array([-heading[1], heading[0]])
    height, width = smooth.shape
    values = []
    for place in (point, point + _SIDE_PX * across, point - _SIDE_PX * across):
        x, y = round(float(place[0])), round(float(place[1]))
        if not (0 <= x < width and 0 <= y < height):
            return -np.inf
        values.append(float(smooth[y, x]))
    return values[0] - max(values[1:])
