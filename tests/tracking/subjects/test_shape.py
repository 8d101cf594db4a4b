"""Lengths and girths of a built-in body: what it can be given goes with its size."""

from __future__ import annotations

import numpy as np

from skeleton.actors.actor import build_actor
from tracking.subjects.shape import BodyShape, in_fur, most_girth, shape_groups


def test_a_large_animal_may_be_as_stout_as_a_small_one() -> None:
    for size in (0.8, 1.0, 1.4):
        plain = BodyShape.uniform("rat", size)
        stout = plain.logs.copy()
        rump = len(plain.lengths) + list(plain.girths).index("rump")
        stout[rump] += np.log(1.7)
        shape = BodyShape.from_logs("rat", stout)
        assert np.isclose(shape.girths["rump"], 1.7 * size) and shape.extremes == ()
        stout[rump] += np.log(1.4)  # hunched
        shape = BodyShape.from_logs("rat", stout)
        assert np.isclose(shape.girths["rump"], 1.7 * 1.4 * size) and shape.extremes == ()
        stout[rump] += np.log(1.4)
        shape = BodyShape.from_logs("rat", stout)
        assert np.isclose(shape.girths["rump"], most_girth("rat") * size) and shape.extremes == ("girth of rump",)


def test_people_come_in_one_build_and_have_narrower_limits() -> None:
    plain = BodyShape.uniform("human", 1.0)
    logs = plain.logs.copy()
    logs[len(plain.lengths)] += np.log(2.2)
    shape = BodyShape.from_logs("human", logs)
    assert max(shape.girths.values()) == most_girth("human") < most_girth("mouse") and len(shape.extremes) == 1
    assert in_fur("human") == () and set(in_fur("mouse")) == set(in_fur("rat")) < set(shape_groups("rat")[1])


def test_a_stout_large_rat_can_be_built() -> None:
    shape = BodyShape.uniform("rat", 1.4)
    actor = build_actor("rat", lengths=shape.joint_lengths(), girth=dict.fromkeys(shape.joint_girths(), 2.3))
    plain = build_actor("rat")
    wide = np.ptp(actor.rest_vertices[:, 1]) / np.ptp(plain.rest_vertices[:, 1])
    assert np.isfinite(actor.rest_vertices).all() and 1.3 < wide < 2.6
