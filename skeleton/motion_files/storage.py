"""OpenSim storage files (.mot, .sto): named columns over time, angles in degrees or radians as the header says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from skeleton.motion_files.motions import CoordinateSeries

__all__ = ["read_storage", "write_storage"]


def read_storage(path: Path | str) -> CoordinateSeries:
    """Read a MOT or STO file; values keep the file's units (`CoordinateSeries.in_degrees`)."""
    source = Path(path)
    lines = read_text(source).splitlines()
    ends = [index for index, line in enumerate(lines) if line.strip().lower() == "endheader"]
    if not ends:
        raise InputError(f"{source}: not a MOT or STO file (no line 'endheader')")
    header = dict(line.split("=", 1) for line in lines[: ends[0]] if "=" in line)
    header = {key.strip().lower(): value.strip() for key, value in header.items()}
    body = [(number, line) for number, line in enumerate(lines[ends[0] + 1 :], ends[0] + 2) if line.strip()]
    if not body:
        raise InputError(f"{source}: no column names after 'endheader'")
    names = body[0][1].split()
    if names[0].lower() != "time":
        raise InputError(f"{source}:{body[0][0]}: the first column must be 'time', got '{names[0]}'")
    rows = []
    for number, line in body[1:]:
        words = line.split()
        try:
            rows.append([float(word) for word in words])
        except ValueError:
            raise InputError(f"{source}:{number}: a cell of this row is not a number") from None
        if len(words) != len(names):
            raise InputError(f"{source}:{number}: {len(names)} columns are named, this row has {len(words)}")
    table = np.array(rows).reshape(len(rows), len(names))
    for key, got in (("nrows", len(rows)), ("ncolumns", len(names))):
        if key in header and int(header[key]) != got:
            raise InputError(f"{source}: the header says {key}={header[key]}, the file has {got}")
    degrees = header.get("indegrees", "no").lower() in ("yes", "true", "1")
    title = lines[0].strip() if "=" not in lines[0] else header.get("name", "")
    return CoordinateSeries(tuple(names[1:]), table[:, 1:], table[:, 0], degrees, title)


def write_storage(series: CoordinateSeries, path: Path | str) -> None:
    """Write a MOT or STO file; missing values are written as nan, which OpenSim reads."""
    lines = [
        series.title or "Coordinates",
        "version=1",
        f"nRows={len(series.times)}",
        f"nColumns={len(series.names) + 1}",
        f"inDegrees={'yes' if series.in_degrees else 'no'}",
        "endheader",
        "\t".join(("time", *series.names)),
    ]
    for time, row in zip(series.times, series.values, strict=True):
        lines.append("\t".join(f"{value:.12g}" for value in (time, *row)))
    write_text(path, "\n".join(lines) + "\n")
