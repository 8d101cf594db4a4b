"""A little bad luck: two kills with the same bytes in the end, a pair of commands, a full disk."""

from __future__ import annotations

import pytest
from drill import drill, harm


@pytest.mark.slow
def test_a_little_bad_luck_does_no_harm() -> None:
    outcome = drill(kill=2, pair=1, disk=2, seed=3, longest=4.0)
    assert not harm(outcome), outcome
    assert outcome["kills"]["same bytes"] == 1
