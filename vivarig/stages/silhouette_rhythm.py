"""The rhythm of a recording's silhouettes, and the frames to place key poses in."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Bools
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from capture.recordings.masks import LikeliestMasks
from capture.recordings.recording import Recording
from capture.rhythm import Rhythm, find_rhythm

__all__ = ["recording_rhythm"]

_MOST = 600
"""Frames that are looked at, at most: the first ones."""


def recording_rhythm(recording: Recording) -> Rhythm:
    """Judge the rhythm of ``silhouettes.h5``; nothing but the masks is needed, no calibration."""
    with open_results(recording.results / "silhouettes.h5", stage="silhouettes") as file:
        masks = LikeliestMasks(file)
        names = list(words_of(file["names"]))
        frames = min(_MOST, len(file["cameras"][names[0]]["flags"]))
        every: dict[str, list[Bools]] = {name: [masks(name, frame) for frame in range(frames)] for name in names}
        seen = {name: some for name, some in every.items() if np.any([mask.any() for mask in some])}
    return find_rhythm(seen, recording.rate_hz)
