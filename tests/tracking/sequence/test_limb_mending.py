"""How often a limb is looked for: ever more rarely while that is in vain, at once when it gets worse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest

from tracking.sequence.limb_mending import LONGEST_WAIT, LimbMender


class Fit:
    """Stands for a fit."""

    def __init__(self, score: float) -> None:
        self.score, self.pose = score, None


@pytest.fixture
def mender() -> Any:
    """A mender of one limb beside the trunk that is always contradicted, and a search that always gains a little."""
    one: Any = LimbMender.__new__(LimbMender)
    one._doubt, one._head = 0.1, None
    one._wait, one._left, one._vain = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2)
    one._tried = WeakKeyDictionary()
    one.searched, one.frame, one.bad = [], 0, 0.3

    def propose(*_: Any) -> list[Any]:
        one.searched.append(one.frame)
        return [None]

    one.search = SimpleNamespace(propose=propose, fits=lambda _, starts: [Fit(1.0) for _ in starts])
    one._shown = lambda *_: 1.0
    one._remember = lambda *_: None
    one._better = lambda observation, first, second, limb: second
    one._badness = lambda *_: np.array([0.0, one.bad])
    return one


def test_a_search_that_leaves_the_limb_contradicted_is_in_vain(mender: Any) -> None:
    for mender.frame in range(60):
        mender.mend(None, Fit(0.5))
    assert mender.searched[:5] == [0, 2, 6, 14, 30]
    assert np.diff(mender.searched).max() == LONGEST_WAIT + 1


def test_a_limb_that_gets_worse_is_looked_for_at_once(mender: Any) -> None:
    for mender.frame in range(10):
        mender.bad = 0.3 if mender.frame < 8 else 0.6
        mender.mend(None, Fit(0.5))
    assert mender.searched == [0, 2, 6, 8]


def test_what_was_looked_for_from_a_fit_in_vain_is_not_looked_for_again(mender: Any) -> None:
    """Neither anew nor as in the same frame beside; in another frame beside it is."""
    tried = []
    mender.evidence = SimpleNamespace(limbs=SimpleNamespace(moved=lambda pose, limb, other: tried.append(limb)))
    mender._better = lambda observation, first, second, limb: first
    fit, beside = Fit(0.5), (Fit(0.9), np.zeros(2))
    for _ in range(3):
        mender.forget()
        assert mender.mend(None, fit, beside) is fit
    assert mender.searched == [0] and tried == [1]
    mender.forget()
    mender.mend(None, fit, (Fit(0.9), np.zeros(2)))
    assert mender.searched == [0] and tried == [1, 1]
