"""All beads of a clip gathered from several starting frames: those hidden, merged or outside the picture in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from tracking.beads.starting import StartSet
from tracking.beads.tracks import BeadTracks, unique_names

__all__ = ["gather_beads"]

#: Two tracks nearer than this in each view are of one spot, px.
SAME_PX = 1.5
#: Frames in two views that a bead found late must last: what is seen for less is a chance match of two spots.
SHORTEST = 10

#: (starting points (C, B, 2) px, frame, speeds (C, B, 2) px per frame) -> the beads followed to both ends of the clip.
Follow = Callable[[Floats, int, Floats], BeadTracks]


def gather_beads(sets: Sequence[StartSet], follow: Follow) -> BeadTracks:
    """Follow the beads of the first set, then with them those of the other sets that turn out to be others.

    Two beads that overlap can only be told apart when both are known: so the known ones are followed again, from the
    frame and together with each that has come up.

    Args:
        sets: starting points at some frames, the one with most beads first (see `find_starts`).
    """
    known = follow(sets[0].pixels, sets[0].frame, sets[0].speeds)
    for other in sets[1:]:
        fresh = ~_claimed(other.pixels, known.pixels[other.frame])
        if not fresh.any():
            continue
        here = _seen_twice(known)[:, other.frame]
        again = follow(
            np.concatenate([known.pixels[other.frame][:, here], other.pixels[:, fresh]], axis=1),
            other.frame,
            np.concatenate([_speeds(known, other.frame)[:, here], other.speeds[:, fresh]], axis=1),
        )
        count, old = len(known.names), int(here.sum())
        joined = _joined(known, _taken(again, range(old, len(again.names))))
        if len(joined.names) > count:
            where = np.append(here, np.zeros(len(joined.names) - count, dtype=bool))
            joined = _filled(_put(joined, _taken(again, range(old)), where), joined)
        known = joined
    return replace(known, names=unique_names(len(known.names)))


def _speeds(tracks: BeadTracks, frame: int) -> Floats:
    """Return (C, B, 2) px per frame, from the frames before and after; NaN where they are lost."""
    ends = max(frame - 1, 0), min(frame + 1, len(tracks) - 1)
    return np.asarray((tracks.pixels[ends[1]] - tracks.pixels[ends[0]]) / max(ends[1] - ends[0], 1))


def _seen_twice(tracks: BeadTracks) -> Bools:
    """Return (B, T) whether two views or more see a bead."""
    return np.asarray(tracks.found.sum(axis=1) >= 2).T


def _claimed(points: Floats, tracked: Floats) -> Bools:
    """Return (B,) whether each of (C, B, 2) points is where a known bead, (C, K, 2), is in all views that have both."""
    distance = np.linalg.norm(points[:, :, None] - tracked[:, None], axis=-1)
    with np.errstate(invalid="ignore"):
        near = np.where(np.isfinite(distance), distance < SAME_PX, True).all(axis=0)
    return np.asarray((near & (np.isfinite(distance).sum(axis=0) >= 2)).any(axis=1))


def _joined(known: BeadTracks, late: BeadTracks) -> BeadTracks:
    """Add tracks: those that run into a known bead's continue it, those that last are new beads."""
    for bead in range(len(late.names)):
        one = _taken(late, [bead])
        if int(_seen_twice(one).sum()) < SHORTEST:
            continue
        distance = np.linalg.norm(known.pixels - one.pixels, axis=-1)
        both = np.isfinite(distance).all(axis=1)
        with np.errstate(invalid="ignore"):
            same = (both & (distance.max(axis=1) < SAME_PX)).sum(axis=0)
        share = same / np.maximum(both.sum(axis=0), 1)
        k = int(np.argmax(same))
        if same[k] >= 3 and share[k] > 0.8:
            known = _filled(known, _put(known, one, np.arange(len(known.names)) == k))
        else:
            known = _appended(known, one)
    return known


def _taken(tracks: BeadTracks, beads: Sequence[int]) -> BeadTracks:
    index = np.asarray(beads, dtype=np.int64)
    return BeadTracks(
        tuple(tracks.names[b] for b in beads),
        tracks.cameras,
        tracks.pixels[:, :, index],
        tracks.covariance[:, :, index],
        tracks.status[:, :, index],
        tracks.sigma[:, index],
        tracks.contrast[:, index],
    )


def _appended(first: BeadTracks, second: BeadTracks) -> BeadTracks:
    return BeadTracks(
        unique_names(len(first.names) + len(second.names)),
        first.cameras,
        *(np.concatenate([getattr(first, k), getattr(second, k)], axis=2) for k in ("pixels", "covariance", "status")),
        *(np.concatenate([getattr(first, k), getattr(second, k)], axis=1) for k in ("sigma", "contrast")),
    )


def _put(tracks: BeadTracks, new: BeadTracks, where: Bools) -> BeadTracks:
    """Return the tracks with those of the beads ``where`` (B,) replaced by new ones, in order."""
    pixels, covariance, status = tracks.pixels.copy(), tracks.covariance.copy(), tracks.status.copy()
    sigma, contrast = tracks.sigma.copy(), tracks.contrast.copy()
    pixels[:, :, where], covariance[:, :, where], status[:, :, where] = new.pixels, new.covariance, new.status
    sigma[:, where], contrast[:, where] = new.sigma, new.contrast
    return BeadTracks(tracks.names, tracks.cameras, pixels, covariance, status, sigma, contrast)


def _filled(tracks: BeadTracks, older: BeadTracks) -> BeadTracks:
    """Fill what is lost from older tracks of the same beads, where no other bead is at that place."""
    fill = ~tracks.found & older.found
    for t, c, b in zip(*np.nonzero(fill), strict=True):
        others = np.delete(tracks.pixels[t, c], b, axis=0)
        if np.nanmin(np.append(np.linalg.norm(others - older.pixels[t, c, b], axis=1), np.inf)) < 3.0 * SAME_PX:
            fill[t, c, b] = False
    return replace(
        tracks,
        pixels=np.where(fill[..., None], older.pixels, tracks.pixels),
        covariance=np.where(fill[..., None, None], older.covariance, tracks.covariance),
        status=np.where(fill, older.status, tracks.status),
    )
