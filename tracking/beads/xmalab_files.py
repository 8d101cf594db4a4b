"""Files of the X-ray community: XMALab's 2D, 3D and rigid-body tables, DeepLabCut's tables, both ways.

XMALab's 2D points are by default 0-based, y down, distorted (pixels of the image as brought), which is our own
convention; other choices are stated by the caller, since the file does not say.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import HUGE, Floats, measured
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from calibration.geometry.transforms import RigidTransform

__all__ = [
    "PixelConvention",
    "read_deeplabcut",
    "read_points_2d",
    "read_points_3d",
    "read_rigid_body",
    "write_deeplabcut",
    "write_points_2d",
    "write_points_3d",
    "write_rigid_body",
]


@dataclass(frozen=True)
class PixelConvention:
    """How a file counts pixels.

    Attributes:
        first: number of the first pixel's centre, 0 or 1.
        y_up: whether y grows upwards from the bottom row.
        height: image height, px; needed with ``y_up``.
    """

    first: int = 0
    y_up: bool = False
    height: int | None = None

    def to_ours(self, pixels: Floats) -> Floats:
        """Return (..., 2) pixels with (0, 0) the centre of the top-left one."""
        ours = pixels - self.first
        if self.y_up:
            ours[..., 1] = self._height() - 1 - ours[..., 1]
        return np.asarray(ours)

    def from_ours(self, pixels: Floats) -> Floats:
        """Return (..., 2) pixels as the file counts them."""
        theirs = np.array(pixels, dtype=np.float64)
        if self.y_up:
            theirs[..., 1] = self._height() - 1 - theirs[..., 1]
        return np.asarray(theirs + self.first)

    def _height(self) -> int:
        if self.height is None:
            raise InputError("pixels with y up need the height of the image")
        return self.height


OURS = PixelConvention()


def _table(path: Path | str) -> tuple[list[str], Floats]:
    """Read a CSV of numbers with one header line; empty cells and NaN are NaN."""
    rows = [row for row in csv.reader(io.StringIO(read_text(path), newline=None)) if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise InputError(f"{path}: wanted a header line and at least one row of numbers")
    header = [cell.strip() for cell in rows[0]]
    values = np.full((len(rows) - 1, len(header)), np.nan)
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InputError(f"{path}: line {number}: {len(row)} cells under a header of {len(header)}")
        for k, cell in enumerate(row):
            try:
                values[number - 2, k] = float(cell) if cell.strip() else np.nan
            except ValueError:
                raise InputError(f"{path}: line {number}: '{cell[:30]}' is not a number") from None
            if abs(values[number - 2, k]) > HUGE:
                raise InputError(f"{path}: line {number}: '{cell[:30]}' is infinite or absurd")
    return header, values


def _rows(values: Floats) -> list[str]:
    return [",".join("NaN" if not np.isfinite(v) else f"{v:.10g}" for v in row) for row in values]


@guarded("a table of points")
def read_points_2d(
    path: Path | str, convention: PixelConvention = OURS
) -> tuple[tuple[str, ...], tuple[str, ...], Floats]:
    """Read XMALab 2D points: bead names, camera labels ("cam1", ...), and (T, C, B, 2) pixels, NaN = gap."""
    header, values = _table(path)
    names: list[str] = []
    cameras: list[str] = []
    places: dict[tuple[str, str, str], int] = {}
    for k, label in enumerate(header):
        stem, _, axis = label.rpartition("_")
        name, _, camera = stem.rpartition("_")
        if axis.upper() not in ("X", "Y") or not name or not camera:
            raise InputError(f"{path}: column '{label}': wanted NAME_camN_X or NAME_camN_Y")
        names += [] if name in names else [name]
        cameras += [] if camera in cameras else [camera]
        places[name, camera, axis.upper()] = k
    pixels = np.full((len(values), len(cameras), len(names), 2), np.nan)
    for c, camera in enumerate(cameras):
        for b, name in enumerate(names):
            for a, axis in enumerate("XY"):
                if (name, camera, axis) in places:
                    pixels[:, c, b, a] = values[:, places[name, camera, axis]]
    return tuple(names), tuple(cameras), convention.to_ours(pixels)


def write_points_2d(path: Path | str, names: Sequence[str], pixels: Floats, convention: PixelConvention = OURS) -> None:
    """Write (T, C, B, 2) pixels as XMALab 2D points, cameras numbered from 1 in their order."""
    frames, cameras, beads, _ = pixels.shape
    header = [f"{name}_cam{c + 1}_{axis}" for name in names for c in range(cameras) for axis in "XY"]
    table = convention.from_ours(pixels).transpose(0, 2, 1, 3).reshape(frames, beads * cameras * 2)
    write_text(path, "\n".join([",".join(header), *_rows(table)]) + "\n")


@guarded("a table of points")
def read_points_3d(path: Path | str) -> tuple[tuple[str, ...], Floats]:
    """Read XMALab 3D points (``name_X,name_Y,name_Z``): names and (T, B, 3) in the file's unit."""
    header, values = _table(path)
    names = [label.rpartition("_")[0] for label in header[::3]]
    wanted = [f"{name}_{axis}" for name in names for axis in "XYZ"]
    if [label.upper() for label in header] != [label.upper() for label in wanted]:
        raise InputError(f"{path}: wanted columns NAME_X,NAME_Y,NAME_Z for each bead")
    return tuple(names), values.reshape(len(values), -1, 3)


def write_points_3d(path: Path | str, names: Sequence[str], positions: Floats) -> None:
    """Write (T, B, 3) positions, mm, as XMALab 3D points."""
    header = [f"{name}_{axis}" for name in names for axis in "XYZ"]
    write_text(path, "\n".join([",".join(header), *_rows(positions.reshape(len(positions), -1))]) + "\n")


@guarded("a table of points")
def read_rigid_body(path: Path | str) -> tuple[str, RigidTransform]:
    """Read an XMALab rigid-body table: its name and world-from-bone poses (leading axis T), in the file's unit.

    A row holds a 4x4 matrix in row-vector form, ``x_world = x_bone @ M``, so the translation is values 13 to 15;
    rows of NaN are frames without a pose.
    """
    header, values = _table(path)
    if values.shape[1] != 16:
        raise InputError(f"{path}: a rigid-body row has 16 values, got {values.shape[1]}")
    matrix = values.reshape(-1, 4, 4)
    seen = np.isfinite(matrix).all(axis=(1, 2))
    if seen.any() and np.abs(matrix[seen][:, :, 3] - [0.0, 0.0, 0.0, 1.0]).max() > 1e-6:
        raise InputError(f"{path}: columns 4, 8, 12, 16 must be 0, 0, 0, 1: not XMALab's row-vector form")
    rotation = matrix[:, :3, :3].transpose(0, 2, 1)
    off = np.abs(rotation[seen] @ rotation[seen].transpose(0, 2, 1) - np.eye(3))
    if seen.any() and off.max() > 1e-3:
        raise InputError(f"{path}: a pose stretches space by {off.max():.3g}: not a rigid body")
    return header[0].rpartition("_")[0], RigidTransform(rotation, matrix[:, 3, :3])


def write_rigid_body(path: Path | str, name: str, pose: RigidTransform) -> None:
    """Write world-from-bone poses as XMALab's rigid-body table."""
    frames = len(pose.translation)
    matrix = np.zeros((frames, 4, 4))
    matrix[:, :3, :3] = pose.rotation.transpose(0, 2, 1)
    matrix[:, 3, :3] = pose.translation
    matrix[:, 3, 3] = 1.0
    matrix[~np.isfinite(pose.translation).all(axis=1)] = np.nan
    labels = [f"R{i}{j}" if j < 4 else f"0{i}" for i in (1, 2, 3) for j in (1, 2, 3, 4)] + ["TX", "TY", "TZ", "1"]
    header = ",".join(f"{name}_{label}" for label in labels)
    body = [",".join("NaN" if not np.isfinite(v) else f"{v:.12g}" for v in row) for row in matrix.reshape(-1, 16)]
    write_text(path, "\n".join([header, *body]) + "\n")


@guarded("a table of points")
def read_deeplabcut(path: Path | str) -> tuple[tuple[str, ...], Floats, Floats]:
    """Read a DeepLabCut CSV (scorer, bodyparts, coords lines): names, (T, B, 2) pixels and (T, B) likelihood."""
    rows = [row for row in csv.reader(io.StringIO(read_text(path), newline=None)) if row]
    parts = next((row for row in rows[:4] if row[0] == "bodyparts"), None)
    coords = next((row for row in rows[:4] if row[0] == "coords"), None)
    if parts is None or coords is None:
        raise InputError(f"{path}: wanted DeepLabCut's header lines scorer, bodyparts, coords")
    body = rows[rows.index(coords) + 1 :]
    # Label files put the image's path in two or three columns before the numbers; result files only the frame number.
    first = next((k for k, cell in enumerate(coords) if cell in ("x", "y", "likelihood")), len(coords))
    names = tuple(dict.fromkeys(parts[first:]))
    pixels = np.full((len(body), len(names), 2), np.nan)
    likelihood = np.ones((len(body), len(names)))
    for k in range(first, len(coords)):
        column = np.array([float(row[k]) if row[k].strip() else np.nan for row in body])
        b = names.index(parts[k])
        if coords[k] == "likelihood":
            likelihood[:, b] = column
        else:
            pixels[:, b, "xy".index(coords[k])] = column
    return names, measured(pixels, f"{path}: pixels"), measured(likelihood, f"{path}: likelihood")


def write_deeplabcut(
    path: Path | str, names: Sequence[str], pixels: Floats, likelihood: Floats | None = None, scorer: str = "vivarig"
) -> None:
    """Write (T, B, 2) pixels of one view as a DeepLabCut result CSV; likelihood 1 where seen, 0 where not."""
    seen = np.isfinite(pixels[..., 0])
    weight = np.where(seen, 1.0, 0.0) if likelihood is None else likelihood
    lines = [
        ",".join(["scorer", *[scorer] * (3 * len(names))]),
        ",".join(["bodyparts", *[name for name in names for _ in range(3)]]),
        ",".join(["coords", *["x", "y", "likelihood"] * len(names)]),
    ]
    for t in range(len(pixels)):
        cells = [
            f"{v:.10g}" if np.isfinite(v) else "" for b in range(len(names)) for v in (*pixels[t, b], weight[t, b])
        ]
        lines.append(",".join([str(t), *cells]))
    write_text(path, "\n".join(lines) + "\n")
