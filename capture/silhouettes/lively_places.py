"""Where in an image anything may differ strongly from the background, by a look at every fourth row.

A subject is a small share of a large image. What is kept of a silhouette is large, or near something large
(`capture.silhouettes.cleanup`), and has pixels that differ strongly; a few rows show where. The difference itself is
measured in rectangles around those places only, each grown until what differs weakly ends inside it.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import Background
from capture.backgrounds.evidence import Evidence, Window
from capture.mask_runs import runs_of

__all__ = ["lively_places", "measure_around"]

#: Rows between those that are looked at, and side of the tiles in which what they show is gathered, px.
_ROWS = 4
_TILE_PX = 16
#: Room around a place, tiles; and by how much a rectangle grows on a side where something goes on, px.
_ROOM = 2
_GROWS_PX = 32
#: If the rectangles hold more than this share of the image, all of it is measured at once.
_MOST = 0.8
#: Rounding must not hide a pixel.
_SAFE = 0.99


def lively_places(frame: Bytes, background: Background, gain: Floats, sigmas: float) -> list[Window]:
    """Return rectangles (rows, columns) that hold all that differs by so many ``sigmas`` in the rows looked at.

    Args:
        frame: (H, W, C) an image.
        background: the empty scene.
        gain: (C,) light of the image.
        sigmas: standard deviations of any channel.
    """
    height, width, channels = frame.shape
    flat = (height, width * channels)
    limit = np.float32(_SAFE * sigmas)
    centre, spread = background.centre.reshape(flat), background.spread.reshape(flat)
    tiles = _look(frame.reshape(flat), centre, spread, gain.astype(np.float32), limit)
    runs = runs_of(tiles, diagonal=True)
    parts = np.arange(len(runs.areas))
    boxes = (runs.rectangle(parts == part) for part in parts)
    side = _TILE_PX
    return [
        (slice(y * side, min((y + h) * side, height)), slice(x * side, min((x + w) * side, width)))
        for x, y, w, h in boxes
    ]


def measure_around(places: list[Window], low: float, evidence: Evidence) -> None:
    """Measure evidence (H, W) around places (rectangles) and wherever it goes on from there, being ``low`` at least."""
    height, width = evidence.shaded.shape
    for place in places:
        window, done = place, False
        while not done:
            evidence.measure(window)
            if evidence.measured_px() > _MOST * height * width:
                whole = (slice(0, height), slice(0, width))
                evidence.measure(whole)
                evidence.look_for_marks()
                return
            grown = _grown(window, evidence.shaded, low)
            if grown == window:
                evidence.look_for_marks()
                grown = _grown(window, evidence.shaded, low)
            window, done = grown, grown == window


def _grown(window: Window, found: Bytes, low: float) -> Window:
    """Return a rectangle of evidence (H, W) larger on the sides where something goes on."""
    rows, columns = window
    height, width = found.shape
    up, down, left, right = _reached(found, (rows.start, rows.stop, columns.start, columns.stop), np.float32(low))
    return (
        slice(max(0, rows.start - up * _GROWS_PX), min(height, rows.stop + down * _GROWS_PX)),
        slice(max(0, columns.start - left * _GROWS_PX), min(width, columns.stop + right * _GROWS_PX)),
    )


@compiled
def _reached(found: Bytes, place: tuple[int, int, int, int], low: np.float32) -> tuple[bool, bool, bool, bool]:
    """Return whether evidence of ``low`` at least reaches the upper, lower, left and right side of a rectangle."""
    top, bottom, left, right = place
    highest, lowest, first, last = np.uint8(0), np.uint8(0), np.uint8(0), np.uint8(0)
    for x in range(left, right):
        highest, lowest = max(highest, found[top, x]), max(lowest, found[bottom - 1, x])
    for y in range(top, bottom):
        first, last = max(first, found[y, left]), max(last, found[y, right - 1])
    height, width = found.shape
    return (
        bool(top > 0 and highest >= low),
        bool(bottom < height and lowest >= low),
        bool(left > 0 and first >= low),
        bool(right < width and last >= low),
    )


@compiled
def _look(frame: Bytes, centre: Singles, spread: Singles, gain: Singles, limit: np.float32) -> Bools:
    """Return tiles (h, w) with room around those in which a fourth row (H, W C) differs by over ``limit`` sigma."""
    height, width = frame.shape
    side = len(gain) * _TILE_PX
    tiles = np.zeros((-(-height // _TILE_PX), -(-width // side)), np.bool_)
    gains, differs = np.empty(width, np.float32), np.empty(width, np.uint8)
    for x in range(width):
        gains[x] = gain[x % len(gain)]
    for y in range(_ROWS // 2, height, _ROWS):
        # Written down first and looked at afterwards: each loop takes several values at a time.
        for x in range(width):
            differs[x] = np.uint8(abs(np.float32(frame[y, x]) - centre[y, x] * gains[x]) > limit * spread[y, x])
        for tile in range(tiles.shape[1]):
            some, here = np.uint8(0), differs[tile * side : (tile + 1) * side]
            for x in range(len(here)):
                some |= here[x]
            tiles[y // _TILE_PX, tile] |= some != 0
    grown = np.zeros_like(tiles)
    for row in range(tiles.shape[0]):
        for tile in range(tiles.shape[1]):
            if tiles[row, tile]:
                grown[max(0, row - _ROOM) : row + _ROOM + 1, max(0, tile - _ROOM) : tile + _ROOM + 1] = True
    return grown
