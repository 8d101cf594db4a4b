"""What the hull of the other views says about a sitting subject: more, the closer it lies around it."""

from __future__ import annotations

import numpy as np

from capture.silhouettes.sitting import support

SHAPE = (200, 300)


def disc_of(radius: float) -> np.ndarray:
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return np.asarray((rows - 100) ** 2 + (columns - 150) ** 2 <= radius**2)


def test_a_hull_that_lies_close_says_more_than_one_that_is_open() -> None:
    """Eight pixels around a silhouette are in doubt: a hull 2 px larger holds a fifth of them, one 30 px larger all."""
    mask = disc_of(40)
    close, wide = (support(disc_of(radius), mask) for radius in (42, 70))
    assert close is not None and wide is not None
    near = np.count_nonzero(disc_of(48) & ~mask)
    share = np.count_nonzero(disc_of(42) & ~mask) / near
    assert abs(close[100, 150] + np.log(share)) < 0.2 and close[100, 150] > 1.2
    assert abs(wide[100, 150]) < 1e-6 and abs(wide[100, 150 + 60]) < 1e-6  # it holds all ground around as well
    assert close[100, 150 + 80] < -1.0 and wide[100, 150 + 120] < -1.0  # outside is outside of either


def test_no_hull_or_no_silhouette_says_nothing() -> None:
    empty = np.zeros(SHAPE, dtype=bool)
    assert support(None, disc_of(40)) is None
    nothing = support(disc_of(40), empty)
    assert nothing is not None and nothing[100, 150] == 0.0
