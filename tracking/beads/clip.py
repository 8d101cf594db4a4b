"""A clip of synchronous views, and beads followed through it forwards and backwards from one frame."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.xray.attenuation import Polarity, attenuation_table, blind_rim, grey_image
from tracking.beads.candidates import nearby_maxima, refine_group
from tracking.beads.epipolar import EpipolarGeometry
from tracking.beads.tracker import BeadTracker, BeadTrackerSettings
from tracking.beads.tracks import BeadTracks, PointStatus

__all__ = ["ArrayClip", "Clip", "recover_lost", "track_beads", "track_clip"]

#: Frames held in memory at once when a clip is read backwards.
CHUNK = 32


class Clip(Protocol):
    """Synchronous images of several views."""

    def __len__(self) -> int:
        """Return the number of frames."""
        ...

    def chunk(self, start: int, stop: int) -> list[list[NDArray[Any]]]:
        """Return for each frame from ``start`` up to ``stop`` one image per view."""
        ...


@dataclass(frozen=True, eq=False)
class ArrayClip:
    """A clip held in memory: one (T, H, W) array per view."""

    views: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        return len(self.views[0])

    def chunk(self, start: int, stop: int) -> list[list[NDArray[Any]]]:
        """Return for each frame from ``start`` up to ``stop`` one image per view."""
        return [[view[t] for view in self.views] for t in range(start, min(stop, len(self)))]


def forwards(clip: Clip, start: int = 0) -> Iterator[list[NDArray[Any]]]:
    """Yield the frames from ``start`` to the end."""
    for at in range(start, len(clip), CHUNK):
        yield from clip.chunk(at, min(at + CHUNK, len(clip)))


def backwards(clip: Clip, start: int) -> Iterator[list[NDArray[Any]]]:
    """Yield the frames from ``start`` down to the first."""
    for stop in range(start + 1, 0, -CHUNK):
        yield from reversed(clip.chunk(max(stop - CHUNK, 0), stop))


# Twelve parameters: the clip and the starts, then keywords of what else is known.
def track_beads(
    frames: Iterable[Sequence[NDArray[Any]]],
    starts: Floats,
    *,
    names: Sequence[str],
    cameras: Sequence[str],
    speeds: Floats | None = None,
    polarity: Sequence[Polarity] | None = None,
    sigma_px: float | None = None,
    geometry: EpipolarGeometry | None = None,
    given: Mapping[int, Floats] | None = None,
    frame_numbers: Callable[[int], int] = int,
    settings: BeadTrackerSettings | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> BeadTracks:
    """Follow beads from their places in the first frame through a clip.

    Args:
        frames: for each frame one image per view, (H, W) uint8 or uint16; read once, in order.
        starts: (C, B, 2) px in the first frame; NaN where a bead is not visible or not known.
        speeds: (C, B, 2) px per frame in the first frame, where known (NaN: not).
        polarity: per view, "dark" unless said.
        sigma_px: Gaussian radius of the beads in the image; measured at the starts unless given.
        geometry: epipolar relation of the views; learnt from the tracks unless given.
        given: frame -> (C, B, 2) points that the user fixed; they are kept exactly.
        frame_numbers: number in the film of the n-th frame read here, for a geometry that moves.
        on_progress: called with the number of frames done.
    """
    starts = np.asarray(starts, dtype=np.float64)
    if starts.shape != (len(cameras), len(names), 2):
        raise InputError(f"starting points must be ({len(cameras)} cameras, {len(names)} beads, 2), got {starts.shape}")
    if not np.isfinite(starts).any():
        raise InputError("no bead has a starting point: label the first frame, or leave the starts out")
    corrections = dict(given or {})
    tracker: BeadTracker | None = None
    rows: list[tuple[Floats, Floats, NDArray[np.uint8]]] = []
    for index, images in enumerate(frames):
        if len(images) != len(cameras):
            raise InputError(f"frame {index} has {len(images)} images for {len(cameras)} cameras")
        if tracker is None:
            tracker = BeadTracker(
                images,
                starts,
                polarity=polarity or ["dark"] * len(cameras),
                sigma_px=sigma_px,
                geometry=None if geometry is None else geometry.at(frame_numbers(0)),
                speeds=speeds,
                settings=settings,
            )
            tracker.fix(corrections.get(index))
        else:
            if geometry is not None:
                tracker.geometry = geometry.at(frame_numbers(index))
            tracker.step(images, corrections.get(index))
        rows.append((tracker.pixels.copy(), tracker.covariance.copy(), tracker.status.copy()))
        if on_progress is not None:
            on_progress(index + 1)
    if tracker is None:
        raise InputError("the clip has no frames")
    return BeadTracks(
        tuple(names),
        tuple(cameras),
        np.stack([row[0] for row in rows]),
        np.stack([row[1] for row in rows]),
        np.stack([row[2] for row in rows]),
        tracker.sigma,
        tracker.contrast,
    )


# Twelve parameters: those of `track_beads`.
def track_clip(
    clip: Clip,
    starts: Floats,
    *,
    start_frame: int = 0,
    names: Sequence[str],
    cameras: Sequence[str],
    speeds: Floats | None = None,
    polarity: Sequence[Polarity] | None = None,
    sigma_px: float | None = None,
    geometry: EpipolarGeometry | None = None,
    given: Mapping[int, Floats] | None = None,
    settings: BeadTrackerSettings | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> BeadTracks:
    """Follow beads from their places in one frame to both ends of a clip; arguments as in `track_beads`."""
    total = len(clip)
    if not 0 <= start_frame < total:
        raise InputError(f"starting points are for frame {start_frame}, the clip has {total} frames")
    fixed = dict(given or {})

    def follow(
        frames: Iterable[Sequence[NDArray[Any]]], corrections: dict[int, Floats], done: int, ahead: int
    ) -> BeadTracks:
        return track_beads(
            frames,
            starts,
            speeds=None if speeds is None else ahead * speeds,
            names=names,
            cameras=cameras,
            polarity=polarity,
            sigma_px=sigma_px,
            geometry=geometry,
            given=corrections,
            frame_numbers=lambda n: start_frame + ahead * n,
            settings=settings,
            on_progress=None if on_progress is None else lambda n: on_progress(done + n, total),
        )

    after = {f - start_frame: v for f, v in fixed.items() if f >= start_frame}
    later = follow(forwards(clip, start_frame), after, 0, 1)
    if start_frame == 0:
        return later
    before = {start_frame - f: v for f, v in fixed.items() if f <= start_frame}
    earlier = follow(backwards(clip, start_frame), before, total - start_frame, -1)
    return BeadTracks(
        later.names,
        later.cameras,
        np.concatenate([earlier.pixels[:0:-1], later.pixels]),
        np.concatenate([earlier.covariance[:0:-1], later.covariance]),
        np.concatenate([earlier.status[:0:-1], later.status]),
        later.sigma,
        later.contrast,
    )


def recover_lost(
    clip: Clip,
    tracks: BeadTracks,
    expected: Floats,
    *,
    reach_px: float = 2.5,
    polarity: Sequence[Polarity] | None = None,
) -> BeadTracks:
    """Look again for lost beads where better knowledge, such as their bone, expects them: (T, C, B, 2) raw px.

    A spot counts if it is the only one within ``reach_px``, has the bead's size and contrast, and belongs to no
    other bead.
    """
    wanted = ~tracks.found & np.isfinite(expected[..., 0])
    pixels, covariance, status = tracks.pixels.copy(), tracks.covariance.copy(), tracks.status.copy()
    sides: list[Polarity] = list(polarity) if polarity is not None else ["dark"] * len(tracks.cameras)
    first = clip.chunk(0, 1)[0]
    blind = [blind_rim(grey_image(image), side) for image, side in zip(first, sides, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a bead never seen in a view has no usual fit there
        usual = np.nanmedian(np.trace(tracks.covariance, axis1=3, axis2=4), axis=0)
    for t in np.flatnonzero(wanted.any(axis=(1, 2))):
        images = clip.chunk(int(t), int(t) + 1)[0]
        for c, b in zip(*np.nonzero(wanted[t]), strict=True):
            grey = grey_image(images[c])
            table = attenuation_table(grey.dtype, sides[c])
            sigma, contrast = float(tracks.sigma[c, b]), float(tracks.contrast[c, b])
            near, _ = nearby_maxima(grey, table, expected[t, c, b], reach_px + 1.0, sigma, 0.5 * contrast)
            if len(near) != 1:
                continue
            others = np.linalg.norm(pixels[t, c] - near[0], axis=1)
            if np.nanmin(np.append(others, np.inf)) < 2.0 * sigma:
                continue
            fitted, cov = refine_group(
                grey, table, near, np.array([sigma]), np.array([contrast]), hold=False, blind=blind[c]
            )
            alike = np.isfinite(fitted).all() and np.abs(np.log(fitted[0, 2:] / [sigma, contrast])).max() < np.log(1.7)
            # A fit far worse than this bead's others holds something else as well.
            clean = np.trace(cov[0]) < 5.0 * usual[c, b]
            if alike and clean and np.hypot(*(fitted[0, :2] - expected[t, c, b])) < reach_px:
                pixels[t, c, b], covariance[t, c, b] = fitted[0, :2], cov[0]
                status[t, c, b] = PointStatus.TRACKED
    return BeadTracks(tracks.names, tracks.cameras, pixels, covariance, status, tracks.sigma, tracks.contrast)
