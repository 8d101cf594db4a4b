"""Files of 2D points that recording.toml names: read once, and told for each frame what to believe of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from capture.recordings.recording import Footage
from tracking.observations.contours import View
from tracking.observations.marks import Marks, MarkStatus
from tracking.points.believing import believe
from tracking.points.files import ImagePoints, read_image_points
from tracking.points.naming import body_names, load_point_names
from tracking.points.placing import own_points
from tracking.subjects.subject import Subject

__all__ = ["MarkedPoints", "load_marked_points", "marked_words"]


@dataclass(frozen=True, eq=False)
class MarkedPoints:
    """2D points of a recording.

    Attributes:
        names: a file's name -> the subject's own, for the P points that mean something.
        cameras: per camera of the rig its marks, None where it has none.
        offsets: (C,) frames by which each camera's clock is late.
    """

    names: dict[str, str]
    cameras: tuple[ImagePoints | None, ...]
    offsets: tuple[int, ...]

    def at(self, frame: int) -> tuple[Floats, Floats]:
        """Return the marks of one recording frame, pixels (C, P, 2) and confidence (C, P)."""
        pixels = np.full((len(self.cameras), len(self.names), 2), np.nan)
        confidence = np.zeros(pixels.shape[:2])
        for index, (camera, offset) in enumerate(zip(self.cameras, self.offsets, strict=True)):
            row = frame + offset
            if camera is None or not 0 <= row < len(camera.pixels):
                continue
            for column, name in enumerate(self.names):
                if name in camera.names:
                    at = camera.names.index(name)
                    pixels[index, column], confidence[index, column] = (
                        camera.pixels[row, at],
                        camera.confidence[row, at],
                    )
        return pixels, confidence

    def believed(self, frame: int, rig: Rig, views: Sequence[View]) -> Marks:
        """Return what to believe of one frame's marks."""
        return believe(rig, views, *self.at(frame))


def load_marked_points(
    footage: Sequence[Footage], names_file: Path | None, rate_hz: float, subject: Subject, cameras: Sequence[str]
) -> MarkedPoints | None:
    """Read the points of some cameras; None where recording.toml names none.

    Raises:
        InputError: a file cannot be read, or none of its names means a point of the subject.
    """
    by_name = {one.name: one for one in footage}
    sources = [by_name[name].points for name in cameras]
    if all(source is None for source in sources):
        return None
    read = tuple(None if source is None else _read(source, rate_hz) for source in sources)
    own = list(own_points(subject))
    chosen = None if names_file is None else load_point_names(names_file, own)
    given = list(dict.fromkeys(name for one in read if one is not None for name in one.names))
    names = body_names(given, own, chosen)
    if not names:
        raise InputError(
            f"points: none of {', '.join(given[:8])} is known to be a point of subject '{subject.name}'; say which "
            'they are in a TOML ([points] NAME = "left_wrist") that point_names of recording.toml names'
        )
    return MarkedPoints(names, read, tuple(round(by_name[name].offset_frames) for name in cameras))


@lru_cache(maxsize=64)
def _read(source: Path, rate_hz: float) -> ImagePoints:
    return read_image_points(source, rate_hz=rate_hz)


def marked_words(names: Sequence[str], status: Ints) -> list[str]:
    """Say what became of the marks, ``status`` (T, C, P)."""
    given = np.count_nonzero(status, axis=(0, 1))
    total = int(given.sum())
    if not total:
        return ["  points: none of the marks falls on a frame and camera that was tracked"]
    used = np.isin(status, (int(MarkStatus.CONFIRMED), int(MarkStatus.ALONE)))
    against = np.isin(status, (int(MarkStatus.OFF_THE_SILHOUETTE), int(MarkStatus.CONTRADICTS_OUTLINES)))
    lines = [
        f"  points: {len(names)} names, {total} marks; {100 * used.sum() / total:.0f} % used, "
        f"{100 * against.sum() / total:.0f} % dropped off the silhouettes, "
        f"{100 * np.mean(status[status > 0] == int(MarkStatus.OTHER_VIEWS_DISAGREE)):.0f} % against other views"
    ]
    bad = [name for k, name in enumerate(names) if given[k] and used[:, :, k].sum() < 0.5 * given[k]]
    if bad:
        lines.append(f"  points mostly dropped: {', '.join(bad)}")
    return lines
