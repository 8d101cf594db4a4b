"""SLEAP analysis files (.h5): image points per track with their scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import open_hdf5, words_of
from skeleton.motion_files.motions import MarkerSeries

__all__ = ["read_sleap"]


def read_sleap(path: Path | str, *, rate_hz: float, individual: str | None = None) -> MarkerSeries:
    """Read one animal of a SLEAP analysis file.

    Args:
        path: file exported by "Export Analysis HDF5" (datasets tracks, node_names, track_names).
        rate_hz: frames per second of the video (the file does not hold it).
        individual: track name; may be left out when the file has one track.
    """
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    with open_hdf5(source, "a SLEAP analysis file") as file:
        if "tracks" not in file or "node_names" not in file:
            raise InputError(f"{source}: not a SLEAP analysis file (no datasets 'tracks' and 'node_names')")
        names = words_of(file["node_names"])
        tracks = np.asarray(file["tracks"][:], dtype=np.float64)
        words = file["track_names"][:] if "track_names" in file else []
        animals = [word.decode() if isinstance(word, bytes) else str(word) for word in words]
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
    animals = animals or [f"track_{index}" for index in range(len(tracks))]
    if individual is None and len(animals) > 1:
        raise InputError(f"{source}: holds several tracks ({', '.join(animals)}); pass individual")
    chosen = animals[0] if individual is None else individual
    if chosen not in animals:
        raise InputError(f"{source}: no track '{chosen}'; the file has {', '.join(animals)}")
    index = animals.index(chosen)
    confidence = None if scores is None else scores[index]
    return MarkerSeries(names, tracks[index], rate_hz, unit="px", confidence=confidence)
