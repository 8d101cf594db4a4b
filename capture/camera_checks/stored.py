"""Outlines of a ``silhouettes.h5`` in stretches of successive frames: some with most motion, some spread evenly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.result_files import open_results
from capture.camera_checks.outlines import Outlines, join_outlines, outline
from capture.recordings.masks import mask_cameras, masks_in, outlines_in

__all__ = ["left_outlines", "stored_outlines"]

#: Frames of a stretch, how many there are in all, and among how many they are chosen.
_STRETCH = 64
_STRETCHES = 6
_CANDIDATES = 60


def stored_outlines(path: Path, rig: Rig) -> tuple[list[Outlines], Ints]:
    """Return each camera's outlines, as far as possible as it saw them before repair, and the rows (T,) they are."""
    _, count = mask_cameras(path)
    with open_results(path, stage="silhouettes") as file:
        rows = _chosen(file, rig, count)
        outlines = [
            join_outlines([one for a, b in rows for one in _corners(file, rig, name, a, b)]) for name in rig.names
        ]
    return outlines, np.concatenate([np.arange(a, b) for a, b in rows])


def left_outlines(path: Path, rig: Rig, rows: Ints) -> list[Outlines]:
    """Return each camera's outlines of some rows as the views left them after repair."""
    with open_results(path, stage="silhouettes") as file:
        return [
            join_outlines([outline(masks_in(file, name, int(row))[0], rig[name]) for row in rows]) for name in rig.names
        ]


def _corners(file: h5py.File, rig: Rig, name: str, first: int, stop: int) -> list[Floats]:
    stored = outlines_in(file, name, first, stop)
    if stored is not None:
        return stored
    return [outline(mask, rig[name]) for mask in masks_in(file, name, slice(first, stop))]


def _chosen(file: h5py.File, rig: Rig, count: int) -> list[tuple[int, int]]:
    """Return the first row and the row after the last of each stretch, in order."""
    if count <= _STRETCH * _STRETCHES:
        return [(0, count)]
    starts = np.unique(np.linspace(0, count - _STRETCH, min(_CANDIDATES, count // _STRETCH)).astype(int)).tolist()
    even = [starts[round(place)] for place in np.linspace(0, len(starts) - 1, _STRETCHES // 2)]
    motion = {start: _motion(file, rig.names, start) for start in starts if start not in even}
    most = sorted(motion, key=lambda start: (-motion[start], start))[: _STRETCHES - len(even)]
    return [(start, start + _STRETCH) for start in sorted([*even, *most])]


def _motion(file: h5py.File, names: Sequence[str], start: int) -> float:
    """Return how far outlines move in a stretch, px per frame: mean over frames, median over cameras."""
    moved = []
    for name in names:
        corners = outlines_in(file, name, start, start + _STRETCH) or []
        middles = np.array([one.mean(axis=0) if len(one) else (np.nan, np.nan) for one in corners]).reshape(-1, 2)
        steps = np.linalg.norm(np.diff(middles, axis=0), axis=1)
        moved.append(float(steps[np.isfinite(steps)].mean()) if np.isfinite(steps).any() else 0.0)
    return float(np.median(moved))
