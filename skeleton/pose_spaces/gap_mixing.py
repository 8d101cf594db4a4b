"""How much of a gap's most likely motion is to be believed, joint by joint: learnt from gaps made on purpose.

A process whose kernel many joints share overshoots where one of them snaps (a toe that leaves the floor), and there a
straight line is nearer. Known frames tell: in gaps of the same length, made beside the real ones, each joint's turns
are predicted three ways, and the mixture with the least squares is taken for the real gap (stacking, Wolpert 1992).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import nnls

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation

__all__ = ["bent_and_straight", "can_be_mixed", "learn_mixture", "mixed_rotations"]

#: Gaps made on purpose, how far from a real one they may lie (s), and the fewest that weights are learnt from.
_TRIALS, _REACH_S, _LEAST = 40, 8.0, 6
#: A joint's own trials count once, those of all joints together this often: few trials tell little of one joint.
_TOGETHER = 0.3


def bent_and_straight(rotations: Floats, gap: tuple[int, int]) -> tuple[Floats, Floats]:
    """Return cubic Hermite and linear interpolation (g, J, 3, 3) of rotation vectors from the frame before the gap."""
    first, stop = gap
    base = rotations[first - 1]
    around = vector_from_rotation(np.swapaxes(base, -1, -2) @ rotations[[first - 2, first - 1, stop, stop + 1]])
    count = stop - first + 1
    s = (np.arange(1, count) / count)[:, None, None]
    low, high = around[1], around[2]
    out, back = (around[1] - around[0]) * count, (around[3] - around[2]) * count
    straight = low + (high - low) * s
    bent = (2 * s**3 - 3 * s**2 + 1) * low + (s**3 - 2 * s**2 + s) * out + (3 * s**2 - 2 * s**3) * high
    bent = bent + (s**3 - s**2) * back
    return base @ rotation_from_vector(bent), base @ rotation_from_vector(straight)


def can_be_mixed(known: Bools, gap: tuple[int, int]) -> bool:
    """Whether two frames on either side of a gap are known."""
    first, stop = gap
    return bool(first >= 2 and stop + 2 <= len(known) and known[[first - 2, first - 1, stop, stop + 1]].all())


def _trials(known: Bools, gaps: Sequence[tuple[int, int]], rate_hz: float) -> Ints:
    """First frames of gaps as long as the first of ``gaps``, near them, that are wholly known with their edges."""
    length, reach = gaps[0][1] - gaps[0][0], int(_REACH_S * rate_hz)
    missing = np.concatenate([[0], np.cumsum(~known)])
    starts = np.arange(2, len(known) - length - 1)
    near = np.zeros(len(starts), np.bool_)
    for first, stop in gaps:
        near |= (starts >= first - reach) & (starts < stop + reach)
    starts = starts[near & (missing[starts + length + 2] == missing[starts - 2])]
    some = np.unique(np.linspace(0, len(starts) - 1, min(_TRIALS, len(starts))).round().astype(int))
    return np.asarray(starts[some], np.int64)


def learn_mixture(
    predict: Callable[[Bools, tuple[int, int]], Floats],
    rotations: Floats,
    known: Bools,
    gaps: Sequence[tuple[int, int]],
    rate_hz: float,
) -> Floats:
    """Return weights (J, 3) of the prediction, the bent and the straight interpolation, each row's sum 1.

    Args:
        predict: gives rotations (g, J, 3, 3) for known frames and a gap.
        rotations: (T, J, 3, 3) parent-from-joint.
        known: (T,) frames that may be read.
        gaps: gaps of one length.
        rate_hz: frames per second.
    """
    joints = rotations.shape[1]
    alone = np.tile([1.0, 0.0, 0.0], (joints, 1))
    starts = _trials(known, gaps, rate_hz)
    if len(starts) < _LEAST:
        return alone
    length = gaps[0][1] - gaps[0][0]
    squares = np.zeros((joints, 3, 3))
    for start in starts.tolist():
        gap, hidden = (start, start + length), known.copy()
        hidden[start : start + length] = False
        truth = np.swapaxes(rotations[start : start + length], -1, -2)
        ways = (predict(hidden, gap), *bent_and_straight(rotations, gap))
        errors = np.stack([vector_from_rotation(truth @ way) for way in ways])
        squares += np.einsum("agjc,bgjc->jab", errors, errors)
    size = np.trace(squares, axis1=1, axis2=2)
    if not size.sum() > 0.0:
        return alone
    together = squares.sum(axis=0) / size.sum()
    return np.array([_least(one / max(whole, 1e-18), together) for one, whole in zip(squares, size, strict=True)])


def _least(one: Floats, together: Floats) -> Floats:
    """Weights (3,), none negative, sum 1, of the least squares of one joint's errors."""
    table = one + _TOGETHER * together + 1e-9 * np.eye(3)
    strong = 1e3  # the sum is held by a heavy row
    rows = np.concatenate([np.linalg.cholesky(table).T, np.full((1, 3), strong)])
    weights = nnls(rows, np.array([0.0, 0.0, 0.0, strong]))[0]
    return np.asarray(weights / weights.sum())


def mixed_rotations(predicted: Floats, rotations: Floats, gap: tuple[int, int], weights: Floats) -> Floats:
    """Return the mixture (g, J, 3, 3) of a gap's prediction and its two interpolations."""
    back = np.swapaxes(predicted, -1, -2)
    bent, straight = (vector_from_rotation(back @ way) for way in bent_and_straight(rotations, gap))
    return np.asarray(
        predicted @ rotation_from_vector(weights[:, 1, None] * bent + weights[:, 2, None] * straight), np.float64
    )
