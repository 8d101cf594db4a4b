"""Strokes of a brush on a silhouette."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np

from calibration.foundation.arrays import Bools
from vivarig.edits.edit_file import Stroke

__all__ = ["brushed"]

_FINE = 4  # bits of a fraction of a pixel


def brushed(mask: Bools, strokes: Sequence[Stroke]) -> Bools:
    """Return a silhouette (H, W) after the strokes, in their order: within ``radius`` px of each path."""
    out = mask.astype(np.uint8)
    for stroke in strokes:
        points = np.clip(np.array(stroke.path), -1e6, 1e6)
        fine = np.round(points * (1 << _FINE)).astype(np.int32)
        layer = np.zeros_like(out)
        radius = max(1, round(stroke.radius * (1 << _FINE)))
        for x, y in fine.tolist():
            cv2.circle(layer, (x, y), radius, 1, -1, cv2.LINE_8, _FINE)
        if len(fine) > 1:
            # between the points as wide as at them; OpenCV's lines have whole widths
            width = min(max(1, round(2 * stroke.radius)), 32767)
            cv2.polylines(layer, [fine.reshape(-1, 1, 2)], False, 1, width, cv2.LINE_8, _FINE)
        out[layer > 0] = 1 if stroke.paint else 0
    return out.view(np.bool_)
