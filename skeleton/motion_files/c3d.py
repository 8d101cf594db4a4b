"""C3D files through ezc3d: marker points, analog channels and rigid-body rotations of several makers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ezc3d
import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import written_by_library
from skeleton.motion_files.c3d_layout import check_layout
from skeleton.motion_files.motions import MarkerSeries, millimetres_per

__all__ = ["C3dRecording", "read_c3d", "read_c3d_markers", "write_c3d"]


@dataclass(frozen=True, eq=False)
class C3dRecording:
    """All that a C3D file measured.

    Attributes:
        markers: points, mm; no name at all in a file of rotations or forces only.
        analog_names: names of the analog channels.
        analog: (T * analog_per_frame, channels) in the file's units.
        analog_rate_hz: samples per second, 0 without channels.
        rotation_names: names of the rigid bodies.
        rotations: (T', bodies, 4, 4) homogeneous transforms, translation in mm; NaN where not seen.
        rotation_rate_hz: frames per second, 0 without bodies.
    """

    markers: MarkerSeries
    analog_names: tuple[str, ...]
    analog: Floats
    analog_rate_hz: float
    rotation_names: tuple[str, ...]
    rotations: Floats
    rotation_rate_hz: float


def _parameter(content: Any, group: str, name: str) -> list[Any]:
    groups = content["parameters"]
    if group not in groups or name not in groups[group]:
        return []
    value = groups[group][name]["value"]
    return list(np.ravel(value))


def _labels(content: Any, group: str, count: int) -> tuple[str, ...]:
    """Labels spill over into LABELS2, LABELS3, ... beyond 255; unnamed ones get their number."""
    labels = [str(label).strip() for label in _parameter(content, group, "LABELS")]
    spill = 2
    while more := _parameter(content, group, f"LABELS{spill}"):
        labels += [str(label).strip() for label in more]
        spill += 1
    labels = [label or f"unnamed_{index}" for index, label in enumerate(labels[:count])]
    labels += [f"unnamed_{index}" for index in range(len(labels), count)]
    seen: dict[str, int] = {}
    for index, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        if seen[label] > 1:
            labels[index] = f"{label}_{seen[label]}"
    return tuple(labels)


def _up(content: Any) -> str:
    """The axis that points up on the screen, where the maker says so."""
    words = _parameter(content, "POINT", "Y_SCREEN")
    word = str(words[0]).strip().upper() if words else ""
    return word[1].lower() if len(word) == 2 and word[0] == "+" and word[1] in "XYZ" else ""


def read_c3d(path: Path | str) -> C3dRecording:
    """Read a C3D file: points with a negative residual, or at NaN, are missing."""
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    check_layout(source)
    try:
        content = ezc3d.c3d(str(source))
    except (OSError, RuntimeError, ValueError, IndexError) as error:
        raise InputError(f"{source}: ezc3d cannot read it ({str(error).strip().splitlines()[0]})") from None
    data, header = content["data"], content["header"]
    raw_points = np.asarray(data["points"], dtype=np.float64)
    count = raw_points.shape[1]
    units = [str(unit) for unit in _parameter(content, "POINT", "UNITS")]
    scale = millimetres_per(units[0], str(source)) if units and units[0].strip() else 1.0
    points = np.moveaxis(raw_points[:3], (0, 1, 2), (2, 1, 0)) * scale
    residuals = np.asarray(data["meta_points"]["residuals"], dtype=np.float64)[0].T
    if residuals.shape == points.shape[:2]:
        points = np.where(residuals[..., None] < 0, np.nan, points)
    points = np.where(np.isfinite(points).all(axis=-1, keepdims=True), points, np.nan)
    rate = float(header["points"]["frame_rate"]) or float((_parameter(content, "POINT", "RATE") or [0.0])[0])
    first = int(header["points"]["first_frame"])
    # A residual above 0 is the maker's error of a point; 0 says that there is none to say (a filled or computed point).
    sigma = np.where(residuals > 0, residuals * scale, np.nan) if residuals.shape == points.shape[:2] else None
    if sigma is not None and not np.isfinite(sigma).any():
        sigma = None
    markers = MarkerSeries(
        _labels(content, "POINT", count), points, rate, up=_up(content), start_s=first / rate, sigma=sigma
    )
    analog = np.asarray(data["analogs"], dtype=np.float64)
    analog = analog.reshape(analog.shape[-2], -1).T if analog.size else np.empty((0, 0))
    rotations = np.asarray(data.get("rotations", np.empty((4, 4, 0, 0))), dtype=np.float64)
    bodies = rotations.shape[2]
    rotations = np.moveaxis(rotations, (2, 3), (1, 0)).copy()
    rotations[..., :3, 3] *= scale
    rotation_rates = _parameter(content, "ROTATION", "RATE")
    return C3dRecording(
        markers=markers,
        analog_names=_labels(content, "ANALOG", analog.shape[1]),
        analog=analog,
        analog_rate_hz=float(header["analogs"]["frame_rate"]) if analog.size else 0.0,
        rotation_names=_labels(content, "ROTATION", bodies),
        rotations=rotations,
        rotation_rate_hz=(float(rotation_rates[0]) if rotation_rates else rate) if bodies else 0.0,
    )


def read_c3d_markers(path: Path | str) -> MarkerSeries:
    """Read only the points of a C3D file; one without points is an error that says what it holds."""
    recording = read_c3d(path)
    if not recording.markers.names:
        raise InputError(
            f"{path}: holds no points, but {len(recording.rotation_names)} rotations and "
            f"{len(recording.analog_names)} analog channels; use read_c3d for these"
        )
    return recording.markers


def write_c3d(series: MarkerSeries, path: Path | str) -> None:
    """Write points to a C3D file in millimetres (float32, as the format stores them).

    A point's residual is its sigma, mm, to 1/250 of the largest, where that is known, else 0; -1 where the point is
    missing.
    """
    if series.unit != "mm":
        raise InputError(f"{path}: C3D holds 3D points, these are image points in {series.unit}")
    content = ezc3d.c3d()
    points = np.ones((4, len(series.names), series.frames))
    points[:3] = np.moveaxis(series.positions, (0, 1, 2), (2, 1, 0))
    step, stated = _steps(series)
    residuals = np.where(np.isfinite(points[:3]).all(axis=0), stated, -1.0)[None]
    points = np.where(np.isfinite(points), points, 0.0)
    content["parameters"]["POINT"]["SCALE"]["value"] = [-step]  # below 0: points are floats, and it is the residuals'
    content["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    content["parameters"]["POINT"]["RATE"]["value"] = [series.rate_hz]
    content["parameters"]["POINT"]["LABELS"]["value"] = list(series.names)
    if series.up:
        across = {"x": "+Y", "y": "+X", "z": "+X"}[series.up]
        content.add_parameter("POINT", "X_SCREEN", [across])
        content.add_parameter("POINT", "Y_SCREEN", ["+" + series.up.upper()])
    content["header"]["points"]["first_frame"] = round(series.start_s * series.rate_hz)
    content["data"]["points"] = points
    content["data"]["meta_points"]["residuals"] = residuals
    with written_by_library(path) as temporary:
        content.write(str(temporary))
        if temporary.stat().st_size < 16 * len(series.names) * series.frames:  # it says nothing of a full disk
            raise InputError(f"{path}: could not be written; is there room on the disk?")


def _steps(series: MarkerSeries) -> tuple[float, Floats]:
    """Return the step in which residuals are stored, mm, and the residuals (M, T): the format has a byte for each."""
    if series.sigma is None or not (series.sigma > 0).any():
        return 1.0, np.zeros((len(series.names), series.frames))
    sigma = np.where(np.isfinite(series.sigma), series.sigma, 0.0).T
    step = float(np.float32(sigma.max() / 250.0))
    # The library cuts off below whole steps.
    return step, np.where(sigma > 0, (np.maximum(np.round(sigma / step), 1.0) + 0.25) * step, 0.0)
