"""A treadmill's belt as scene: what moves as the belt does is shown as if it stood still.

A place of the belt is seen again some frames later, and was seen some frames before, where the belt has taken it. The
median of these sightings, a body's length and more away, is the belt without its walker, whatever its pattern. Where
that explains the images better than a still scene does, there is the belt, and images are divided by the pattern that
passes: the models of silhouettes then see a still floor and what stands on it. Needs a rig whose floor (z = 0) is the
belt, and the belt's velocity.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from capture.recordings.video import read_frames

__all__ = ["BeltScene", "BeltView", "find_belt_scene", "stilled_frames"]

_WAYS = (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.15, 1.3, 1.45, 1.6)
"""How far the belt has gone between a frame and the others that tell its pattern, in shares of the floor in view.

Evenly spread, so that its walker covers no more of the sightings of any place than of the view."""
_MOST_LAG = 240
"""Frames between them, at most: all of them are held."""
_EXPLAINED = 0.6
"""The belt's motion leaves less than this share of the change that a still scene leaves."""
_LEAST_CHANGE = 3.0
"""Grey levels of change below which a belt has no pattern to speak of."""
_LEAST_BELT = 0.03
"""Share of the image that a belt takes, at least."""
_DARK = 16.0
"""Added before images are divided, grey levels: black has no ratio."""
_LONGEST = 2000
"""Frames of a recording in which the belt is looked for."""


@dataclass(frozen=True, eq=False)
class BeltView:
    """A camera over a belt: its velocity (2,) over the floor, mm per frame."""

    camera: Camera
    velocity: Floats


@dataclass(frozen=True, eq=False)
class BeltScene:
    """The belt as one camera sees it.

    Attributes:
        view: the camera and the belt's velocity.
        lags: frames before and after that tell its pattern, (lag, -lag) pairs.
        region: (H, W) where the image shows it.
        look: (H, W, C) what it looks like on the whole, grey levels.
    """

    view: BeltView
    lags: tuple[int, ...]
    region: Bools
    look: Singles

    def stilled(self, image: Bytes, pattern: Bytes) -> Bytes:
        """Return an image without the pattern (same shape) that passes."""
        look = self.look if image.ndim == 3 else self.look.mean(axis=2)
        share = (look + _DARK) / (pattern.astype(np.float32) + _DARK)
        out = image.copy()
        still = np.clip((image.astype(np.float32) + _DARK) * share - _DARK, 0.0, 255.0)
        out[self.region] = np.round(still[self.region]).astype(np.uint8)
        return out


def find_belt_scene(
    source: Path | str, view: BeltView, most: int, *, start: int, stop: int
) -> tuple[BeltScene, Bytes] | None:
    """Find a belt in at most ``most`` images spread over frames of ``source``; None if there is none to see.

    Returns the belt and these images (n, H, W, C), stilled.
    """
    lags = _lags(view)
    last = min(stop, start + _LONGEST)
    step = max(1, -(-(last - start) // most))
    if not lags or last - start < 2 * step:
        return None
    seen, patterns = [], []
    for image, pattern in _with_patterns(source, view, lags, range(start, last, step), gray=False):
        seen.append(image if image.ndim == 3 else image[..., None])
        patterns.append(pattern if pattern.ndim == 3 else pattern[..., None])
    images, passing = np.stack(seen), np.stack(patterns)
    maps = _maps(view, lags)
    # A place that is seen nowhere else has no pattern of its own.
    known = np.sum([maps[lag][0] >= 0 for lag in lags], axis=0) >= 3
    region = _region(images, passing, known)
    if not region.any():
        return None
    scene = BeltScene(view, lags, region, np.median(passing, axis=0).astype(np.float32))
    return scene, np.stack([scene.stilled(*pair) for pair in zip(images, passing, strict=True)])


def stilled_frames(
    source: Path | str, scene: BeltScene, start: int, stop: int, *, gray: bool = False
) -> Iterator[Bytes]:
    """Yield the images of frames start to stop as `read_frames` does, the belt in them stilled."""
    for image, pattern in _with_patterns(source, scene.view, scene.lags, range(start, stop), gray=gray):
        yield scene.stilled(image, pattern)


def _lags(view: BeltView) -> tuple[int, ...]:
    """Return frames, (lag, -lag) pairs, after which the belt has gone some shares of the floor that the camera sees."""
    width, height = view.camera.size
    sides = _floor(view.camera, np.array([[0.2 * width, 0.5 * height], [0.8 * width, 0.5 * height]]))
    speed = float(np.linalg.norm(view.velocity))
    across = float(np.linalg.norm(sides[1] - sides[0]))
    if not np.isfinite(across) or speed <= 0.0:
        return ()
    found = [round(share * across / speed) for share in _WAYS]
    return tuple(lag for one in dict.fromkeys(found) if 1 <= one <= _MOST_LAG for lag in (one, -one))


def _floor(camera: Camera, pixels: Floats) -> Floats:
    """Return the places (N, 2) of the floor that pixels show, mm; NaN above the horizon."""
    origins, directions = camera.rays(pixels)
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = -origins[..., 2] / directions[..., 2]
        places = origins[..., :2] + depth[..., None] * directions[..., :2]
    return np.asarray(np.where((depth > 0)[..., None], places, np.nan))


def _maps(view: BeltView, lags: Sequence[int]) -> dict[int, tuple[Singles, Singles]]:
    """Return for each lag where (H, W) in a frame that much later the belt shows what it shows here; -1 outside."""
    width, height = view.camera.size
    grid = np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).reshape(-1, 2).astype(np.float64)
    places = _floor(view.camera, grid)
    known = np.isfinite(places).all(axis=1)
    out = {}
    for lag in lags:
        moved = np.concatenate([places[known] + lag * view.velocity, np.zeros((int(known.sum()), 1))], axis=1)
        there = np.full((len(grid), 2), -1.0)
        there[known] = view.camera.project(moved)
        inside = np.isfinite(there).all(axis=1) & (there >= 0).all(axis=1)
        inside &= (there <= [width - 1, height - 1]).all(axis=1)
        there[~inside] = -1.0
        maps = there.reshape(height, width, 2).astype(np.float32)
        out[lag] = (np.ascontiguousarray(maps[..., 0]), np.ascontiguousarray(maps[..., 1]))
    return out


def _with_patterns(
    source: Path | str, view: BeltView, lags: Sequence[int], wanted: range, *, gray: bool
) -> Iterator[tuple[Bytes, Bytes]]:
    """Yield the wanted frames: image and the belt's pattern that passes, of the same shape."""
    reach = max(lags)
    maps = _maps(view, lags)
    held: deque[tuple[int, Bytes]] = deque()
    rest = deque(wanted)
    for number, image in read_frames(source, max(0, wanted.start - reach), wanted.stop + reach, gray=gray, ahead=False):
        held.append((number, image))
        while rest and number >= rest[0] + reach:
            yield _patterned(dict(held), rest.popleft(), lags, maps)
        while held and (not rest or held[0][0] < rest[0] - reach):
            held.popleft()
    while rest and held and rest[0] <= held[-1][0]:
        yield _patterned(dict(held), rest.popleft(), lags, maps)


def _patterned(
    held: Mapping[int, Bytes], number: int, lags: Sequence[int], maps: Mapping[int, tuple[Singles, Singles]]
) -> tuple[Bytes, Bytes]:
    """Return a frame and the median of where its belt is seen elsewhere; itself where that is nowhere."""
    image = held[number]
    frames = [(held[number + lag], *maps[lag]) for lag in lags if number + lag in held]
    if not frames:
        return image, image
    # What a frame does not show sorts last.
    sightings = np.full((*image.shape, len(frames)), 256, dtype=np.int16)
    count = np.zeros(image.shape[:2], dtype=np.int64)
    for place, (frame, x, y) in enumerate(frames):
        there = x >= 0
        sightings[there, ..., place] = cv2.remap(frame, x, y, cv2.INTER_LINEAR)[there]
        count += there
    sightings.sort(axis=-1)
    middle = np.maximum(count - 1, 0) // 2
    middle = middle if image.ndim == 2 else np.repeat(middle[..., None], image.shape[2], axis=2)
    median = np.take_along_axis(sightings, middle[..., None], axis=-1)[..., 0]
    seen = count > 0 if image.ndim == 2 else (count > 0)[..., None]
    return image, np.where(seen, median, image).astype(np.uint8)


def _region(images: Bytes, patterns: Bytes, known: Bools) -> Bools:
    """Return (H, W) where the belt's motion explains images (n, H, W, C), and a still scene does not; convex."""
    still = np.median(images, axis=0)
    change, left = np.zeros(still.shape[:2], np.float32), np.zeros(still.shape[:2], np.float32)
    for image, pattern in zip(images, patterns, strict=True):
        change += np.abs(image - still).mean(axis=2).astype(np.float32) / len(images)
        left += np.abs(image.astype(np.float32) - pattern).mean(axis=2) / len(images)
    width = still.shape[1]
    soft = max(1.0, 0.01 * width)
    change, left = (cv2.GaussianBlur(values, (0, 0), soft) for values in (change, left))
    found = ((left < _EXPLAINED * change) & (change > _LEAST_CHANGE) & known).astype(np.uint8)
    size = 2 * round(soft) + 1
    found = cv2.morphologyEx(found, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))
    if np.count_nonzero(found) < _LEAST_BELT * found.size:
        return np.zeros(found.shape, dtype=np.bool_)
    # A belt is a rectangle of the floor; its walker stands within.
    hull = cv2.convexHull(np.argwhere(found)[:, ::-1].astype(np.int32))
    out = np.zeros(found.shape, np.uint8)
    cv2.fillConvexPoly(out, hull, 1)
    return np.asarray((out > 0) & known, dtype=np.bool_)
