"""Anipose 3D tables (.csv): columns ``<name>_x``, ``_y``, ``_z``, ``_error``, ``_ncams``, ``_score`` and ``fnum``."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text
from skeleton.motion_files.motions import MarkerSeries
from skeleton.motion_files.table import cells_as_numbers

__all__ = ["is_anipose", "read_anipose"]


def is_anipose(titles: list[str]) -> bool:
    """Say whether CSV column titles are those of an Anipose 3D table."""
    return "fnum" in titles and any(title.endswith("_ncams") for title in titles)


def read_anipose(path: Path | str, *, rate_hz: float, unit_mm: float, up: str = "") -> MarkerSeries:
    """Read an Anipose 3D table.

    Args:
        path: the file of ``pose-3d``.
        rate_hz: frames per second (not in the file).
        unit_mm: millimetres in one unit: that of the calibration board's square (not in the file).
        up: the vertical axis (Anipose's own frame is that of its first camera or of the axes in its config).
    """
    source = Path(path)
    rows = [row for row in csv.reader(io.StringIO(read_text(source), newline=None)) if row]
    if not rows or not is_anipose(rows[0]):
        raise InputError(f"{source}: not an Anipose 3D table (no columns 'fnum' and '<name>_ncams')")
    titles = rows[0]
    table = cells_as_numbers(rows[1:], 2, str(source)).reshape(len(rows) - 1, len(titles))
    names = tuple(title.removesuffix("_ncams") for title in titles if title.endswith("_ncams"))
    try:
        points = np.stack([table[:, [titles.index(f"{name}_{axis}") for name in names]] for axis in "xyz"], axis=-1)
    except ValueError as error:
        raise InputError(f"{source}: a coordinate column is missing ({error})") from None
    frames = table[:, titles.index("fnum")]
    if len(frames) and not np.array_equal(frames, np.arange(len(frames)) + frames[0]):
        raise InputError(f"{source}: frame numbers in 'fnum' jump; fill the gaps with empty rows first")
    scores = [f"{name}_score" for name in names]
    confidence = table[:, [titles.index(score) for score in scores]] if set(scores) <= set(titles) else None
    start = float(frames[0]) / rate_hz if len(frames) else 0.0
    return MarkerSeries(names, points * unit_mm, rate_hz, up=up, confidence=confidence, start_s=start)
