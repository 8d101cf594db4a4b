"""Rhythm of silhouettes: a figure that walks on the spot, one that fidgets, and the frames to place keys in."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from calibration.foundation.arrays import Bools
from calibration.foundation.errors import InputError
from capture.rhythm import find_rhythm, key_frames


def walker(frames: int, phase: np.ndarray) -> Bools:
    """A trunk with legs and arms that swing by a phase, drifting through the image; left and right look different."""
    out = np.zeros((frames, 160, 240), dtype=np.uint8)
    for t in range(frames):
        middle = np.array([60 + 100 * t / frames, 70.0])
        cv2.ellipse(out[t], tuple(int(v) for v in middle), (16, 34), 0.0, 0.0, 360.0, 1, -1)
        for side, length, base in ((1, 62, 22), (-1, 30, 22), (1, 44, -16), (-1, 20, -16)):
            swing = 0.6 * side * np.sin(2 * np.pi * phase[t] + (0.5 if base < 0 else 0.0))
            start = middle + np.array([0.0, base])
            end = start + length * np.array([np.sin(swing), np.cos(swing)])
            cv2.line(out[t], tuple(int(v) for v in start), tuple(int(v) for v in end), 1, 9)
    return out.astype(bool)


def test_a_walk_has_a_rhythm_and_its_phase() -> None:
    phase = 1.7 * np.arange(240) / 60.0 + 0.02 * np.sin(np.arange(240) / 40.0)
    rhythm = find_rhythm({"cam01": walker(240, phase)}, 60.0)
    assert rhythm.regular and rhythm.stride_hz == pytest.approx(1.7, rel=0.01)
    off = rhythm.phase - phase
    assert np.std(off) < 0.03
    assert rhythm.words().startswith("regular gait, 1.")
    keys = key_frames(rhythm, 4)
    around = np.sort(phase[keys] % 1.0)
    gaps = np.diff(np.concatenate([around, [around[0] + 1.0]]))
    assert len(keys) == 4 and gaps.min() > 0.1  # spread over the cycle


def test_fidgeting_has_none() -> None:
    rng = np.random.default_rng(3)
    phase = np.cumsum(rng.normal(0.0, 0.05, 240))
    rhythm = find_rhythm({"cam01": walker(240, phase)}, 60.0)
    assert not rhythm.regular and rhythm.words().startswith("no regular gait")
    assert len(key_frames(rhythm, 3)) == 3


def test_bad_input() -> None:
    with pytest.raises(InputError, match="no silhouette in any frame"):
        find_rhythm({"cam01": np.zeros((40, 20, 20), dtype=bool)}, 60.0)
    with pytest.raises(InputError, match="one camera at least"):
        find_rhythm({}, 60.0)
