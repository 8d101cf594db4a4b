"""Posture straight from the hull, for those who want no template: a table over time.

Moments are those of the solid: each triangle with the origin makes a signed tetrahedron, and for a closed mesh the
signed sums are the volume, centroid and covariance of what it encloses (the parts outside cancel).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats
from calibration.foundation.files import write_text
from capture.hull.result import Hull

__all__ = ["PostureTable", "SolidMoments", "posture_table", "solid_moments", "write_posture"]


@dataclass(frozen=True, eq=False)
class SolidMoments:
    """Volume, centroid and spread of a solid.

    Attributes:
        volume: mm^3.
        centroid: (3,) world mm.
        covariance: (3, 3) of the points of the solid, mm^2.
    """

    volume: float
    centroid: Floats
    covariance: Floats


def solid_moments(vertices: Floats, faces: NDArray[np.int32]) -> SolidMoments:
    """Return the moments of the solid inside a closed mesh with outward normals; NaN for none."""
    if len(faces) == 0:
        return SolidMoments(0.0, np.full(3, np.nan), np.full((3, 3), np.nan))
    middle = vertices.mean(axis=0)
    corners = vertices[faces] - middle
    six = np.linalg.det(corners)
    volume = float(six.sum()) / 6.0
    sums = corners.sum(axis=1)
    first = (six[:, None] * sums).sum(axis=0) / 24.0
    # Of a tetrahedron with the origin: integral x x^T = det / 120 (sum_i v_i v_i^T + s s^T), s = sum_i v_i.
    second = (np.einsum("n,nij,nik->jk", six, corners, corners) + np.einsum("n,nj,nk->jk", six, sums, sums)) / 120.0
    centre = first / volume
    return SolidMoments(volume, middle + centre, second / volume - np.outer(centre, centre))


@dataclass(frozen=True, eq=False)
class PostureTable:
    """Postural measures over time; NaN where a frame has no hull.

    Attributes:
        time: (T,) s.
        centroid: (T, 3) world mm.
        axes: (T, 3, 3) principal axes as rows, longest first; the first points along the motion of the frames
            around where there is one, and keeps its side from frame to frame.
        deviation: (T, 3) standard deviations of the solid along the axes, mm.
        length: (T,) extent along the first axis, mm.
        height: (T,) highest point above the floor z = 0, mm.
        volume: (T,) mm^3.
        speed: (T,) of the centroid, mm/s.
    """

    time: Floats
    centroid: Floats
    axes: Floats
    deviation: Floats
    length: Floats
    height: Floats
    volume: Floats
    speed: Floats


def posture_table(hulls: Iterable[Hull], rate_hz: float) -> PostureTable:
    """Measure the posture in each hull of a recording."""
    centroid, axes, deviation, length, height, volume = [], [], [], [], [], []
    for hull in hulls:
        moments = solid_moments(hull.vertices, hull.faces)
        centroid.append(moments.centroid)
        volume.append(moments.volume if moments.volume > 0 else np.nan)
        if moments.volume <= 0:
            axes.append(np.full((3, 3), np.nan))
            deviation.append(np.full(3, np.nan))
            length.append(np.nan)
            height.append(np.nan)
            continue
        squares, columns = np.linalg.eigh(moments.covariance)
        axes.append(columns.T[::-1])
        deviation.append(np.sqrt(np.maximum(squares[::-1], 0.0)))
        along = hull.vertices @ axes[-1][0]
        length.append(float(along.max() - along.min()))
        height.append(float(hull.vertices[:, 2].max()))
    centres = np.array(centroid).reshape(-1, 3)
    turned = np.array(axes).reshape(-1, 3, 3)
    velocity = _velocity(centres, rate_hz)
    _orient(turned, velocity)
    return PostureTable(
        np.arange(len(centres)) / rate_hz,
        centres,
        turned,
        np.array(deviation).reshape(-1, 3),
        np.array(length),
        np.array(height),
        np.array(volume),
        np.asarray(np.linalg.norm(velocity, axis=1)),
    )


def _velocity(points: Floats, rate_hz: float) -> Floats:
    """Return (T, 3) central differences, one-sided at the ends; NaN beside missing frames."""
    if len(points) < 2:
        return np.full(points.shape, np.nan)
    return np.asarray(np.gradient(points, 1.0 / rate_hz, axis=0))


def _orient(axes: Floats, velocity: Floats) -> None:
    """Fix the signs of the axes in place: continuous in time, the first forward on the whole, right-handed."""
    previous: Floats | None = None
    for frame in axes:
        if np.isnan(frame).any():
            continue
        if previous is not None:
            for axis in range(2):
                if frame[axis] @ previous[axis] < 0:
                    frame[axis] *= -1
        frame[2] = np.cross(frame[0], frame[1])
        previous = frame
    forward = np.nansum(np.einsum("tk,tk->t", axes[:, 0], velocity))
    if forward < 0:
        axes[:, :2] *= -1


def write_posture(path: Path | str, table: PostureTable) -> None:
    """Write the table as CSV, one row per frame, units in the header; empty cells were not observed."""
    columns = [
        "time_s",
        "x_mm",
        "y_mm",
        "z_mm",
        "axis_x",
        "axis_y",
        "axis_z",
        "length_mm",
        "height_mm",
        "volume_mm3",
        "speed_mm_s",
    ]
    rows = np.column_stack(
        [table.time, table.centroid, table.axes[:, 0], table.length, table.height, table.volume, table.speed]
    )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["frame", *columns])
    for frame, row in enumerate(rows):
        writer.writerow([frame, *("" if np.isnan(value) else f"{value:.6g}" for value in row)])
    write_text(path, text.getvalue())
