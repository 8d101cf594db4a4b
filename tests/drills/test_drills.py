"""A little bad luck: two kills with the same bytes in the end, a pair of commands, a full disk."""

from __future__ import annotations

import pytest
from drill import drill, harm


@pytest.mark.slow
def test_a_little_bad_luck_does_no_harm() -> None:
    outcome = drill({"kills": 3, "pairs": 1, "disks": 2}, seed=3, until="hull")
    assert not harm(outcome), outcome
    assert outcome["kills"]["same bytes"] >= 1
