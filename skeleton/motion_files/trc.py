"""Track row column files (.trc): marker positions with rate and unit in the header, blanks where unseen."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from skeleton.motion_files.motions import MarkerSeries, millimetres_per
from skeleton.motion_files.rates import checked_rate

__all__ = ["read_trc", "write_trc"]


def read_trc(path: Path | str, *, up: str = "", rate_hz: float | None = None) -> MarkerSeries:
    """Read a TRC file.

    Args:
        path: the file.
        up: the vertical axis, which the format does not hold (OpenSim: "y").
        rate_hz: use this rate instead of the header's DataRate, whose disagreement with the time column is an
            error.
    """
    source = Path(path)
    lines = read_text(source).splitlines()
    if len(lines) < 6 or not lines[0].startswith("PathFileType"):
        raise InputError(f"{source}: not a TRC file (its first line must begin with 'PathFileType')")
    keys, words = lines[1].split(), lines[2].split()
    if len(words) < len(keys):
        raise InputError(f"{source}:3: {len(keys)} header fields are named, {len(words)} given")
    header = dict(zip(keys, words, strict=False))
    try:
        stated, count, scale = float(header["DataRate"]), int(header["NumMarkers"]), header["Units"]
    except (KeyError, ValueError):
        raise InputError(f"{source}:3: the header must give DataRate, NumMarkers and Units") from None
    names = [word.strip() for word in lines[3].split("\t")[2:] if word.strip()]
    if len(names) != count:
        raise InputError(f"{source}:4: NumMarkers says {count}, the column titles name {len(names)}")
    rows, times = [], []
    for number, line in enumerate(lines[5:], 6):
        if not line.strip():
            continue
        cells = line.split("\t") if "\t" in line else line.split()
        cells = (cells + [""] * (2 + 3 * count))[: 2 + 3 * count]
        try:
            times.append(float(cells[1]))
            rows.append([float(cell) if cell.strip() else np.nan for cell in cells[2:]])
        except ValueError:
            raise InputError(f"{source}:{number}: a cell of this row is not a number") from None
    if not rows:
        raise InputError(f"{source}: the header is there, but no frame")
    positions = np.array(rows).reshape(len(rows), count, 3) * millimetres_per(scale, str(source))
    rate = checked_rate(np.array(times), stated, rate_hz, str(source))
    return MarkerSeries(tuple(names), positions, rate, up=up, start_s=times[0])


def write_trc(series: MarkerSeries, path: Path | str) -> None:
    """Write a TRC file in millimetres; unseen points are left blank."""
    if series.unit != "mm":
        raise InputError(f"{path}: TRC holds 3D points, these are image points in {series.unit}")
    rate, count = f"{series.rate_hz:.10g}", len(series.names)
    lines = [
        f"PathFileType\t4\t(X/Y/Z)\t{Path(path).name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate}\t{rate}\t{series.frames}\t{count}\tmm\t{rate}\t1\t{series.frames}",
        "Frame#\tTime\t" + "\t\t\t".join(series.names) + "\t\t",
        "\t\t" + "\t".join(f"X{index}\tY{index}\tZ{index}" for index in range(1, count + 1)),
        "",
    ]
    for frame, time in enumerate(series.times()):
        cells = [f"{value:.9g}" if np.isfinite(value) else "" for value in series.positions[frame].ravel()]
        lines.append(f"{frame + 1}\t{time:.9f}\t" + "\t".join(cells))
    write_text(path, "\n".join(lines) + "\n")
