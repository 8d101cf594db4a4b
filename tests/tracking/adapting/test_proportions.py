"""What outlines that miss an animal may say of its bones."""

from __future__ import annotations

import numpy as np

from tracking.adapting.proportions import STOUT_SPREAD, known_of_bodies, known_of_stout_bodies


def test_outlines_that_miss_an_animal_by_more_say_less_of_its_proportions() -> None:
    loose, firm = known_of_bodies("mouse", STOUT_SPREAD), known_of_bodies("mouse", STOUT_SPREAD, 2.0)
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
