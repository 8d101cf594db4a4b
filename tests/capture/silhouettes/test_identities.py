"""Who is who from frame to frame: solids that move, meet, part, leave and come back."""

from __future__ import annotations

import numpy as np

from capture.silhouettes.subjects.identities import Identities
from capture.silhouettes.subjects.solids import Solid


def solid(x: float, y: float = 0.0, *, half: float = 20.0) -> Solid:
    centre = np.array([x, y, 10.0])
    return Solid(centre, centre - half, centre + half, [])


def test_names_follow_subjects_that_pass_each_other() -> None:
    """At 60 mm apart and 8 mm a frame; the order of the solids (by volume) changes half-way."""
    identities = Identities(2)
    for frame in range(21):
        x = -80.0 + 8.0 * frame
        pair = [solid(x, -30.0), solid(-x, 30.0)]
        named = identities.name(pair if frame < 10 else pair[::-1])
        assert named.solid.tolist() == ([0, 1] if frame < 10 else [1, 0])
        assert not named.touching.any() and not named.unsure.any()


def test_contact_is_said_and_names_after_it_are_unsure() -> None:
    identities = Identities(2)
    identities.name([solid(-40.0), solid(40.0)])
    identities.name([solid(-25.0), solid(25.0)])
    for _ in range(3):
        merged = identities.name([solid(0.0, half=40.0)])
        assert merged.solid.tolist() == [0, 0] and merged.touching.all() and not merged.unsure.any()
    parted = identities.name([solid(30.0), solid(-30.0)])
    assert parted.solid.tolist() == [1, 0] and parted.unsure.all() and not parted.touching.any()
    after = identities.name([solid(-35.0), solid(35.0)])
    assert after.solid.tolist() == [0, 1] and not after.unsure.any()


def test_one_that_leaves_is_missing_not_merged_and_keeps_its_name() -> None:
    identities = Identities(2)
    identities.name([solid(-100.0), solid(100.0)])
    for _ in range(2):
        alone = identities.name([solid(105.0)])
        assert alone.solid.tolist() == [-1, 0] and not alone.touching.any()
    back = identities.name([solid(104.0), solid(-90.0)])
    assert back.solid.tolist() == [1, 0] and not back.unsure.any()


def test_a_jump_that_fits_both_ways_is_unsure() -> None:
    identities = Identities(2)
    identities.name([solid(-30.0), solid(30.0)])
    assert identities.name([solid(0.0, 70.0), solid(0.0, -70.0)]).unsure.all()


def test_nothing_seen_at_first() -> None:
    identities = Identities(2)
    assert identities.name([]).solid.tolist() == [-1, -1]
    assert identities.name([solid(0.0)]).solid.tolist() == [0, -1]
    assert identities.name([solid(200.0), solid(1.0)]).solid.tolist() == [1, 0]
