"""2D points of other programs: read, named, believed or dropped, and what they do to a fit."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import limbs_of
from tracking.observations.contours import Observation, observe
from tracking.observations.marks import MarkStatus
from tracking.observations.rasteriser import cast_masks
from tracking.points.believing import believe
from tracking.points.files import read_image_points
from tracking.points.following import steadied
from tracking.points.naming import body_names, load_point_names
from tracking.points.placing import Placed, own_points, place_points, points_on, without_wrong
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender
from tracking.subjects.subject import Subject, builtin_subject
from vivarig.track_stage.marked_points import marked_words

JOINTS = ("left_shoulder", "left_elbow", "left_wrist", "right_wrist", "left_knee", "right_knee", "head")


@cache
def human() -> Subject:
    body = builtin_subject("human")
    return replace(body, points=points_on(body, {name: name for name in JOINTS}))


def rig() -> Rig:
    """Four cameras around the origin, 4 m away."""
    lens = PinholeLens((320, 320), np.array([[500.0, 0, 160], [0, 500.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [4000.0 * np.array([np.cos(a), np.sin(a), 0.2]) for a in (0.3, 1.9, 3.4, 5.0)]
    return Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))


@cache
def solver() -> FrameSolver:
    return make_solver(human(), rig())


def bent(angle: float) -> QuadPose:
    """The rest pose with the left arm turned sideways."""
    rest = human().cage_rig.quads.rest
    rotations, centres = rest.rotations.copy(), rest.centres - rest.centres.mean(axis=0)
    limbs = limbs_of(human().cage_rig.quads)
    chain = limbs.chains[limbs.names.index("left_arm")]
    turn = rotation_from_vector(np.array([angle, 0.0, 0.0]))
    rotations[chain] = turn @ rotations[chain]
    centres[chain] = centres[chain[0]] + (centres[chain] - centres[chain[0]]) @ turn.T
    return QuadPose(rotations, centres)


def seen(pose: QuadPose) -> Observation:
    template = human().outline_template
    return observe(cast_masks(rig(), human().cage_rig.deform(template.binding, pose), template.faces))


def marks(pose: QuadPose, shift: Floats | None = None) -> Floats:
    """Pixels (C, P, 2) of the points in a pose."""
    points = human().points
    assert points is not None
    places = human().cage_rig.deform(points.binding, pose) + (0 if shift is None else shift)
    return np.stack([camera.project(places) for camera in rig().cameras])


def sure(pixels: Floats) -> Floats:
    return np.ones(pixels.shape[:2])


def test_names_of_other_programs_are_understood() -> None:
    own = list(own_points(human()))
    given = ["left_shoulder", "LElbow", "Right Wrist", "l_knee", "RAnkle", "leftEar", "head", "cable", "rhip"]
    assert body_names(given, own, {"cable": "", "rhip": "right_hip"}) == {
        "left_shoulder": "left_shoulder", "LElbow": "left_elbow", "Right Wrist": "right_wrist", "l_knee": "left_knee",
        "RAnkle": "right_ankle", "leftEar": "left_temple", "head": "head", "rhip": "right_hip",
    }  # fmt: skip


def test_a_table_of_names_must_name_points_of_the_subject(tmp_path: Path) -> None:
    file = tmp_path / "names.toml"
    file.write_text('[points]\nlw = "left_wrst"\n')
    with pytest.raises(InputError, match="did you mean 'left_wrist'"):
        load_point_names(file, list(own_points(human())))


def test_coco_keypoints_are_read_in_the_order_of_the_frames(tmp_path: Path) -> None:
    file = tmp_path / "cam01.json"
    content = {
        "images": [{"id": 7, "file_name": "b.png"}, {"id": 3, "file_name": "a.png"}],
        "categories": [{"id": 1, "keypoints": ["nose", "left_knee"]}],
        "annotations": [
            {"image_id": 7, "keypoints": [1, 2, 2, 0, 0, 0], "area": 5},
            {"image_id": 3, "keypoints": [9, 9, 2, 9, 9, 2], "area": 1},
            {"image_id": 3, "keypoints": [3, 4, 1, 5, 6, 2], "area": 8},
        ],
    }
    file.write_text(json.dumps(content))
    points = read_image_points(file, rate_hz=60.0)
    assert points.names == ("nose", "left_knee")
    assert np.array_equal(points.pixels, [[[3, 4], [5, 6]], [[1, 2], [np.nan, np.nan]]], equal_nan=True)
    assert np.array_equal(points.confidence, [[0.5, 1.0], [1.0, 0.0]])


def test_a_file_of_3d_points_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    titles = [f"a_{k}" for k in ("x", "y", "z", "error", "ncams", "score")]
    file.write_text(",".join([*titles, "fnum"]) + "\n" + ",".join(["1"] * 7) + "\n")
    with pytest.raises(InputError, match="no 2D points"):
        read_image_points(file, rate_hz=60.0)


def test_wrong_marks_are_told_from_right_ones() -> None:
    pose = bent(0.6)
    pixels = marks(pose)
    elbow, wrist, knee = JOINTS.index("left_elbow"), JOINTS.index("left_wrist"), JOINTS.index("left_knee")
    pixels[0, elbow] = pixels[0, knee]  # on the body, but not where the three others see it
    pixels[1:3, wrist] = 5.0  # far off the silhouettes in two views
    pixels[3, knee] = 5.0
    sightings = believe(rig(), seen(pose).views, pixels, sure(pixels))
    status = sightings.status
    assert status[0, elbow] == MarkStatus.OTHER_VIEWS_DISAGREE
    assert (status[1:, elbow] == MarkStatus.CONFIRMED).all()
    assert (status[:, wrist] == MarkStatus.CONTRADICTS_OUTLINES).all()
    assert status[3, knee] == MarkStatus.OFF_THE_SILHOUETTE
    assert set(zip(sightings.views, sightings.owner, strict=True)) == set(
        zip(*np.nonzero(status == MarkStatus.CONFIRMED), strict=True)
    )
    words = " ".join(marked_words(JOINTS, status[None]))
    assert "mostly dropped: left_wrist" in words


def test_points_bring_back_a_lost_arm() -> None:
    pose, start = bent(1.2), bent(0.3)
    latent = solver().prior.back(solver().prior.chart.to_vector(start.rotations, start.centres)[1])
    hand = human().cage_rig.quads.quad_names.index("left_hand")
    plain = seen(pose)
    pixels = marks(pose)
    told = replace(plain, sightings=believe(rig(), plain.views, pixels, sure(pixels)))
    lost = solver().fit(seen(start), start, latent, latent_steps=False)
    fit = solver().fit(told, lost.pose, lost.latent, latent_steps=False)
    found = LimbMender(solver()).mended(told, fit)
    assert found.points_off < 0.3
    assert np.linalg.norm(found.pose.centres[hand] - pose.centres[hand]) < 40
    wrong = solver().fit(plain, start, latent, latent_steps=False, local_steps=False)
    assert replace(wrong, points_off=2.0).score < wrong.score


def test_points_are_put_where_they_are_marked() -> None:
    points = human().points
    assert points is not None
    term = solver().points
    assert term is not None
    rng = np.random.default_rng(3)
    wrist = JOINTS.index("left_wrist")
    frames = []
    for angle in np.linspace(-0.5, 1.0, 12):
        pose = bent(float(angle))
        offset = np.zeros((len(JOINTS), 3))
        hand = human().cage_rig.quads.quad_names.index("left_hand")
        offset[wrist] = pose.rotations[hand] @ [0.0, 30.0, 0.0]
        pixels = marks(pose, offset) + rng.normal(size=(4, len(JOINTS), 2)) * 0.5
        frames.append(Placed(pose, believe(rig(), seen(pose).views, pixels, sure(pixels))))
    placed = place_points(human().cage_rig, points, frames, solver().camera_rows, solver().unit)
    pose = bent(0.3)
    before, after = (human().cage_rig.deform(one.binding, pose) for one in (points, placed))
    moved = np.linalg.norm(after - before, axis=1)
    assert moved[wrist] == pytest.approx(30.0, abs=4.0)
    assert np.delete(moved, wrist).max() < 4.0
    assert placed.sigma.max() < 15.0


def test_a_point_whose_marks_are_mostly_wrong_has_no_say() -> None:
    points = human().points
    assert points is not None
    rng = np.random.default_rng(5)
    wrist = JOINTS.index("left_wrist")
    frames = []
    for angle in np.linspace(0.0, 0.6, 6):
        pose = bent(float(angle))
        pixels = marks(pose)
        pixels[:, wrist] = rng.uniform(0, 320, (4, 2))
        frames.append(believe(rig(), seen(pose).views, pixels, sure(pixels)))
    assert np.flatnonzero(~np.isfinite(without_wrong(points, frames).sigma)).tolist() == [wrist]


def test_points_without_say_change_nothing() -> None:
    pose = bent(0.5)
    plain = seen(pose)
    pixels = marks(pose, np.array([0.0, 80.0, 0.0]))
    told = replace(plain, sightings=believe(rig(), plain.views, pixels, sure(pixels)))
    points = human().points
    assert points is not None
    silent = make_solver(replace(human(), points=replace(points, sigma=np.full(len(JOINTS), np.inf))), rig())
    latent = silent.prior.back(silent.prior.chart.to_vector(pose.rotations, pose.centres)[1])
    fits = [silent.fit(look, bent(0.4), latent) for look in (plain, told)]
    assert np.array_equal(fits[0].pose.centres, fits[1].pose.centres)
    assert fits[0].score == fits[1].score


def test_noise_of_marks_is_steadied_over_time() -> None:
    """The arm is tracked 20 mm off throughout; marks with 3 px of noise, 24 mm, put it right to 10 mm."""
    points = human().points
    assert points is not None
    rng = np.random.default_rng(4)
    wrist = JOINTS.index("left_wrist")
    sure_points = replace(points, sigma=np.full(len(JOINTS), 40.0))
    frames, wanted = [], []
    for angle in np.linspace(0.2, 0.8, 40):
        pose = bent(float(angle))
        hand = human().cage_rig.quads.quad_names.index("left_hand")
        shift = np.zeros((len(JOINTS), 3))
        shift[wrist] = pose.rotations[hand] @ [0.0, 20.0, 0.0]
        pixels = marks(pose, shift) + rng.normal(size=(4, len(JOINTS), 2)) * 3.0
        frames.append(Placed(pose, believe(rig(), seen(pose).views, pixels, sure(pixels))))
        wanted.append(human().cage_rig.deform(points.binding, pose)[wrist] + shift[wrist])
    told = steadied(human().cage_rig, sure_points, frames, solver().camera_rows, solver().unit)
    places = np.array([one.places[wrist] for one in told if one is not None and one.places is not None])
    assert len(places) == 40
    assert np.linalg.norm(places - np.array(wanted), axis=1).mean() < 13.0
    assert all(one is not None and one.place_sigma is not None and one.place_sigma[wrist] < 20 for one in told)
