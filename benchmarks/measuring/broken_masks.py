"""Silhouettes broken on purpose, to see whether a figure of their quality falls with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np

from capture.discs import disc

__all__ = ["broken"]

_GROWN = (0.01, 0.03, 0.08)
_SHRUNK = (0.01, 0.03)


def broken(masks: Sequence[np.ndarray], rng: np.random.Generator) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Yield the silhouettes (H, W) of one frame as they are, and spoilt in all views or in one, each with its name."""
    boxes = [cv2.boundingRect(mask.view(np.uint8)) for mask in masks]
    extent = max(max(box[2:]) for box in boxes)
    yield "as found", list(masks)
    for share in _GROWN:
        kernel = disc(max(1, round(share * extent)))
        yield f"grown by {share}", [cv2.dilate(mask.view(np.uint8), kernel).view(np.bool_) for mask in masks]
    for share in _SHRUNK:
        kernel = disc(max(1, round(share * extent)))
        yield f"shrunk by {share}", [cv2.erode(mask.view(np.uint8), kernel).view(np.bool_) for mask in masks]
    half = [mask.copy() for mask in masks]
    without_feet = [mask.copy() for mask in masks]
    for filled, cut, (_, y, _, h) in zip(half, without_feet, boxes, strict=True):
        filled[:, : filled.shape[1] // 2] = True
        cut[y + int(0.75 * h) :] = False
    yield "half of the image filled", half
    yield "lowest quarter missing", without_feet
    noise = [cv2.GaussianBlur(rng.normal(size=m.shape).astype(np.float32), (0, 0), 3) > 0.05 for m in masks]
    yield "noise all over", [mask | spots for mask, spots in zip(masks, noise, strict=True)]
    x, y, w, h = boxes[0]
    first = masks[0].copy()
    first[y : y + h // 2] = False
    yield "upper half missing in one view", [first, *masks[1:]]
    blob = masks[0].view(np.uint8).copy()
    cv2.circle(blob, (x + w, y + h // 2), extent // 4, 1, cv2.FILLED)
    yield "a blob in one view", [blob.view(np.bool_), *masks[1:]]
    yield "one view shifted", [np.roll(masks[0], round(0.05 * extent), axis=1), *masks[1:]]
