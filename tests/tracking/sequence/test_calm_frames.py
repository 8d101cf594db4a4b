"""Limbs are judged in every eighth frame where nothing is near a limit, and wherever anything is or anything jumps."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.limbs.evidence import LimbRecord
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.calm_frames import AWAY, BEND, EVERY, FALL, CalmFrames, far_within, worse_of
from tracking.sequence.limb_mending import LimbMender
from tracking.sequence.limb_trust import RODENTS, judge_limbs, limits_of
from tracking.subjects.subject import builtin_subject

NAMES = ("trunk", "head", "left_hind_limb")


def solver(points: object = None) -> Any:
    """What `CalmFrames` asks of a solver of the mouse."""
    return SimpleNamespace(cage_rig=builtin_subject("mouse").cage_rig, unit=0.1, points=points)


def walking(frames: int) -> list[Any]:
    """Fits of a mouse that goes straight on."""
    rest = solver().cage_rig.quads.rest
    centres = [rest.centres + np.array([2.0 * frame, 0.0, 0.0]) for frame in range(frames)]
    return [
        SimpleNamespace(pose=QuadPose(rest.rotations, at), overlap=np.full(3, 0.95), agreement=0.95) for at in centres
    ]


def judged(fits: list[Any], near: tuple[int, ...] = (), known: tuple[int, ...] = ()) -> tuple[list[int], list[Any]]:
    """Frames that are judged, in order, and what is said of the others; ``near`` are near a limit."""
    asked: list[int] = []

    def judge(frame: int) -> bool:
        asked.append(frame)
        return frame not in near

    others = list(CalmFrames(solver()).between(fits, judge, lambda frame: frame in known))
    assert len(set(asked)) == len(asked)
    assert sorted(asked + [frame for frame, _, _ in others]) == [k for k, fit in enumerate(fits) if fit is not None]
    return sorted(asked), others


def test_where_nothing_happens_every_eighth_frame_is_judged() -> None:
    asked, others = judged(walking(19))
    assert asked == [0, EVERY, 2 * EVERY, 18]
    assert others[:3] == [(1, 0, 8), (2, 0, 8), (3, 0, 8)] and others[-1] == (17, 16, 18)


def test_frames_beside_one_that_is_near_a_limit_are_judged() -> None:
    asked, others = judged(walking(20), near=(8,))
    assert asked == [0, 4, 5, 6, 7, 8, 9, 17, 19]
    assert others[0] == (1, 0, 4) and others[3] == (10, 9, 17)


def test_frames_that_are_judged_already_are_taken_first() -> None:
    assert judged(walking(9), known=(2, 6))[0] == [0, 6, 8]


@pytest.mark.parametrize("where", [1, 2, 3])
def test_a_frame_that_does_not_go_on_smoothly_or_fits_worse_or_lacks_a_view_is_judged(where: int) -> None:
    away = walking(9)
    centres = away[where].pose.centres.copy()
    centres[5] += 1.1 * BEND * 0.1 * np.array([0.0, 0.0, 1.0])
    away[where].pose = QuadPose(away[where].pose.rotations, centres)
    worse = walking(9)
    worse[where].agreement -= 1.1 * FALL
    unseen = walking(9)
    unseen[where].overlap = np.array([0.95, np.nan, 0.95])
    for fits in (away, worse, unseen):
        assert where in judged(fits)[0]
    missing: list[Any] = walking(9)
    missing[where] = None
    assert set(range(where)) <= set(judged(missing)[0])


def bent(frames: int, bend: float) -> list[Any]:
    """Fits of a mouse that is off the straight line between its first and last frame, bent alike all the way."""
    fits = walking(frames)
    for frame, fit in enumerate(fits):
        off = bend * 0.1 * frame * (frames - 1 - frame)
        fit.pose = QuadPose(fit.pose.rotations, fit.pose.centres + np.array([0.0, 0.0, off]))
    return fits


def test_within_smooth_frames_a_limb_stays_where_it_is() -> None:
    """Between two judged frames it is off the line by half of what tells two places apart (100), at most."""
    calm, half = CalmFrames(solver()), EVERY // 2
    assert np.isclose((half // 2) ** 2 * BEND, 50.0) and AWAY == 50.0
    assert calm.goes_on(bent(half + 1, 0.999 * BEND)) and not calm.goes_on(bent(half + 1, 1.001 * BEND))
    most = AWAY / half**2
    assert calm.goes_on(bent(EVERY + 1, 0.999 * most)) and not calm.goes_on(bent(EVERY + 1, 1.001 * most))
    assert judged(bent(EVERY + 1, 1.001 * most))[0] == [0, half, EVERY]


def test_marked_points_are_looked_at_in_every_frame() -> None:
    assert not CalmFrames(solver(points=object())).goes_on(walking(5))


def record(frames: int = 3) -> LimbRecord:
    """Limbs of which nothing is wrong."""
    one = LimbRecord.empty(frames, len(NAMES))
    for key in ("bad", "outside", "missing"):
        getattr(one, key)[:] = 0.0
    one.views[:], one.residual[:], one.weak[:], one.lead[:] = 5.0, 0.3, 0.2, 0.1
    one.turned[:, :2] = 0.1
    return one


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("bad", 0.03),
        ("missing", 0.08),
        ("residual", 1.3),
        ("weak", 0.33),
        ("views", 2.0),
        ("lead", -0.15),
        ("turned", 0.02),
    ],
)
def test_what_is_near_a_limit_is_believed_and_not_far_within(key: str, value: float) -> None:
    told = record()
    assert far_within(told, 1, 0.1, NAMES)
    limb = 1 if key == "turned" else 2
    getattr(told, key)[1, limb] = value
    assert not judge_limbs(told, unit=0.1, limits=RODENTS)[0].any()
    assert not far_within(told, 1, 0.1, NAMES) and far_within(told, 0, 0.1, NAMES)


def test_a_frame_between_is_as_bad_as_the_worse_of_those_judged() -> None:
    told = record()
    told.bad[0, 1], told.lead[2, 1], told.residual[2, 2] = 0.02, 0.05, np.nan
    worse_of(told, 1, 0, 2)
    assert told.bad[1, 1] == 0.02 and told.lead[1, 1] == 0.05 and told.residual[1, 2] == 0.3
    assert np.isnan(told.turned[1, 2])


def test_a_leg_put_aside_for_a_frame_is_doubted_there_and_most_others_are_not_judged() -> None:
    mouse = builtin_subject("mouse")
    lens = PinholeLens((320, 320), np.array([[900.0, 0, 160], [0, 900.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), 0.4]) for a in (0.3, 1.2, 1.9, 3.4, 4.2, 5.0)]
    cameras = Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))
    rest = mouse.cage_rig.quads.rest
    pose = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, pose)
    look = observe(list(cast_masks(cameras, surface, mouse.outline_template.faces)))
    one = make_solver(mouse, cameras)
    mender = LimbMender(one)
    names = mender.evidence.limbs.names
    right = one.fit(look, pose, mender.search.latent_of(pose), latent_steps=False)
    leg = names.index("left_hind_limb")
    chain = mender.evidence.limbs.chains[leg]
    turn = rotation_from_vector(np.array([0.0, 1.2, 0.0]))
    rotations, centres = right.pose.rotations.copy(), right.pose.centres.copy()
    rotations[chain], root = turn @ rotations[chain], centres[chain[0]]
    centres[chain] = root + (centres[chain] - root) @ turn.T
    aside = QuadPose(rotations, centres)
    fits = [replace(right) for _ in range(13)]
    fits[6] = replace(right, pose=aside, overlap=one.overlap(look, aside))
    asked: list[int] = []
    judge = mender._judge

    def counted(*about: Any) -> None:
        asked.append(about[3])
        judge(*about)

    mender._judge = counted  # type: ignore[method-assign]
    told = mender.record(lambda frame: look, list(fits))
    trust = judge_limbs(told, unit=one.unit, limits=limits_of(names))[0]
    assert trust[6, leg] > 0
    assert far_within(told, 0, one.unit, names) and len(asked) < 10 and 6 in asked
