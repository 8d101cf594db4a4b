"""Procedural motions: planted feet, limits, constant bones, volume, determinism; motions from files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.meshes import vertex_normals
from calibration.geometry.transforms import rotation_from_vector
from skeleton.actors.actor import build_actor, sample_actor
from skeleton.actors.tissue import volumes
from skeleton.bodies import load_body
from skeleton.motion_files.bvh import read_bvh
from skeleton.motions import Motion, make_motion, motion_from_file, motion_from_rotations, motion_names
from skeleton.motions.footfalls import plan_foot, walk_path
from skeleton.motions.limb_ik import Goal, reach
from skeleton.motions.signals import bump, smoothstep
from skeleton.tree.joint_tree import Joint, Skeleton

CASES = [(body, name) for body in ("mouse", "rat", "human") for name in motion_names(load_body(body))]


@cache
def _made(body: str, name: str, seed: int = 4, sample: bool = True) -> tuple[Skeleton, Motion]:
    skeleton = sample_actor(body, 11).skeleton if sample else load_body(body)
    return skeleton, make_motion(skeleton, name, seconds=2.0, rate_hz=100.0, rng=np.random.default_rng(seed))


@pytest.mark.parametrize(("body", "name"), CASES)
def test_planted_feet_do_not_slide_and_limits_hold(body: str, name: str) -> None:
    skeleton, motion = _made(body, name)
    pose = skeleton.forward(motion.coordinates)
    assert motion.contacts.shape == (200, len(motion.feet)) and motion.contacts.any()
    for column, foot in enumerate(motion.feet):
        points = pose.points(*skeleton.points(list(skeleton.floor_points[foot])))
        stays = motion.contacts[1:, column] & motion.contacts[:-1, column]
        moved = np.linalg.norm(np.diff(points, axis=0), axis=2)[stays]
        assert moved.max(initial=0.0) < 0.1
        # A whole stance, not only neighbouring frames.
        edges = np.flatnonzero(np.diff(np.concatenate([[0], motion.contacts[:, column], [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            assert np.ptp(points[start:stop], axis=0).max() < 0.1
        heights = points[motion.contacts[:, column], 0, 2]
        assert heights.max(initial=-np.inf) - heights.min(initial=np.inf) < 0.1  # all on one floor
    violation = skeleton.limit_violation(motion.coordinates)
    assert violation.angle.max() < 1e-9 and violation.shift.max() < 1e-9


@pytest.mark.parametrize(("body", "name"), CASES)
def test_bones_keep_their_length_and_motion_is_smooth(body: str, name: str) -> None:
    skeleton, motion = _made(body, name)
    pose = skeleton.forward(motion.coordinates)
    for j, parent in enumerate(skeleton.parents):
        if parent >= 0:
            length = np.linalg.norm(pose.positions[:, j] - pose.positions[:, parent], axis=1)
            np.testing.assert_allclose(length, np.linalg.norm(skeleton.joints[j].offset), rtol=0, atol=1e-6)
    # No jumps: no joint turns by more than 65 degrees in a hundredth of a second (a mouse's elbow in a trot comes
    # near: 100 degrees there and back in a swing of 85 ms; people stay under 12).
    speed = np.abs(np.diff(motion.coordinates[:, 3:], axis=0)).max()
    assert speed < np.radians(65 if body != "human" else 20)
    assert (pose.positions[..., 2] > -0.5).all()


@pytest.mark.parametrize(("body", "name"), [("mouse", "walk"), ("mouse", "groom"), ("rat", "rear"), ("human", "walk"),
                                            ("human", "sit")])  # fmt: skip
def test_skin_volume_stays_within_five_percent(body: str, name: str) -> None:
    actor = sample_actor(body, 11)
    _, motion = _made(body, name)
    skin = actor.skin(actor.skeleton.forward(motion.coordinates[::4]), motion.time_s[::4])
    ratio = volumes(skin, actor.faces) / volumes(actor.rest_vertices[None], actor.faces)[0]
    assert np.abs(ratio - 1).max() < 0.05


@pytest.mark.parametrize("body", ["mouse", "human"])
def test_same_seed_same_motion(body: str) -> None:
    skeleton = load_body(body)
    one, two, other = (
        make_motion(skeleton, "walk", frames=40, rate_hz=100.0, rng=np.random.default_rng(s)) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.coordinates, two.coordinates)
    assert np.abs(one.coordinates - other.coordinates).max() > 0.01


@pytest.mark.parametrize("body", ["mouse", "rat"])
def test_postures_sit_upright_hunch_and_turn_within_the_limits(body: str) -> None:
    skeleton = load_body(body)
    motion = make_motion(skeleton, "postures", seconds=6.0, rate_hz=10.0, rng=np.random.default_rng(1))
    violation = skeleton.limit_violation(motion.coordinates)
    assert violation.angle.max() < 1e-9 and violation.shift.max() < 1e-9
    pose = skeleton.forward(motion.coordinates)
    pitch = np.degrees(np.arcsin(pose.rotations[:, 0, 2, 0]))  # of the pelvis, nose up
    assert pitch.min() < 15.0 and pitch.max() > 70.0
    chest, pelvis = pose.rotations[:, skeleton.index("thoracic_3")], pose.rotations[:, 0]
    turned = np.degrees(np.arccos(np.clip(np.sum(chest[:, :, 0] * pelvis[:, :, 0], axis=1), -1, 1)))
    assert np.ptp(turned) > 30.0  # from straight to bent over or aside
    spine = [skeleton.index(name) for name in ("pelvis", "lumbar_2", "thoracic_2", "skull", "tail_4")]
    assert pose.positions[:, spine, 2].min() > 0.0


def test_walks_go_somewhere_with_a_plausible_duty() -> None:
    for body, speed, duty in (("mouse", (100, 260), (0.5, 0.8)), ("human", (700, 1400), (0.4, 0.7))):
        _, motion = _made(body, "walk")
        path = np.linalg.norm(np.diff(motion.coordinates[:, :2], axis=0), axis=1).sum() / 2.0
        assert speed[0] < path < speed[1]
        assert duty[0] < motion.contacts.mean() < duty[1]
        assert len(motion.time_s) == 200


def test_walk_stays_in_the_arena() -> None:
    skeleton = load_body("mouse")
    motion = make_motion(skeleton, "explore", seconds=8.0, rate_hz=50.0, rng=np.random.default_rng(3), arena_mm=90.0)
    assert np.linalg.norm(motion.coordinates[:, :2], axis=1).max() < 160.0


def test_signals() -> None:
    s = np.linspace(-1, 2, 31)
    np.testing.assert_allclose(smoothstep(s) + smoothstep(1 - s), 1.0, atol=1e-12)
    t = np.array([0.0, 1.0, 1.5, 2.0, 3.0])
    np.testing.assert_allclose(bump(t, 0.0, 1.0, 3.0), [0, 1, 1, 1, 0], atol=1e-12)


def test_footfalls_stand_under_the_body_in_mid_stance() -> None:
    """Straight path at constant speed, closed form: landings one stride apart, the neutral point met in mid-stance."""
    t = np.arange(-2, 6, 0.01)
    path = walk_path(t, np.full(len(t), 100.0), np.zeros(len(t)), np.ones(len(t)))
    frames = np.arange(0, 4, 0.01)
    neutral = np.array([10.0, 5.0])
    foot = plan_foot(frames, path, neutral, offset=0.0, duty=0.6, lift_mm=4.0, swing_range_s=(0.1, 1.0))
    assert foot.contact.mean() == pytest.approx(0.6, abs=0.02)
    places = np.unique(np.round(foot.place[foot.contact], 6), axis=0)
    np.testing.assert_allclose(np.diff(places[:, 0]), 100.0, atol=1e-6)
    np.testing.assert_allclose(places[:, 1], 5.0, atol=1e-9)
    body = np.interp(frames, path.t, path.place[:, 0])
    ahead = foot.place[:, 0] - body
    stance = ahead[foot.contact]
    assert stance.mean() == pytest.approx(10.0, abs=1.0)
    assert foot.height.max() == pytest.approx(4.0, abs=0.01)


def test_reach_meets_its_goal_and_says_when_it_cannot() -> None:
    body = load_body("mouse")
    rest = body.forward(body.rest(3))
    target = rest.points(*body.points(["left_palm"]))[:, 0] + np.array([[0, 0, 0], [3.0, 0, 2.0], [-3.0, 1.0, 4.0]])
    joints = ["left_shoulder", "left_elbow", "left_wrist"]
    q = reach(body, body.rest(3), joints, [Goal("left_palm", target)], size=10.0, tolerance_mm=1e-6)
    np.testing.assert_allclose(body.forward(q).points(*body.points(["left_palm"]))[:, 0], target, atol=1e-6)
    with pytest.raises(SolveError, match="'left_palm' misses its place"):
        reach(body, body.rest(3), joints, [Goal("left_palm", target + 100.0)], size=10.0, tolerance_mm=0.1)


def test_rotations_of_the_body_itself_come_back() -> None:
    """The world rotations of a known motion give back that motion."""
    body, motion = _made("human", "walk", sample=False)
    pose = body.forward(motion.coordinates)
    rotations = {name: pose.rotations[:, j] for j, name in enumerate(body.joint_names)}
    back = motion_from_rotations(body, rotations, pose.positions[:, 0])
    there = body.forward(back)
    np.testing.assert_allclose(there.positions, pose.positions, atol=1e-6)


@pytest.mark.realdata
@pytest.mark.parametrize(("clip", "duty"), [("07_01", 0.2), ("02_03", 0.08)])  # a walk, a run
def test_cmu_motion_on_the_built_in_human(shared_data: Path, clip: str, duty: float) -> None:
    body = load_body("human")
    file = read_bvh(shared_data / "cmu" / "bvh" / f"{clip}.bvh", unit_mm=56.444, drop_first=True)
    q, contacts = motion_from_file(file, body)
    assert len(q) == file.frames and contacts.shape == (file.frames, 2)
    assert body.limit_violation(q).angle.max() < 1e-9
    # The shank points as the file's: knee to ankle directions within 12 degrees on average.
    pose = body.forward(q)
    positions, _ = file.poses()
    index = {name: i for i, name in enumerate(file.names)}
    theirs = (positions[:, index["LeftFoot"]] - positions[:, index["LeftLeg"]])[:, [2, 0, 1]]
    ours = pose.positions[:, body.index("left_ankle")] - pose.positions[:, body.index("left_knee")]
    cosine = (theirs * ours).sum(1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(ours, axis=1)
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).mean() < 12
    assert duty < contacts.mean() < 0.8


def test_bad_input() -> None:
    mouse, rng = load_body("mouse"), np.random.default_rng(0)
    with pytest.raises(InputError, match="no motion 'trott'; did you mean 'trot'"):
        make_motion(mouse, "trott", frames=5, rate_hz=100.0, rng=rng)
    with pytest.raises(InputError, match="either seconds or frames"):
        make_motion(mouse, "walk", rate_hz=100.0, rng=rng)
    with pytest.raises(InputError, match="at least 1 frame"):
        make_motion(mouse, "walk", frames=0, rate_hz=100.0, rng=rng)
    with pytest.raises(InputError, match="built-in mouse, rat and human"):
        make_motion(Skeleton("s", (Joint("a", None, "free", np.zeros(3)),)), "walk", frames=5, rate_hz=100.0, rng=rng)
    with pytest.raises(InputError, match="unknown joint"):
        motion_from_rotations(mouse, {"left_arm": rotation_from_vector(np.zeros((2, 3)))}, np.zeros((2, 3)))


def test_rest_pose_of_actor_and_motion_agree() -> None:
    """A motion made for a sampled subject fits that subject's actor."""
    actor = build_actor("mouse", lengths=1.05)
    motion = make_motion(actor.skeleton, "sniff", frames=10, rate_hz=100.0, rng=np.random.default_rng(0))
    skin = actor.skin(actor.skeleton.forward(motion.coordinates))
    assert skin[..., 2].min() > -1.0


def _inside(points: np.ndarray, vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Winding numbers (P,) of points in a closed mesh (van Oosterom and Strackee 1983): 1 inside, 0 outside."""
    out = np.empty(len(points))
    for n, point in enumerate(points):
        a, b, c = (vertices[faces[:, k]] - point for k in range(3))
        la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
        top = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", u, v) for u, v in ((a, b), (b, c), (c, a))]
        bottom = la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb
        out[n] = np.arctan2(top, bottom).sum() / (2 * np.pi)
    return out


@pytest.mark.parametrize(("body", "name", "gap_mm"), [("mouse", "walk", 0.25), ("mouse", "groom", 0.25),
                                                      ("rat", "turn", 0.5), ("human", "walk", 5.0)])  # fmt: skip
def test_skin_does_not_run_through_itself(body: str, name: str, gap_mm: float) -> None:
    """Points just above the skin lie outside the body, but for the folds of bent joints (under 3 %)."""
    actor = sample_actor(body, 11)
    _, motion = _made(body, name)
    chosen = np.random.default_rng(0).choice(len(actor.bind_vertices), 150, replace=False)
    for frame in (70, 130):
        skin = actor.skin(actor.skeleton.forward(motion.coordinates[frame]))[0]
        above = skin[chosen] + gap_mm * vertex_normals(skin, actor.faces)[chosen]
        assert (_inside(above, skin, actor.faces) > 0.5).mean() < 0.03
