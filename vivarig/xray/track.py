"""``vivarig xray track``: beads followed through the X-ray films, from labels or found by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.xray.attenuation import Polarity
from calibration.xray.cube import draw_cube
from tracking.beads.session import follow_beads
from tracking.beads.store import load_maps, save_tracks
from tracking.beads.tracks import BeadTracks, PointStatus
from tracking.beads.xmalab_files import PixelConvention, read_points_2d, write_points_2d
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.xray.recording import XrayFolder, open_clip, write_picture

__all__ = ["track"]


def track(
    folder: XrayFolder,
    *,
    cameras: Sequence[str] | None,
    start: Path | None,
    corrections: Path | None,
    one_based: bool,
    y_up: bool,
    bead_sigma: float | None,
    polarity: Polarity,
) -> CommandReport:
    """Follow the beads and write their tracks.

    Args:
        folder: of the recording.
        cameras: views to use (None: the X-ray ones).
        start: XMALab 2D points whose first frame with most labels starts the beads (None: found).
        corrections: XMALab 2D points that are kept exactly.
        one_based: those files count pixels from 1.
        y_up: in those files y grows upwards.
        bead_sigma: Gaussian radius of a bead, px (None: measured).
        polarity: of the beads.
    """
    names = tuple(cameras) if cameras else folder.cameras
    rig = folder.rig().subset(names)
    maps = load_maps(folder.maps)
    clip = open_clip(folder.recording, names)
    convention = PixelConvention(first=1 if one_based else 0, y_up=y_up, height=clip.stacks[0].size[1])
    first = _Start(None, 0, None) if start is None else _start(start, convention, len(names), len(clip))
    given: dict[int, Floats] = {}
    if corrections is not None:
        labels, fixed = _labels(corrections, convention, len(names), len(clip))
        if first.beads is None:
            raise InputError("--corrections needs --start, whose bead names they use")
        given = _corrections(corrections, labels, fixed, first.beads)
    with progress_callback("beads") as on_progress:
        tracks = follow_beads(
            clip,
            rig,
            maps,
            starts=first.places,
            start_frame=first.frame,
            names=first.beads,
            given=given,
            polarity=[polarity] * len(names),
            sigma_px=bead_sigma,
            on_progress=on_progress,
        )
    save_tracks(folder.results / "tracks.h5", tracks, {"start": str(start) if start else "automatic"})
    write_points_2d(folder.results / "points_2d.csv", tracks.names, tracks.pixels)
    shown = int(np.argmax(tracks.found.sum(axis=(1, 2))))
    _draw_beads(folder, names, clip.chunk(shown, shown + 1)[0], tracks, shown)
    return _report(folder, names, tracks, shown)


@dataclass(frozen=True, eq=False)
class _Start:
    """Names of the beads, and the frame and places (C, n, 2), px, where they start; None: to be found."""

    beads: tuple[str, ...] | None
    frame: int
    places: Floats | None


def _start(path: Path, convention: PixelConvention, views: int, frames: int) -> _Start:
    """Return the first frame of a file that has the most labels: a bead without one there could not start."""
    beads, labelled = _labels(path, convention, views, frames)
    seen = np.isfinite(labelled[..., 0]).sum(axis=(1, 2))
    if not seen.any():
        raise InputError(f"{path}: no labelled frame")
    frame = int(np.argmax(seen))
    return _Start(beads, frame, labelled[frame])


def _corrections(path: Path, labels: tuple[str, ...], fixed: Floats, beads: tuple[str, ...]) -> dict[int, Floats]:
    """Return for each frame with corrections the places (C, n, 2) of the beads in their order, NaN where none."""
    given: dict[int, Floats] = {}
    for t in np.flatnonzero(np.isfinite(fixed[..., 0]).any(axis=(1, 2))):
        row = np.full((fixed.shape[1], len(beads), 2), np.nan)
        for b, label in enumerate(labels):
            if label not in beads:
                raise InputError(f"{path}: unknown bead '{label}'; the start has {', '.join(beads)}")
            row[:, beads.index(label)] = fixed[t, :, b]
        given[int(t)] = row
    return given


def _labels(path: Path, convention: PixelConvention, views: int, frames: int) -> tuple[tuple[str, ...], Floats]:
    """Read names and places (T, C, n, 2) of XMALab 2D points and check that they are of these views and frames."""
    names, cameras, pixels = read_points_2d(path, convention)
    if len(cameras) != views:
        raise InputError(f"{path}: points of {len(cameras)} cameras for {views} views")
    if len(pixels) > frames:
        raise InputError(f"{path}: {len(pixels)} rows for {frames} frames")
    return names, pixels


def _draw_beads(
    folder: XrayFolder, names: Sequence[str], images: Sequence[NDArray[Any]], tracks: BeadTracks, shown: int
) -> None:
    """Draw which bead is which, in one frame of each view."""
    for c, (name, image) in enumerate(zip(names, images, strict=True)):
        at = tracks.pixels[shown, c]
        write_picture(
            folder.results / f"beads_{name}.png", draw_cube(image, at[tracks.found[shown, c]], at, tracks.names)
        )


def _report(folder: XrayFolder, names: Sequence[str], tracks: BeadTracks, shown: int) -> CommandReport:
    share = tracks.found.mean(axis=0)
    lines = [f"{len(tracks.names)} beads in {len(tracks)} frames of {', '.join(names)}"]
    for b, bead in enumerate(tracks.names):
        lines.append(f"  {bead}: " + ", ".join(f"{n} {100 * share[c, b]:.0f} %" for c, n in enumerate(names)))
    lines.append(f"tracks: {folder.results / 'tracks.h5'}, points_2d.csv (XMALab: 0-based, y down, distorted)")
    lines.append(f"  which bead is which: beads_CAMERA.png beside them (frame {shown})")
    found = float(tracks.found.mean())
    numbers = {
        "beads": list(tracks.names),
        "frames": len(tracks),
        "found_share": found,
        "overlapping": int((tracks.status == PointStatus.OVERLAPPING).sum()),
    }
    good = found >= 0.5
    return CommandReport(lines, numbers, good, "" if good else f"beads found in only {100 * found:.0f} % of the images")
