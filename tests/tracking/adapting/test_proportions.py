"""What outlines that miss an animal may say of its bones."""

from __future__ import annotations

import numpy as np
import pytest

from tracking.adapting.proportions import FUR_SPREAD, STOUT_SPREAD, known_of_bodies, known_of_stout_bodies
from tracking.subjects.shape import in_fur, shape_groups

SPREAD = np.array([FUR_SPREAD if part in in_fur("mouse") else STOUT_SPREAD for part in shape_groups("mouse")[1]])


def test_outlines_that_miss_an_animal_by_more_say_less_of_its_proportions() -> None:
    loose, firm = known_of_bodies("mouse", SPREAD), known_of_bodies("mouse", SPREAD, 2.0)
    assert np.allclose(known_of_stout_bodies("mouse", [0.1, 0.2], 1.0), loose), "as where the spreads were chosen"
    for left in (1.0, 1.5, 2.0):
        expected = loose + (left**2 / 0.3 - 1.0) * (firm - loose)
        assert np.allclose(known_of_stout_bodies("mouse", [left, left], 1.0), expected)
    assert np.allclose(known_of_stout_bodies("mouse", [9.0], 1.0), known_of_stout_bodies("mouse", [99.0], 1.0))


def test_they_say_as_much_of_its_size() -> None:
    """Size is no proportion: held as firmly, it stayed where the overlap of four frames had it by chance."""
    good, bad = (known_of_stout_bodies("mouse", [left], 1.0) for left in (0.1, 2.0))
    larger = np.ones(len(good))
    assert np.isclose(larger @ bad @ larger, larger @ good @ larger)
    longer = np.eye(len(good))[0]
    assert longer @ bad @ longer > 2.0 * longer @ good @ longer


@pytest.mark.parametrize("body", ["mouse", "rat"])
def test_legs_of_a_stout_animal_are_as_thick_for_its_size_as_its_build_has_them(body: str) -> None:
    """Whatever the outlines ask for, with a curvature of their own at the stated sigma of a percent."""
    parts = [*shape_groups(body)[0], *shape_groups(body)[1]]
    known = known_of_stout_bodies(body, [0.1], 1.0)
    asked = np.linspace(-0.6, 0.6, len(parts))
    outlines = np.eye(len(parts)) * (3.0 / 0.01) ** 2
    found = np.linalg.solve(known + outlines, outlines @ asked)
    size = found[: len(shape_groups(body)[0])].mean()
    legs = [parts.index(part, len(shape_groups(body)[0])) for part in ("fore_limb", "thigh", "shank")]
    assert np.allclose(found[legs], size, atol=0.01), "with the size, and only with it"
    trunk = [parts.index(part) for part in ("rump", "chest")]
    assert np.allclose(found[trunk], asked[trunk], atol=0.01)
