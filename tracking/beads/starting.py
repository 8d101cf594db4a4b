"""Beads found with no starting points: spots that persist in each view, matched across views by their motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import SolveError
from calibration.xray.attenuation import Polarity, blind_rim, grey_image
from calibration.xray.spots import Spots, find_spots
from tracking.beads.clip import Clip, track_beads
from tracking.beads.epipolar import EpipolarGeometry
from tracking.beads.tracks import BeadTracks, unique_names

__all__ = ["StartSet", "find_starts"]

SIGMAS = (1.1, 1.6, 2.3, 3.3, 4.7)
#: Spots per view that are followed: more than any animal carries, few enough to be quick.
MOST = 80


@dataclass(frozen=True, eq=False)
class StartSet:
    """Beads at one frame.

    Attributes:
        frame: its number.
        pixels: (C, B, 2) px; NaN in views beyond the first two.
        speeds: (C, B, 2) px per frame; NaN where unknown.
    """

    frame: int
    pixels: Floats
    speeds: Floats


def strongest_spots(
    image: NDArray[Any], *, polarity: Polarity = "dark", sigma_px: float | None = None, usual: int = 4
) -> Spots:
    """Find spots that look like beads, strongest first.

    Unless the size is told, it is the smallest at which some (``usual``) spots stand clear of the noise: ends of ribs
    and vertebrae are round too, but larger.
    """
    grey = grey_image(image)
    nothing = Spots(np.empty((0, 2)), np.empty(0), np.empty(0), np.empty((0, 2, 2)), np.empty(0))
    best = nothing
    for sigma in SIGMAS if sigma_px is None else (sigma_px,):
        spots = find_spots(
            grey,
            sigma=sigma,
            polarity=polarity,
            min_score=6.0,
            min_contrast=0.12,
            max_count=400,
            sigma_range=(0.6, 1.7),
        )
        clear = int((spots.score > 12.0).sum())
        if clear >= usual or len(best) == 0:
            best = spots
        if clear >= usual:
            break
    best = best.take(np.flatnonzero(_exposed(grey, best, polarity)))
    return best.take(np.argsort(-_strength(best), kind="stable")[:MOST])


def _exposed(grey: NDArray[Any], spots: Spots, polarity: Polarity) -> NDArray[np.bool_]:
    """Whether each spot lies clear of the unexposed rim, whose edge is full of round corners."""
    blind = blind_rim(grey, polarity)
    if blind.size == 0 or len(spots) == 0:
        return np.ones(len(spots), dtype=bool)
    distance = cv2.distanceTransform(1 - blind, cv2.DIST_L2, 5)
    at = np.rint(spots.pixels).astype(np.int64)
    height, width = grey.shape
    inside = distance[np.clip(at[:, 1], 0, height - 1), np.clip(at[:, 0], 0, width - 1)]
    return np.asarray(inside > 6.0 + 2.0 * spots.sigma)


def _strength(spots: Spots) -> Floats:
    """Return how much a spot looks like a bead: signal to noise, damped beyond 30 where noise no longer limits."""
    score = spots.score * spots.sigma
    return np.asarray(spots.contrast * score / (1.0 + score / 30.0))


def find_starts(
    clip: Clip,
    geometry: EpipolarGeometry,
    *,
    cameras: Sequence[str],
    polarity: Sequence[Polarity],
    sigma_px: float | None = None,
    frames: int = 12,
    tries: int = 4,
    gate: float = 2.5,
) -> list[StartSet]:
    """Find the beads that two views show, at some frames spread over the clip.

    In each view, spots are followed for some frames; a bead is a pair of such tracks that stays on its epipolar
    lines (root mean square within ``gate`` sigmas) as both move.

    Returns:
        the beads at each frame tried that shows some, the frame with most of them first.

    Raises:
        SolveError: no bead was matched; its report holds the spots per view.
    """
    sets: list[StartSet] = []
    report: list[Floats] = []
    last = max(len(clip) - frames, 0)
    for at in dict.fromkeys(round(last * k / max(tries - 1, 1)) for k in range(tries)):
        images = clip.chunk(at, min(at + frames, len(clip)))
        tracks: list[BeadTracks] = []
        for view in range(2):
            spots = strongest_spots(images[0][view], polarity=polarity[view], sigma_px=sigma_px)
            report.append(spots.pixels)
            if len(spots) == 0:
                break
            tracks.append(
                track_beads(
                    [[frame[view]] for frame in images],
                    spots.pixels[None],
                    names=unique_names(len(spots)),
                    cameras=[cameras[view]],
                    polarity=[polarity[view]],
                )
            )
        if len(tracks) < 2:
            continue
        matched = _matched(tracks[0], tracks[1], geometry.at(at + len(images) // 2), gate)
        if matched.shape[2]:
            starts = np.full((2, len(cameras), matched.shape[2], 2), np.nan)
            starts[:, :2] = matched
            sets.append(StartSet(at, starts[0], starts[1]))
    if not sets:
        raise SolveError(
            f"no bead found in both '{cameras[0]}' and '{cameras[1]}'"
            f" ({', '.join(str(len(p)) for p in report[:2])} spots in the first frame): check the calibration and the"
            " synchronisation, or give starting points",
            report,
        )
    return sorted(sets, key=lambda one: -one.pixels.shape[1])


def _matched(first: BeadTracks, second: BeadTracks, geometry: EpipolarGeometry, gate: float) -> Floats:
    """Return (2, 2, B, 2) places and speeds in the first frame of the track pairs that obey the epipolar geometry."""
    a, b = first.pixels[:, 0], second.pixels[:, 0]
    frames = len(a)
    lasting_a = np.flatnonzero(np.isfinite(a[..., 0]).mean(axis=0) > 0.7)
    lasting_b = np.flatnonzero(np.isfinite(b[..., 0]).mean(axis=0) > 0.7)
    if not len(lasting_a) or not len(lasting_b):
        return np.empty((2, 2, 0, 2))
    cost = np.full((len(lasting_a), len(lasting_b)), 1e6)
    for i, p in enumerate(lasting_a):
        distance = geometry.distance(0, np.broadcast_to(a[:, p, None], (frames, len(lasting_b), 2)), 1, b[:, lasting_b])
        both = np.isfinite(distance).sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rms = np.sqrt(np.nansum(distance**2, axis=0) / both)
        alike = np.abs(np.log(first.contrast[0, p] / second.contrast[0, lasting_b]))
        good = (both >= 0.5 * frames) & (rms < gate * geometry.sigma_px)
        # The same metal has about the same contrast in both views; tissue on the way changes it little.
        cost[i] = np.where(good, (rms / geometry.sigma_px) ** 2 + (alike / 0.5) ** 2, 1e6)
    rows, columns = linear_sum_assignment(cost)
    kept = [(lasting_a[i], lasting_b[j]) for i, j in zip(rows, columns, strict=True) if cost[i, j] < 1e5]
    if not kept:
        return np.empty((2, 2, 0, 2))
    strength = np.array([first.contrast[0, i] * second.contrast[0, j] for i, j in kept])
    usual = float(np.median(np.sort(strength)[len(strength) // 2 :]))
    pairs = [pair for pair, s in zip(kept, strength, strict=True) if s > 0.12 * usual]
    pairs.sort(key=lambda pair: tuple(a[0, pair[0]]))
    start = np.array([[_first(a[:, i]), _first(b[:, j])] for i, j in pairs])
    return start.transpose(2, 1, 0, 3)


def _first(track: Floats) -> Floats:
    """Return the place in the first frame (where the track begins later, its first place) and the speed there."""
    at = int(np.flatnonzero(np.isfinite(track[:, 0]))[0])
    return np.stack([track[at], track[at + 1] - track[at] if at + 1 < len(track) else np.full(2, np.nan)])
