"""Which limb, and which marker, each vertex of a tracked surface belongs to: files know it of markers alone."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from calibration.foundation.arrays import Floats, Ints
from vivarig.results.findings import TrackFindings

__all__ = ["nearest_markers", "vertex_trust"]

_LOOKS = 6


def nearest_markers(track: TrackFindings, which: Ints | None = None) -> Ints:
    """(V,) the marker nearest to each vertex, or to those of ``which``.

    Over frames all over the recording: in a single one a hand may lie at the head.
    """
    tracked = np.flatnonzero(track.tracked & np.isfinite(track.markers).all(axis=(1, 2)))
    total: Floats | None = None
    for frame in tracked[np.unique(np.linspace(0, len(tracked) - 1, min(len(tracked), _LOOKS)).astype(int))].tolist():
        vertices = track.vertices_at(frame)
        away = cdist(vertices if which is None else vertices[which], track.markers[frame])
        total = away if total is None else total + away
    if total is None:
        count = len(which) if which is not None else int(track.faces.max(initial=-1)) + 1
        return np.zeros(count, np.int64)
    return np.asarray(total.argmin(axis=1))


def vertex_trust(track: TrackFindings, markers: Ints, frame: int) -> Ints:
    """(V,) trust of the limb of each vertex, by its nearest marker; that of the frame where limbs were not judged."""
    if track.limb_trust is None or track.marker_limbs is None:
        return np.full(len(markers), int(track.trust[frame]))
    return np.asarray(track.limb_trust[frame, track.marker_limbs[markers]])
