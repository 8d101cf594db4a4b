"""Comma-separated points (.csv): one row per frame, columns ``<name>_x_mm``; unit, rate and axes in the file.

The first line is a comment, ``# vivarig markers rate_hz=120 up=z``; a table without it is read too, as long as a column
``time_s`` gives the rate and the column titles the unit.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from skeleton.motion_files.motions import MarkerSeries, millimetres_per
from skeleton.motion_files.rates import checked_rate, rate_from_times

__all__ = ["cells_as_numbers", "read_csv", "write_csv"]

_TITLE = re.compile(r"(?P<name>.+)_(?P<axis>[xyz])(?:_(?P<unit>mm|cm|m|px))?$")


def cells_as_numbers(rows: list[list[str]], first_line: int, who: str) -> Floats:
    """Return a table of cells as numbers; an empty cell or ``nan`` is missing."""
    width = len(rows[0]) if rows else 0
    table = np.empty((len(rows), width))
    for index, row in enumerate(rows):
        if len(row) != width:
            raise InputError(f"{who}:{first_line + index}: {len(row)} cells where the first row has {width}")
        try:
            table[index] = [float(cell) if cell.strip() else np.nan for cell in row]
        except ValueError:
            raise InputError(f"{who}:{first_line + index}: a cell is not a number") from None
    return table


def read_csv(
    path: Path | str, *, rate_hz: float | None = None, unit_mm: float | None = None, up: str = ""
) -> MarkerSeries:
    """Read a CSV table of points.

    Args:
        path: the file.
        rate_hz: frames per second, for a table without a rate or a ``time_s`` column.
        unit_mm: millimetres in one unit, for column titles without a unit (``<name>_x``).
        up: the vertical axis, for a table without the comment line.
    """
    source = Path(path)
    text = read_text(source)
    notes = dict(re.findall(r"(\w+)=(\S+)", text.splitlines()[0])) if text.startswith("#") else {}
    rows = [row for row in csv.reader(io.StringIO(text, newline=None)) if row and not row[0].startswith("#")]
    if not rows:
        raise InputError(f"{source}: an empty table")
    titles = [title.strip() for title in rows[0]]
    table = cells_as_numbers(rows[1:], 3 if notes else 2, str(source)).reshape(len(rows) - 1, len(titles))
    matches = {index: match for index, title in enumerate(titles) if (match := _TITLE.match(title))}
    if not matches:
        raise InputError(f"{source}: no column is called like '<name>_x_mm'; got {', '.join(titles[:6])}")
    units = {match["unit"] or "" for match in matches.values()}
    if len(units) > 1:
        raise InputError(f"{source}: columns in several units ({', '.join(sorted(units))}); write one table per unit")
    unit = units.pop()
    if unit == "" and unit_mm is None:
        raise InputError(f"{source}: the column titles hold no unit; pass unit_mm, or call columns '<name>_x_mm'")
    scale = 1.0 if unit == "px" else (millimetres_per(unit, str(source)) if unit else float(unit_mm or 1.0))
    axes = "xy" if unit == "px" else "xyz"
    names = tuple(dict.fromkeys(match["name"] for match in matches.values()))
    columns = {(match["name"], match["axis"]): index for index, match in matches.items()}
    missing = [f"{name}_{axis}" for name in names for axis in axes if (name, axis) not in columns]
    if missing:
        raise InputError(f"{source}: column '{missing[0]}' is missing")
    positions = np.stack([[table[:, columns[name, axis]] for axis in axes] for name in names]).transpose(2, 0, 1)
    positions = np.where(np.isfinite(positions).all(axis=-1, keepdims=True), positions * scale, np.nan)
    times = table[:, titles.index("time_s")] if "time_s" in titles else None
    if rate_hz is None:
        if "rate_hz" in notes:
            rate_hz = float(notes["rate_hz"])
            if times is not None:
                rate_hz = checked_rate(times, rate_hz, None, str(source))
        elif times is not None:
            rate_hz = rate_from_times(times, str(source))
        else:
            raise InputError(f"{source}: no rate and no column 'time_s'; pass rate_hz")
    known = {name: index for index, title in enumerate(titles) if (name := title.removesuffix("_confidence")) != title}
    confidence = None
    if all(name in known for name in names):
        confidence = table[:, [known[name] for name in names]]
    stated = {name: index for index, title in enumerate(titles) if (name := title.removesuffix("_sigma_mm")) != title}
    sigma = table[:, [stated[name] for name in names]] if all(name in stated for name in names) else None
    start = float(times[0]) if times is not None and len(times) else 0.0
    vertical = "" if unit == "px" else notes.get("up", up).strip("?")
    return MarkerSeries(
        names,
        positions,
        rate_hz,
        unit="px" if unit == "px" else "mm",
        up=vertical,
        confidence=confidence,
        start_s=start,
        sigma=sigma,
    )


def write_csv(series: MarkerSeries, path: Path | str) -> None:
    """Write a CSV table of points; unseen points are empty cells."""
    axes = "xyz" if series.unit == "mm" else "xy"
    titles = ["frame", "time_s", *(f"{name}_{axis}_{series.unit}" for name in series.names for axis in axes)]
    if series.confidence is not None:
        titles += [f"{name}_confidence" for name in series.names]
    if series.sigma is not None:
        titles += [f"{name}_sigma_mm" for name in series.names]
    stream = io.StringIO()
    stream.write(f"# vivarig markers rate_hz={series.rate_hz:.15g} up={series.up or '?'}\n")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(titles)
    for frame, time in enumerate(series.times()):
        values = list(series.positions[frame].ravel())
        if series.confidence is not None:
            values += list(series.confidence[frame])
        if series.sigma is not None:
            values += list(series.sigma[frame])
        writer.writerow([frame, f"{time:.9f}", *(f"{value:.10g}" if np.isfinite(value) else "" for value in values)])
    write_text(path, stream.getvalue())
