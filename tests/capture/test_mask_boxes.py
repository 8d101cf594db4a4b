"""Boxes of masks against those that numpy finds."""

from __future__ import annotations

import numpy as np
import pytest

from capture.mask_boxes import box_of


def plain_box(mask: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(rows) == 0:
        return 0, 0, 0, 0
    return int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1


@pytest.mark.parametrize("share", [0.0, 0.002, 0.05, 1.0])
def test_a_box_holds_what_is_set_and_counts(share: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        height, width = (int(side) for side in rng.integers(1, 150, 2))
        mask, other = rng.random((height, width)) < share, rng.random((height, width)) < 0.7
        assert box_of(mask) == plain_box(mask)
        assert box_of(mask, without=other) == plain_box(mask & ~other)
        window = (slice(height // 3, height), slice(width // 4, width // 2 + 1))
        inside = np.zeros_like(mask)
        inside[window] = mask[window]
        assert box_of(mask, window) == plain_box(inside)
