"""Training poses: quads ride on segments, motion files turn the body, markers pull it, and errors are told."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.io
from motion_examples import body_as_motion_file

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import (
    RigidTransform,
    rotation_from_quaternion,
    rotation_from_vector,
    vector_from_rotation,
)
from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.inverse_kinematics.scaling import scale_body
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from skeleton.motion_files import read_motion
from skeleton.motion_files.motions import JointMotion, MarkerSeries
from skeleton.motions import make_motion
from skeleton.tree.joint_tree import Pose
from tracking.priors.files import builtin_prior, builtin_prior_path
from tracking.priors.gplvm import BackMap, Kernel, exact_gplvm, fitc_gplvm, squared_distances
from tracking.priors.make import LEFT_OUT, TEST_SEED, joint_quads
from tracking.priors.mocap_points import known_points
from tracking.priors.motion_mapping import HUMAN_SEGMENTS, pose_from_motion
from tracking.priors.prior import fit_linear_prior
from tracking.priors.scaling import builtin_prior_for, prior_for_subject
from tracking.priors.training_poses import (
    joined,
    mirrored,
    poses_from_markers,
    poses_from_motion,
    poses_from_skeleton,
    reconstruction_error,
)
from tracking.quads.attachment import (
    attach_posed_quads,
    attach_quads,
    attach_quads_by_name,
    carry_quads,
    posed_by_rotations,
)
from tracking.quads.oriented_quads import QuadRig, Region

HUMAN = load_body("human")

#: Quad name: (point of the body, share of the way to the second point, second point).
PLACES = {
    "waist": ("pelvis", 0.9, "lumbar"),
    "chest": ("spine", 0.5, "chest"),
    "neck": ("neck", 0.1, "head"),
    "crown": ("head", 1.0, "head_top"),
    **{
        f"{part}_{side}": (f"{side}_{a}", share, f"{side}_{b}")
        for side in ("left", "right")
        for part, a, share, b in [
            ("shoulder", "shoulder", 0.0, "elbow"),
            ("elbow", "elbow", 0.0, "wrist"),
            ("forearm", "elbow", 0.5, "wrist"),
            ("hand", "wrist", 1.0, "finger_tip"),
            ("hip", "hip", 0.0, "knee"),
            ("knee", "knee", 0.0, "ankle"),
            ("toe", "toes", 1.0, "toe_tip"),
        ]
    },
}


def human_quads(body=HUMAN) -> QuadRig:
    """Quads on a human: one at each main joint, facing along the bone."""
    rest = body.forward(body.rest())
    names = tuple(PLACES)
    centres, rotations = [], []
    for a, share, b in PLACES.values():
        start, stop = rest.points(*body.points([a, b]))[0]
        normal = (stop - start) / np.linalg.norm(stop - start)
        side = np.cross(normal, [0.0, 0.0, 1.0] if abs(normal[2]) < 0.7 else [1.0, 0.0, 0.0])
        side /= np.linalg.norm(side)
        centres.append(start + share * (stop - start))
        rotations.append(np.stack([side, np.cross(normal, side), normal], axis=1))

    def region(name, *quads):
        return Region(name, tuple(names.index(quad) for quad in quads))

    regions = [
        region("trunk", "waist", "chest", "hip_left", "hip_right"),
        region("thorax", "chest", "neck", "shoulder_left", "shoulder_right"),
        region("skull", "neck", "crown"),
    ]
    for side in ("left", "right"):
        chain = [["shoulder", "elbow"], ["elbow", "forearm"], ["forearm", "hand"], ["hip", "knee"], ["knee", "toe"]]
        regions += [region(f"{a}_{b}_{side}", f"{a}_{side}", f"{b}_{side}") for a, b in chain]
    extents = np.full((len(names), 4), 60.0)
    return QuadRig("human", names, np.array(rotations), np.array(centres), extents, tuple(regions), 0)


RIG = human_quads()
ATTACHMENT = attach_quads(RIG, HUMAN)


def random_pose(rng, frames=6, size=0.4):
    coordinates = size * rng.normal(size=(frames, HUMAN.dimension))
    coordinates[:, :3] *= 1000
    return HUMAN.forward(HUMAN.clamp(coordinates))


def test_at_rest_the_quads_rest():
    quads = carry_quads(ATTACHMENT, HUMAN.forward(HUMAN.rest()))
    np.testing.assert_allclose(quads.rotations[0], RIG.rotations, atol=1e-12)
    np.testing.assert_allclose(quads.centres[0], RIG.centres, atol=1e-9)


def test_a_rigid_motion_of_the_body_moves_all_quads_rigidly():
    rest = HUMAN.forward(HUMAN.rest())
    move = RigidTransform.from_vectors([0.3, -0.5, 2.0], [100.0, 2000.0, -30.0])
    moved = Pose(move.apply(rest.positions), move.rotation @ rest.rotations)
    quads = carry_quads(ATTACHMENT, moved)
    np.testing.assert_allclose(quads.centres[0], move.apply(RIG.centres), atol=1e-9)
    np.testing.assert_allclose(quads.rotations[0], move.rotation @ RIG.rotations, atol=1e-12)


def test_attachment_finds_the_joint_and_the_half_rotation():
    held = dict(zip(RIG.quad_names, zip(ATTACHMENT.proximal, ATTACHMENT.distal, strict=True), strict=True))
    share = dict(zip(RIG.quad_names, ATTACHMENT.share, strict=True))
    names = HUMAN.joint_names
    for quad, proximal, distal, part in [
        ("elbow_left", "left_shoulder", "left_elbow", 0.5),
        ("knee_right", "right_hip", "right_knee", 0.5),
        ("hip_left", "pelvis", "left_hip", 0.5),
        ("forearm_left", "left_shoulder", "left_elbow", 1.0),
        ("hand_right", "right_elbow", "right_wrist", 1.0),
        ("crown", "neck", "head", 1.0),
    ]:
        assert (names[held[quad][0]], names[held[quad][1]]) == (proximal, distal), quad
        assert share[quad] == pytest.approx(part), quad
    # Quads of the trunk never ride on a limb, although a collar bone is nearer to the neck than the spine.
    for quad in ("waist", "chest", "neck"):
        assert "left" not in names[held[quad][1]] and "right" not in names[held[quad][1]]
    assert any("elbow_left: left_shoulder + 0.50 of left_elbow" in line for line in ATTACHMENT.describe())


def test_a_bent_elbow_turns_its_quad_by_half():
    coordinates = HUMAN.rest()
    coordinates[0, HUMAN.columns("left_elbow")] = [1.2, 0.0]
    quads = carry_quads(ATTACHMENT, HUMAN.forward(coordinates))
    turn = np.linalg.norm(vector_from_rotation(quads.rotations[0] @ np.swapaxes(RIG.rotations, -1, -2)), axis=1)
    angle = dict(zip(RIG.quad_names, turn, strict=True))
    assert angle["elbow_left"] == pytest.approx(0.6)
    assert angle["forearm_left"] == pytest.approx(1.2)
    assert angle["shoulder_left"] == pytest.approx(0.0, abs=1e-9)
    # The quad sits on the joint, which does not move.
    elbow = RIG.index("elbow_left")
    np.testing.assert_allclose(quads.centres[0, elbow], RIG.centres[elbow], atol=1e-9)


def test_attachment_by_name():
    table = {name: ["pelvis"] for name in RIG.quad_names} | {"elbow_left": ["left_shoulder", "left_elbow"]}
    by_name = attach_quads_by_name(RIG, HUMAN, table)
    pose = random_pose(np.random.default_rng(1))
    both = [carry_quads(a, pose).centres[:, RIG.index("elbow_left")] for a in (by_name, ATTACHMENT)]
    np.testing.assert_allclose(both[0], both[1], atol=1e-9)
    with pytest.raises(InputError, match="quad 'waist' is attached to no segment"):
        attach_quads_by_name(RIG, HUMAN, {})
    with pytest.raises(InputError, match="a segment and its child"):
        attach_quads_by_name(RIG, HUMAN, table | {"waist": ["head", "pelvis"]})
    with pytest.raises(InputError, match="unknown joint 'tail'"):
        attach_quads_by_name(RIG, HUMAN, table | {"waist": ["tail"]})


def test_own_motion_comes_back_through_a_file():
    pose = random_pose(np.random.default_rng(2))
    again = pose_from_motion(body_as_motion_file(pose), HUMAN, HUMAN_SEGMENTS)
    np.testing.assert_allclose(again.positions, pose.positions, atol=1e-6)
    np.testing.assert_allclose(again.rotations, pose.rotations, atol=1e-9)


def test_a_file_of_unknown_names_is_refused():
    motion = body_as_motion_file(random_pose(np.random.default_rng(2)))
    strange = JointMotion(
        tuple(f"bone{i}" for i in range(len(motion.names))), motion.parents, motion.offsets, motion.tips,
        motion.shifts, motion.rotations, 120.0,
    )  # fmt: skip
    with pytest.raises(InputError, match=r"no joint of the file moves 'pelvis'.*bone0"):
        pose_from_motion(strange, HUMAN, HUMAN_SEGMENTS)


def test_markers_pull_the_body_and_carry_the_quads():
    truth = random_pose(np.random.default_rng(3), frames=4, size=0.15)
    # Three beads on every segment: more than implants give, so that the answer is known.
    names = [f"{joint}_{k}" for joint in HUMAN.joint_names for k in range(3)]
    carriers = [joint for joint in HUMAN.joint_names for _ in range(3)]
    beads = MarkerSet(
        tuple(names), tuple(carriers), np.tile(20.0 * np.eye(3), (len(HUMAN.joints), 1)), np.ones(len(names))
    )
    points = truth.points(np.array([HUMAN.index(name) for name in carriers]), beads.offsets)
    series = MarkerSeries(beads.names, points, 120.0, up="z")
    found = poses_from_markers(ATTACHMENT, series, "beads", marker_set=beads, step=2, scale=False)
    assert found.sources == ("beads:0", "beads:2")
    wanted = carry_quads(ATTACHMENT, truth).centres[[0, 2]]
    # Joint springs hold against the beads a little, most where a quad is far from the nearest joint.
    off = np.linalg.norm(found.centres - wanted, axis=-1)
    assert np.median(off) < 0.5
    assert off.max() < 20.0


def test_frames_with_holes_are_left_out_and_sets_join():
    pose = random_pose(np.random.default_rng(4))
    positions = pose.positions.copy()
    positions[2, 5] = np.nan
    some = poses_from_skeleton(ATTACHMENT, Pose(positions, pose.rotations), "clip")
    assert some.sources == tuple(f"clip:{i}" for i in (0, 1, 3, 4, 5))
    both = joined([some, some])
    assert len(both) == 10
    assert len(both.representative(3)) == 3
    with pytest.raises(InputError, match="no set to join"):
        joined([])


def test_mirroring_twice_is_nothing_and_once_swaps_sides():
    poses = poses_from_skeleton(ATTACHMENT, random_pose(np.random.default_rng(5)), "clip")
    once = mirrored(ATTACHMENT, poses)
    twice = mirrored(ATTACHMENT, once)
    chart = poses.chart()
    np.testing.assert_allclose(twice.vectors(chart), poses.vectors(chart), atol=1e-9)
    left, right = RIG.index("hand_left"), RIG.index("hand_right")
    waist = RIG.index("waist")
    lever = [[one.centres[:, hand] - one.centres[:, waist] for one in (once, poses)] for hand in (left, right)]
    np.testing.assert_allclose(lever[0][0], lever[1][1] * [1, -1, 1], atol=1e-9)
    # A reflected pose is a pose: the quads ride on a body that was itself reflected.
    rest = poses_from_skeleton(ATTACHMENT, HUMAN.forward(HUMAN.rest()), "rest")
    np.testing.assert_allclose(mirrored(ATTACHMENT, rest).centres, rest.centres, atol=1e-6)
    np.testing.assert_allclose(mirrored(ATTACHMENT, rest).rotations, rest.rotations, atol=1e-9)


def test_reconstruction_error_of_a_complete_linear_prior_is_zero():
    poses = poses_from_skeleton(ATTACHMENT, random_pose(np.random.default_rng(6), 8), "clip")
    chart = poses.chart()
    names = {"rig_name": RIG.name, "quad_names": RIG.quad_names}
    whole = reconstruction_error(fit_linear_prior(poses.vectors(chart), 7, chart, **names), poses)
    half = reconstruction_error(fit_linear_prior(poses.vectors(chart), 3, chart, **names), poses)
    assert whole.centre_mm < 1e-6 and whole.corner_mm < 1e-6
    assert half.centre_mm > 1.0 and half.corner_mm > 1.0 and half.rotation_deg > 0.5


def test_known_reconstruction_error():
    # A prior that shows every pose as the rest pose: the error is the pose's own distance from rest.
    rest = poses_from_skeleton(ATTACHMENT, HUMAN.forward(HUMAN.rest(2)), "rest")
    chart = rest.chart(length_scale=100.0)

    class Still:
        latent_dim = 1
        training_latents = np.zeros((1, 1))
        training_poses = rest.vectors(chart)[:1]

        def mean(self, x):
            return np.broadcast_to(self.training_poses[0], (*x.shape[:-1], chart.dimension))

        def mean_jacobian(self, x):
            return np.ones((chart.dimension, 1))

        def back(self, y):
            return np.zeros(1)

    prior = Still()
    prior.chart = chart
    turned = rest.rotations[:1].copy()
    hand = RIG.index("hand_left")
    turned[0, hand] = rotation_from_vector(np.array([0.1, 0.0, 0.0])) @ turned[0, hand]
    moved = rest.subset([0])
    moved.rotations[:] = turned
    error = reconstruction_error(prior, moved)
    assert error.centre_mm == pytest.approx(0.0, abs=1e-9)
    assert error.rotation_deg == pytest.approx(np.degrees(0.1) / np.sqrt(len(RIG)))


def prior_of(poses):
    """A prior with principal components as latents: enough where training is not the matter."""
    chart = poses.chart()
    y = poses.vectors(chart)
    names = {"rig_name": poses.rig.name, "quad_names": poses.rig.quad_names}
    latents = fit_linear_prior(y, 4, chart, **names).training_latents
    back = BackMap(y, np.zeros((len(y), 4)), 1.0 / np.median(squared_distances(y, y)))
    return dataclasses.replace(
        exact_gplvm(latents, y, Kernel(2.0, 0.2, 1e-4), back, chart, **names), training_segments=poses.segments
    )


def sparse_of(prior, inducing):
    """The same prior in FITC form."""
    names = {"rig_name": prior.rig_name, "quad_names": prior.quad_names}
    latents, poses = prior.training_latents, prior.training_poses
    made = fitc_gplvm(latents, poses, inducing, prior.kernel, prior.back_map, prior.chart, **names, keep=None)
    return dataclasses.replace(made, training_segments=prior.training_segments)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("lengths", [1.1, {"left_hip": 1.08, "right_knee": 0.93, "left_elbow": 1.1, "spine": 0.9}])
def test_a_prior_follows_the_lengths_of_a_subject(lengths, sparse):
    pose = random_pose(np.random.default_rng(7), 30)
    prior = prior_of(poses_from_skeleton(ATTACHMENT, pose, "clip"))
    if sparse:
        prior = sparse_of(prior, prior.training_latents.copy())
    subject = HUMAN.scaled(lengths)
    rig = human_quads(subject)
    attachment = dataclasses.replace(ATTACHMENT, rig=rig, skeleton=subject)
    scaled = prior_for_subject(prior, attachment)
    # Every training pose, made by the subject's own body, is where the prior has it.
    own = carry_quads(attachment, posed_by_rotations(subject, pose.rotations))
    root, _ = scaled.chart.to_vector(own.rotations, own.centres)
    _, centres = scaled.chart.from_vector(root, scaled.mean(scaled.training_latents))
    off = np.linalg.norm(centres - own.centres, axis=-1).mean()
    root, _ = prior.chart.to_vector(own.rotations, own.centres)
    _, stale = prior.chart.from_vector(root, prior.mean(prior.training_latents))
    assert off < 0.5 * np.linalg.norm(stale - own.centres, axis=-1).mean()
    with pytest.raises(InputError, match="does not hold the segment rotations"):
        prior_for_subject(dataclasses.replace(prior, training_segments=None), attachment)


def test_a_prior_for_a_subject_is_the_same_whoever_asked_before():
    prior = prior_of(poses_from_skeleton(ATTACHMENT, random_pose(np.random.default_rng(7), 30), "clip"))
    subjects = [HUMAN.scaled(length) for length in (1.1, 0.9)]
    tall, small = (dataclasses.replace(ATTACHMENT, rig=human_quads(one), skeleton=one) for one in subjects)
    wanted = prior_for_subject(prior, tall)
    prior_for_subject(prior, small)
    assert np.array_equal(prior_for_subject(prior, tall).weights, wanted.weights)
    turned = dataclasses.replace(small, share=0.5 * small.share)
    alone = carry_quads(turned, posed_by_rotations(turned.skeleton, rotation_from_quaternion(prior.training_segments)))
    _, poses = prior_for_subject(prior, turned).chart.to_vector(alone.rotations, alone.centres)
    np.testing.assert_allclose(prior_for_subject(prior, turned).training_poses, poses, atol=1e-9)


@pytest.mark.realdata
def test_two_encodings_of_a_walk_give_the_same_legs(shared_data):
    folder = shared_data / "cmu"
    bvh = read_motion(folder / "bvh" / "07_01.bvh", unit_mm=56.444, drop_first=True)
    amc = read_motion(folder / "asf_amc" / "07" / "07_01.amc", rate_hz=120.0)
    from_bvh = poses_from_motion(ATTACHMENT, bvh, HUMAN_SEGMENTS, "07_01.bvh", step=20)
    from_amc = poses_from_motion(ATTACHMENT, amc, HUMAN_SEGMENTS, "07_01.amc", step=20)
    count = min(len(from_bvh), len(from_amc))
    assert count >= 15
    chart = from_amc.chart(length_scale=1.0)
    a, b = from_bvh.subset(range(count)).vectors(chart), from_amc.subset(range(count)).vectors(chart)
    legs = [k for k, q in enumerate(chart.others) if RIG.quad_names[q].split("_")[0] in ("hip", "knee", "toe")]
    gap = np.abs((a - b).reshape(count, -1, 6)[:, legs])
    assert gap[..., :3].max() < 0.5  # mm; the files agree to 0.004 mm, the text to five digits
    # A walk: the knees bend and straighten, the toes pass each other.
    toes = from_amc.centres[:, [RIG.index("toe_left"), RIG.index("toe_right")], 0]
    ahead = toes[:, 0] - toes[:, 1]
    assert ahead.max() > 400 and ahead.min() < -400


@pytest.mark.realdata
def test_walks_fit_few_dimensions(shared_data):
    # pose-spaces.md: about 10 components hold 95 % of most walks.
    clips = [f"07_{n:02d}" for n in (1, 2, 3)]
    sets = [
        poses_from_motion(
            ATTACHMENT,
            read_motion(shared_data / "cmu" / "bvh" / f"{clip}.bvh", unit_mm=56.444, drop_first=True),
            HUMAN_SEGMENTS,
            clip,
            step=6,
        )
        for clip in clips
    ]
    poses = joined(sets)
    chart = poses.chart()
    y = poses.vectors(chart)
    prior = fit_linear_prior(y, 10, chart, rig_name=RIG.name, quad_names=RIG.quad_names)
    left = np.var(y - prior.mean(prior.training_latents), axis=0).sum() / np.var(y, axis=0).sum()
    assert left < 0.05


def test_unknown_points_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"not a point set known here.*marker set file"):
        known_points(load_body("rat"), ["A", "B", "C"])


@pytest.mark.realdata
def test_rat_points_pull_the_rat(shared_data):
    # Network predictions whose segment lengths vary by 4-8 %: a fit to within about 3 % of the trunk is all there is.
    folder = shared_data / "rodent_mocap"
    points = scipy.io.loadmat(folder / "test_rodent_mocap_1000_frames.mat")["pred"].transpose(0, 2, 1)[::50]
    names = tuple(str(name[0]) for name in scipy.io.loadmat(folder / "rat23.mat")["joint_names"][0])
    body = load_body("rat")
    marker_set = known_points(body, names)
    assert set(marker_set.names) == set(names)
    scaling = scale_body(body, names, points, marker_set=marker_set)
    fit = fit_skeleton(scaling.skeleton, names, points, marker_set=scaling.marker_set)
    assert np.nanmedian(fit.residuals) < 3.0
    assert (fit.trust < 2).mean() > 0.9


def test_quads_placed_in_another_pose_come_home():
    # Carried from rest into a pose and attached there, the quads at rest are the ones we started from.
    coordinates = HUMAN.rest()
    coordinates[0, HUMAN.columns("left_hip")] = [0.3, 0.0, 0.0]
    coordinates[0, HUMAN.columns("right_elbow")] = [0.5, 0.0]
    pose = HUMAN.forward(coordinates)
    carried = carry_quads(ATTACHMENT, pose)
    placed = dataclasses.replace(RIG, rotations=carried.rotations[0], centres=carried.centres[0])
    again = attach_posed_quads(placed, HUMAN, pose)
    np.testing.assert_allclose(again.rig.centres, RIG.centres, atol=1e-6)
    np.testing.assert_allclose(again.rig.rotations, RIG.rotations, atol=1e-9)


@pytest.mark.parametrize("body", ["mouse", "rat", "human"])
def test_built_in_priors_go_to_any_quads_and_lengths(body):
    skeleton = load_body(body)
    prior = builtin_prior(body)
    assert prior.latent_dim == (24 if body == "human" else 14)
    assert builtin_prior_path(body).stat().st_size < (4_000_000 if body == "human" else 2_000_000)
    subject = skeleton.scaled(1.07)
    own = builtin_prior_for(attach_quads(joint_quads(subject), subject))
    assert own.rig_name == body
    if body != "human":  # some sit upright: the root does not only turn about the vertical
        assert own.training_roots is not None
        rest = own.training_roots @ joint_quads(subject).rotations[0].T
        assert rest[:, 2, 2].min() < 0.3 and rest[:, 2, 2].max() > 0.9
    assert own.chart.length_scale == pytest.approx(1.07 * prior.chart.length_scale, rel=1e-3)
    # The motion that the sample shows was left out of training (of the human, all that is made up): another seed.
    motion = make_motion(
        subject, LEFT_OUT.get(body, "walk"), rate_hz=10.0, rng=np.random.default_rng(TEST_SEED), seconds=1.5
    )
    attachment = attach_quads(joint_quads(subject), subject)
    poses = poses_from_skeleton(attachment, subject.forward(motion.coordinates), "new")
    size = np.ptp(attachment.rig.centres, axis=0).max()
    assert reconstruction_error(own, poses).centre_mm < 0.03 * size
