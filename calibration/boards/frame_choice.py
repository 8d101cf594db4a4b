"""Which views to calibrate from: sharp ones, each pose once, spread over the images, not simply all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from calibration.boards.detection import CameraDetections
from calibration.boards.sightings import Sightings
from calibration.foundation.arrays import Bools, Ints
from calibration.foundation.errors import InputError

__all__ = [
    "BLUR_PX",
    "BLUR_RATIO",
    "STILL_PX",
    "FrameChoice",
    "choose_frames",
    "refuse_rolling_duplicates",
    "sharp_views",
]

BLUR_RATIO, BLUR_PX = 2.0, 3.0  # a view is blurred if its edges are twice the camera's usual width and over 3 px
STILL_PX = 0.5  # a frame repeats the last one kept if three quarters of all corners moved less
CELLS = (10, 8)


@dataclass(frozen=True)
class FrameChoice:
    """Frames that showed a board, that repeated the last one kept, that were chosen; views left out as blurred."""

    seen: int
    still: int
    chosen: int
    blurred_views: int


def sharp_views(detections: CameraDetections) -> tuple[CameraDetections, int]:
    """Return the detections without blurred views, and how many those were."""
    widths = np.array([view.edge_px for _, view in detections.views])
    if len(widths) < 5:
        return detections, 0
    limit = max(BLUR_RATIO * float(np.nanmedian(widths)), BLUR_PX)
    keep = ~(widths > limit)
    views = tuple(entry for entry, good in zip(detections.views, keep, strict=True) if good)
    return (
        CameraDetections(detections.name, detections.size, detections.frame, detections.fresh, views),
        int((~keep).sum()),
    )


def refuse_rolling_duplicates(cameras: Sequence[CameraDetections], share: float = 0.2) -> list[str]:
    """Return a note on repeated frames; raise an error where one camera repeats many while others move on."""
    notes = []
    for camera in cameras:
        repeated = ~camera.fresh
        repeated[:1] = False
        others = [c for c in cameras if c is not camera and len(c.fresh) == len(camera.fresh)]
        moving = np.any([c.fresh for c in others], axis=0) if others else np.zeros(len(repeated), np.bool_)
        alone = repeated & moving
        if alone.mean() > share:
            raise InputError(
                f"camera '{camera.name}' repeats {int(alone.sum())} of {len(alone)} frames (first: frame "
                f"{int(camera.frame[np.flatnonzero(alone)[0]])}) while the others move on: it dropped frames and its "
                "clock drifts; record again, or give timestamps and re-time the video"
            )
        if repeated.any():
            notes.append(f"camera '{camera.name}': {int(repeated.sum())} frames repeat the one before and were skipped")
    return notes


def choose_frames(sightings: Sightings, most: int) -> tuple[Sightings, FrameChoice]:
    """Keep up to ``most`` frames: one of each still stretch, then those that add most to what was covered.

    The corners of a still stretch are their median over it. Covered are (camera, image cell, apparent size and
    slant) triples; each time a triple is seen again it counts
    less (1, 1/2, 1/3 ...). Frames that only one camera sees count, but less: they say nothing of the poses.
    """
    frames = np.unique(sightings.frame)
    moved = _moved(sightings, frames)
    kept = frames[moved]
    averaged = _average(sightings, frames, moved)
    if len(kept) > most:
        kept = kept[_greedy(averaged, kept, most)]
    choice = FrameChoice(len(frames), int((~moved).sum()), len(kept), 0)
    return averaged.of_frames(kept), choice


def _average(sightings: Sightings, frames: Ints, moved: Bools) -> Sightings:
    """Return one frame per still stretch, its corners the median of the stretch."""
    if moved.all():
        return sightings
    first = frames[moved][np.cumsum(moved) - 1]
    frame = first[np.searchsorted(frames, sightings.frame)]
    key = np.stack([frame, sightings.board, sightings.camera, sightings.corner], 1)
    unique, index, count = np.unique(key, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(index.ravel(), kind="stable")
    groups = np.split(order, np.cumsum(count)[:-1])
    pixels = np.array([np.median(sightings.pixels[g], axis=0) for g in groups])
    velocity = np.array([sightings.velocity[g].mean(0) for g in groups])
    return replace(
        sightings,
        frame=unique[:, 0],
        board=unique[:, 1],
        camera=unique[:, 2],
        corner=unique[:, 3],
        pixels=pixels,
        velocity=velocity,
    ).sorted()


def _moved(sightings: Sightings, frames: Ints) -> Bools:
    """Return for each frame whether it differs from the last one kept."""
    key = (sightings.camera * max(len(sightings.boards), 1) + sightings.board) * 100_000 + sightings.corner
    starts = np.searchsorted(sightings.frame, frames)
    ends = np.append(starts[1:], len(sightings))
    keep = np.ones(len(frames), np.bool_)
    last: dict[int, np.ndarray] = {}
    for i, (a, b) in enumerate(zip(starts, ends, strict=True)):
        here = dict(zip(key[a:b].tolist(), sightings.pixels[a:b], strict=True))
        common = [k for k in here if k in last]
        if len(common) == len(here) == len(last) or len(common) > 0.8 * max(len(here), len(last), 1):
            steps = [float(np.abs(here[k] - last[k]).max()) for k in common]
            # the upper quartile: single corners of an oblique board jitter more
            keep[i] = (np.percentile(steps, 75) if steps else np.inf) > STILL_PX
        if keep[i]:
            last = here
    return keep


def _greedy(sightings: Sightings, frames: Ints, most: int) -> Ints:
    """Return the positions of the chosen frames, ascending."""
    position = {int(f): i for i, f in enumerate(frames)}
    rows, keys = [], []
    for (camera, frame, _), chosen in sightings.views().items():
        if frame not in position:
            continue
        pixels = sightings.pixels[chosen]
        width, height = sightings.sizes[camera]
        cells = np.clip((pixels / [width, height] * CELLS).astype(int), 0, np.array(CELLS) - 1)
        spread = np.sqrt(np.maximum(np.linalg.eigvalsh(np.cov(pixels.T)), 1e-9))
        looks = int(np.clip(2 * np.log2(spread[1] / width * 64), 0, 15)) * 4 + int(3.99 * spread[0] / spread[1])
        code = (camera * CELLS[0] + cells[:, 0]) * CELLS[1] + cells[:, 1]
        unique = np.unique(code) * 64 + looks
        rows += [position[frame]] * len(unique)
        keys += unique.tolist()
    columns, index = np.unique(keys, return_inverse=True)
    matrix = csr_array((np.ones(len(rows)), (np.array(rows), index)), shape=(len(frames), len(columns)))
    cameras = np.zeros(len(frames))
    for camera in range(len(sightings.cameras)):
        seen = np.isin(frames, sightings.frame[sightings.camera == camera])
        cameras += seen
    value = np.where(cameras >= 2, 1.0, 0.3)
    count = np.zeros(len(columns))
    picked: list[int] = []
    left = np.ones(len(frames), np.bool_)
    for _ in range(min(most, len(frames))):
        gain = np.where(left, value * (matrix @ (1.0 / (1.0 + count))), -1.0)
        best = int(np.argmax(gain))
        picked.append(best)
        left[best] = False
        count += matrix[[best]].toarray().ravel()
    return np.sort(np.array(picked, np.int64))
