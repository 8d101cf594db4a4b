"""SLEAP files (.h5): image points per track with their scores, and 3D points as sleap-anipose writes them.

3D: ``tracks`` (frames, tracks, nodes, 3). Ours name nodes, unit, rate and vertical in the file; sleap-anipose's do not.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import written_by_library
from calibration.foundation.hdf5_files import create_hdf5, open_hdf5, words_of
from skeleton.motion_files.motions import MarkerSeries, millimetres_per

__all__ = ["read_sleap", "write_sleap"]


def read_sleap(
    path: Path | str,
    *,
    rate_hz: float | None = None,
    individual: str | None = None,
    unit_mm: float | None = None,
    up: str = "",
) -> MarkerSeries:
    """Read one animal of a SLEAP file.

    Args:
        path: file exported by "Export Analysis HDF5" (datasets tracks, node_names, track_names), or 3D points.
        rate_hz: frames per second of the video (SLEAP's own files do not hold it).
        individual: track name; may be left out when the file has one track.
        unit_mm: 3D: millimetres per unit, for files that do not say (the unit of the calibration board's squares).
        up: 3D: the vertical axis, for files that do not say.
    """
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    with open_hdf5(source, "a SLEAP analysis file") as file:
        if "tracks" in file and file["tracks"].ndim == 4 and file["tracks"].shape[3] == 3:
            return _in_space(file, source, rate_hz, individual, unit_mm, up)
        if rate_hz is None:
            raise InputError(f"{source}: a sleap file does not hold rate_hz (frames per second); give it")
        if "tracks" not in file or "node_names" not in file:
            raise InputError(f"{source}: not a SLEAP analysis file (no datasets 'tracks' and 'node_names')")
        names = words_of(file["node_names"])
        tracks = np.asarray(file["tracks"][:], dtype=np.float64)
        animals = list(words_of(file["track_names"])) if "track_names" in file else []
        scores = np.asarray(file["point_scores"][:], dtype=np.float64) if "point_scores" in file else None
    # The exporter writes (tracks, 2, nodes, frames), transposed for MATLAB; some versions the other way
    # round.
    if tracks.ndim != 4 or 2 not in (tracks.shape[1], tracks.shape[2]):
        raise InputError(f"{source}: tracks must be (tracks, 2, nodes, frames), got {tracks.shape}")
    if tracks.shape[1] == 2 and tracks.shape[2] == len(names):
        tracks = tracks.transpose(0, 3, 2, 1)
        scores = None if scores is None else scores.transpose(0, 2, 1)
    elif tracks.shape[1] == len(names) and tracks.shape[2] == 2:  # (frames, nodes, 2, tracks)
        tracks = tracks.transpose(3, 0, 1, 2)
        scores = None if scores is None else scores.transpose(2, 0, 1)
    else:
        raise InputError(f"{source}: {len(names)} node names do not fit tracks of shape {tracks.shape}")
    index = _chosen(animals or [f"track_{index}" for index in range(len(tracks))], individual, source)
    confidence = None if scores is None else scores[index]
    return MarkerSeries(names, tracks[index], rate_hz, unit="px", confidence=confidence)


def _chosen(animals: list[str], individual: str | None, source: Path) -> int:
    """Return which track is meant."""
    if individual is None and len(animals) > 1:
        raise InputError(f"{source}: holds several tracks ({', '.join(animals)}); pass individual")
    chosen = animals[0] if individual is None and animals else individual
    if chosen not in animals:
        raise InputError(f"{source}: no track '{chosen}'; the file has {', '.join(animals)}")
    return animals.index(chosen)


def _in_space(
    file: h5py.File, source: Path, rate_hz: float | None, individual: str | None, unit_mm: float | None, up: str
) -> MarkerSeries:
    """Read 3D points (frames, tracks, nodes, 3)."""
    tracks = np.asarray(file["tracks"][:], dtype=np.float64)
    nodes = words_of(file["node_names"]) if "node_names" in file else ()
    names = nodes or tuple(f"node_{index}" for index in range(tracks.shape[2]))
    if len(names) != tracks.shape[2]:
        raise InputError(f"{source}: {len(names)} node names do not fit tracks of shape {tracks.shape}")
    animals = list(words_of(file["track_names"])) if "track_names" in file else []
    index = _chosen(animals or [f"track_{at}" for at in range(tracks.shape[1])], individual, source)
    rate = rate_hz if rate_hz is not None else file.attrs.get("fps")
    unit = str(file.attrs.get("unit", ""))
    if rate is None or (unit_mm is None and not unit):
        raise InputError(f"{source}: 3D points without a rate or a unit; give rate_hz and unit_mm")
    scale = millimetres_per(unit, str(source)) if unit_mm is None else unit_mm
    scores: Floats | None = None
    if "point_scores" in file and file["point_scores"].shape == tracks.shape[:3]:
        scores = np.asarray(file["point_scores"][:], dtype=np.float64)[:, index]
    vertical = str(file.attrs.get("up_axis", up))
    return MarkerSeries(names, tracks[:, index] * scale, float(np.asarray(rate)), up=vertical, confidence=scores)


def write_sleap(series: MarkerSeries, path: Path | str) -> None:
    """Write 3D points as sleap-anipose does, with names, scores, rate and unit beside them."""
    if series.unit != "mm":
        raise InputError(f"{path}: SLEAP's 3D file holds 3D points, these are image points in {series.unit}")
    with written_by_library(path) as temporary, create_hdf5(temporary, path) as file:
        file["tracks"] = series.positions[:, None]
        file["node_names"] = [name.encode() for name in series.names]
        file["track_names"] = [b"individual_0"]
        if series.confidence is not None:
            file["point_scores"] = series.confidence[:, None]
        file.attrs["fps"], file.attrs["unit"], file.attrs["up_axis"] = series.rate_hz, "mm", series.up
