"""How a rodent holds itself: postures it takes cost nothing, those it does not cost overlap."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.posture import COST, NECK, Posture, posture_of
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.subjects.subject import load_subject


@pytest.fixture(scope="module", params=["mouse", "rat"])
def rig(request: pytest.FixtureRequest) -> QuadRig:
    return load_subject(request.param).cage_rig.quads


def known(rig: QuadRig) -> Posture:
    posture = posture_of(rig)
    assert posture is not None
    return posture


def turned(rig: QuadRig, *vectors: tuple[float, float, float]) -> QuadPose:
    """The body at rest, turned as a whole by rotation vectors, one after the other."""
    rotations = rig.rotations
    for vector in vectors:
        rotations = rotation_from_vector(np.array(vector)) @ rotations
    return QuadPose(rotations, rig.centres)


@pytest.mark.parametrize("heading", [0.0, 2.0, -1.0])
@pytest.mark.parametrize("pitch", [0.0, -1.4, 0.8])
@pytest.mark.parametrize("roll", [0.0, 0.9, -0.9])
def test_standing_rearing_and_leaning_animals_are_at_ease(
    rig: QuadRig, heading: float, pitch: float, roll: float
) -> None:
    assert known(rig).of(turned(rig, (roll, 0, 0), (0, pitch, 0), (0, 0, heading))) == 0.0


@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_a_back_on_the_ground_is_not_a_posture(rig: QuadRig, heading: float) -> None:
    """Head and trunk both face down: each pays its limit and its whole fall."""
    strain = known(rig).of(turned(rig, (np.pi, 0, 0), (0, 0, heading)))
    assert strain == pytest.approx(COST * (0.5 + 1.0 + 0.2 + 1.0), rel=0.05)


def test_a_rolled_head_and_a_wrung_neck_cost_overlap(rig: QuadRig) -> None:
    posture = known(rig)

    def with_head(vector: tuple[float, float, float]) -> float:
        rotations = rig.rotations.copy()
        rotations[posture.head] = rotation_from_vector(np.array(vector)) @ rotations[posture.head]
        return posture.of(QuadPose(rotations, rig.centres))

    assert with_head((0.8, 0, 0)) == 0.0
    assert with_head((0, 0, 1.4)) == 0.0
    assert with_head((0, 0, NECK + 0.5)) == pytest.approx(0.5 * COST, rel=1e-6)
    assert with_head((2.0, 0, 0)) == pytest.approx(COST * (0.5 - np.cos(2.0) + 2.0 - NECK), rel=0.05)


def test_people_have_no_such_rule() -> None:
    assert posture_of(load_subject("human").cage_rig.quads) is None
