"""Four events of a walking foot come in the order in which a person walks; a paw has two."""

from __future__ import annotations

import numpy as np
import pytest

from skeleton.analysis.foot_events import foot_events
from skeleton.bodies import load_body
from skeleton.motions import make_motion


@pytest.mark.parametrize(("body_name", "rate"), [("human", 60.0), ("mouse", 120.0)])
def test_events_come_in_order(body_name: str, rate: float) -> None:
    body = load_body(body_name)
    motion = make_motion(body, "walk", seconds=4.0, rate_hz=rate, rng=np.random.default_rng(5))
    events = foot_events(body, body.forward(motion.coordinates), rate)
    order = ["heel strike", "toe strike", "heel off", "toe off"] if body_name == "human" else ["toe strike", "toe off"]
    for foot in body.floor_points:
        kinds = [one.kind for one in events if one.foot == foot]
        assert set(kinds) == set(order), foot
        # Each event is followed by the next of the cycle, beginning anywhere.
        follows = [order[(order.index(kind) + 1) % len(order)] for kind in kinds[:-1]]
        assert np.mean([got == wanted for got, wanted in zip(kinds[1:], follows, strict=True)]) == 1.0, kinds
    assert [one.time_s for one in events] == sorted(one.time_s for one in events)
