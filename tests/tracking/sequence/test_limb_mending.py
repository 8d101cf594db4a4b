"""How often a limb is looked for: ever more rarely while that is in vain, at once when it gets worse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracking.sequence.limb_mending import LONGEST_WAIT, LimbMender


@pytest.fixture
def mender() -> Any:
    """A mender of one limb beside the trunk that is always contradicted, and a search that always gains a little."""
    one: Any = LimbMender.__new__(LimbMender)
    one._doubt, one._head = 0.1, None
    one._wait, one._left, one._vain = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2)
    one.searched, one.frame, one.bad = [], 0, 0.3

    def propose(*_: Any) -> list[Any]:
        one.searched.append(one.frame)
        return [None]

    one.search = SimpleNamespace(propose=propose, fits=lambda _, starts: [SimpleNamespace(score=1.0) for _ in starts])
    one._shown = lambda *_: 1.0
    one._better = lambda observation, first, second, limb: second
    one._badness = lambda *_: np.array([0.0, one.bad])
    return one


def test_a_search_that_leaves_the_limb_contradicted_is_in_vain(mender: Any) -> None:
    for mender.frame in range(60):
        mender.mend(None, SimpleNamespace(score=0.5, pose=None))
    assert mender.searched[:5] == [0, 2, 6, 14, 30]
    assert np.diff(mender.searched).max() == LONGEST_WAIT + 1


def test_a_limb_that_gets_worse_is_looked_for_at_once(mender: Any) -> None:
    for mender.frame in range(10):
        mender.bad = 0.3 if mender.frame < 8 else 0.6
        mender.mend(None, SimpleNamespace(score=0.5, pose=None))
    assert mender.searched == [0, 2, 6, 8]
