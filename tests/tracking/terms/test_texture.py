"""Marks on the skin: followed in images, bound to the template, and what they tell that no silhouette does."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import trimesh
from example_rigs import four_around

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from tracking.fitting.joint_fit import FrameBlock, MarkRows, joint_step
from tracking.fitting.point_fit import moved
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameSolver
from tracking.observations.contours import observe
from tracking.observations.feature_tracks import FeatureFollower, FeatureTracks, FollowSettings, _flattened, follow
from tracking.observations.rasteriser import cast_masks
from tracking.priors.pose_chart import fit_pose_chart
from tracking.priors.prior import LinearPrior, fit_linear_prior
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.placement import Cut, enclose, quads_at_cuts
from tracking.quads.template import Template
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.tracker import Tracker
from tracking.terms.texture import FrameMarks, bind_tracks, match_marks

FRAMES = 16
TURN = 0.25
"""Largest roll of the limb about its axis, rad."""


def cameras() -> Rig:
    """Four cameras around a limb along z, 1 px = 1 mm."""
    return four_around((320, 340), 900.0, 0.1)


@cache
def limb() -> tuple[CageRig, Template]:
    """A round limb along z, whose roll no silhouette shows, with four quads."""
    mesh = trimesh.creation.icosphere(subdivisions=4, radius=1.0)
    vertices = np.asarray(mesh.vertices) * np.array([40.0, 40.0, 140.0])
    cuts = []
    for index, z in enumerate(np.linspace(-150, 150, 4)):
        extents = np.full(4, 30.0) if index in (0, 3) else None
        cuts.append(Cut(f"q{index}", np.array([0, 0, z]), np.array([0, 0, 1.0]), np.array([1.0, 0, 0]), extents))
    regions = [(f"r{index}", [f"q{index}", f"q{index + 1}"]) for index in range(3)]
    faces = np.asarray(mesh.faces)
    made = quads_at_cuts("limb", vertices, faces, cuts, regions, root="q0", margin=5.0)
    held = enclose(made, vertices, margin=3.0)
    cage_rig = CageRig(held.rig, held.cage)
    return cage_rig, Template(vertices, faces, cage_rig.bind(vertices, margin=2.5))


def rolled(amount: float, shift: float = 0.0, twist: float = 0.0) -> QuadPose:
    """The limb turned about its axis by ``amount`` rad, its far end by ``twist`` more, and moved."""
    rest = limb()[0].quads
    turns = rotation_from_vector((amount + np.linspace(0, twist, 4))[:, None] * np.array([0.0, 0, 1]))
    return QuadPose(turns @ rest.rotations, rest.centres + np.array([shift, 0.0, 0.0]))


@cache
def prior() -> LinearPrior:
    """Poses twisted either way; of the roll as a whole a prior knows nothing."""
    poses = [rolled(0.0, twist=twist) for twist in np.linspace(-0.2, 0.2, 9)]
    rotations, centres = np.array([p.rotations for p in poses]), np.array([p.centres for p in poses])
    chart = fit_pose_chart(rotations, centres, root=0)
    return fit_linear_prior(
        chart.to_vector(rotations, centres)[1], 1, chart, rig_name="limb", quad_names=limb()[0].quads.quad_names
    )


def solver() -> FrameSolver:
    """A limb is a fifth of a body: what is measured in thousandths of the body is five times as much of the limb."""
    cage_rig, template = limb()
    rig = cameras()
    settings = Settings(mark_sigma=5 * Settings.mark_sigma, mark_robust=5 * Settings.mark_robust)
    return FrameSolver(cage_rig, template, rig.packed(), [c.size for c in rig], prior(), settings=settings)


def poses() -> list[QuadPose]:
    return [rolled(TURN * np.sin(2 * np.pi * t / FRAMES), 0.5 * t) for t in range(FRAMES)]


def painted(pose: QuadPose, *, contrast: float) -> tuple[list[Bytes], list[Bools]]:
    """Images of the limb with spots fixed to its skin, each seen where its nearest visible face is, and silhouettes."""
    cage_rig, template = limb()
    rig = cameras()
    vertices = cage_rig.deform(template.binding, pose)
    masks = cast_masks(rig, vertices, template.faces)
    shade = np.random.default_rng(3).uniform(-1, 1, len(template.faces))
    images = []
    for camera in rig.cameras:
        image = np.full((camera.size[1], camera.size[0]), 200, np.uint8)
        pixels = camera.project(vertices)[template.faces]
        u, v = pixels[:, 1] - pixels[:, 0], pixels[:, 2] - pixels[:, 0]
        for face in np.flatnonzero(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0] < 0):
            corners = np.rint(16 * pixels[face]).astype(np.int32)
            cv2.fillConvexPoly(image, corners, float(90 + contrast * shade[face]), cv2.LINE_8, 4)
        images.append(cv2.GaussianBlur(image, (0, 0), 1.0))
    return images, masks


@cache
def filmed(contrast: float) -> FeatureTracks:
    return follow(painted(pose, contrast=contrast) for pose in poses())


def roll(pose: QuadPose) -> float:
    """Turn of the limb's middle about its axis, degrees."""
    rest = limb()[0].quads
    return float(np.degrees(vector_from_rotation(pose.rotations[1] @ rest.rotations[1].T)[2]))


def tracked(texture: FeatureTracks | None) -> Floats:
    """Roll that the tracker finds in each frame, degrees."""
    looks = [observe(cast_masks(cameras(), limb()[0].deform(limb()[1].binding, p), limb()[1].faces)) for p in poses()]
    start = poses()[0]
    latent = prior().back(prior().chart.to_vector(start.rotations, start.centres)[1])
    settings = TrackerSettings(mark_gate=5 * TrackerSettings.mark_gate, restarts=False)
    track = Tracker(solver(), cameras(), settings=settings).track(
        looks.__getitem__, FRAMES, start=0, guess=(start, latent), texture=texture
    )
    return np.array([roll(fit.pose) for fit in track.fits if fit is not None])


def test_marks_follow_the_skin() -> None:
    tracks = filmed(60.0)
    cage_rig, template = limb()
    surfaces = [cage_rig.deform(template.binding, pose) for pose in poses()]
    rig = cameras()
    marks = bind_tracks(
        tracks, template, surfaces.__getitem__, rig.packed(), np.array([c.centre for c in rig.cameras]), gate=10.0
    )
    assert len(marks) > 0.9 * len(tracks)
    assert len(tracks) / FRAMES > 60
    off = []
    for frame, pose in enumerate(poses()):
        seen = marks.at(frame)
        matches = match_marks(cage_rig.deform(seen.binding, pose), seen, rig.packed())
        off.append(matches.residuals)
    # mm, 1 px: whole-pixel polygon edges and 8-bit grey leave some tenths of a pixel
    assert np.sqrt(np.mean(np.concatenate(off) ** 2)) < 0.8


def test_texture_recovers_the_roll_that_silhouettes_do_not_see() -> None:
    truth = np.array([roll(pose) for pose in poses()])
    assert np.std(truth) > 9  # degrees
    blind = tracked(None)
    assert np.std(blind - truth) > 0.5 * np.std(truth)  # a round limb's outline turns with it by its facets only
    told = tracked(filmed(60.0))
    # What all frames have in common is not seen; what changes is, to a fifth.
    assert np.std(told - truth) < 0.2 * np.std(truth)


def test_no_texture_no_marks() -> None:
    assert len(filmed(0.0)) == 0


def test_derivatives_of_marks_match_finite_differences() -> None:
    cage_rig, template = limb()
    rig = cameras()
    fitter = solver()
    pose = rolled(0.3, 4.0)
    surfaces = [cage_rig.deform(template.binding, pose)] * 4
    pixels = np.tile(rig.cameras[0].project(surfaces[0][[1000, 1500, 900]]) + 0.3, (4, 1))
    tracks = FeatureTracks(np.repeat(np.arange(4), 3), np.zeros(12, np.int64), np.tile(np.arange(3), 4), pixels)
    centres = np.array([c.centre for c in rig.cameras])
    marks = bind_tracks(tracks, template, surfaces.__getitem__, rig.packed(), centres, gate=5.0).at(0)
    assert len(marks.views) >= 2

    def seen(at: QuadPose) -> Floats:
        return rig.cameras[0].project(cage_rig.deform(marks.binding.astype(np.float64), at)).ravel()

    rows = fitter.mark_rows(marks, pose)
    unit = match_marks(cage_rig.deform(marks.binding, pose), marks, rig.packed())
    scale = rows.residuals / unit.residuals  # 1 / sigma and the robust weight
    by_point = rig.cameras[0].project_with_jacobians(cage_rig.deform(marks.binding, pose)).by_point
    rate = np.linalg.norm(by_point, axis=2).ravel()
    step = 1e-5
    for column in range(rows.jacobian.shape[1]):
        change = np.zeros(rows.jacobian.shape[1])
        change[column] = step
        slope = (seen(moved(pose, change)) - seen(moved(pose, -change))) / (2 * step)
        # single precision
        np.testing.assert_allclose(rows.jacobian[:, column], slope * scale / rate, rtol=2e-3, atol=2e-3 * scale.max())


def test_joint_step_is_the_least_of_the_whole_energy() -> None:
    rng = np.random.default_rng(0)
    frames, size, quads, spots = 5, 8, 6, 4
    blocks, rows = [], []
    for frame in range(frames):
        # Numbers of very different units (rad, mm, latent), and a frame without marks
        units = 10.0 ** rng.uniform(-3, 3, size)
        a = rng.normal(size=(size, size))
        count = frame % 4
        row = MarkRows(
            rng.normal(size=(2 * count, quads)).astype(np.float32),
            rng.normal(size=(2 * count, 3)),
            rng.normal(size=2 * count),
            rng.choice(spots, count, replace=False),
        )
        hessian_of_one = (a @ a.T + np.eye(size)) * units[:, None] * units
        bend = rng.normal(size=quads) if 0 < frame < frames - 1 else None
        blocks.append(FrameBlock(hessian_of_one.astype(np.float32), units * rng.normal(size=size), row, bend))
        rows.append(row)
    spread = np.tile(0.5 * np.eye(3), (spots, 1, 1))
    weight = np.full(quads, 2.0)
    found = joint_step(blocks, spread, weight, iterations=400, tolerance=1e-6)
    # The same energy written out as one dense system, spots included
    total = frames * size + 3 * spots
    hessian, gradient = np.zeros((total, total)), np.zeros(total)
    hessian[frames * size :, frames * size :] = 0.5 * np.eye(3 * spots)
    for frame, block in enumerate(blocks):
        own = slice(frame * size, frame * size + size)
        hessian[own, own] += block.hessian
        gradient[own] += block.gradient
        wide = np.zeros((len(block.rows.residuals), total))
        wide[:, frame * size : frame * size + quads] = block.rows.jacobian
        for k, mark in enumerate(np.repeat(block.rows.marks, 2)):
            wide[k, frames * size + 3 * mark : frames * size + 3 * mark + 3] = block.rows.spots[k]
        hessian += wide.T @ wide
        gradient += wide.T @ block.rows.residuals
        if block.bend is not None:
            pull = np.zeros((quads, total))
            for shift, share in ((-1, -0.5), (0, 1.0), (1, -0.5)):
                at = (frame + shift) * size
                pull[:, at : at + quads] = share * np.eye(quads)
            hessian += 2.0 * pull.T @ pull
            gradient += 2.0 * pull.T @ block.bend
    least = -np.linalg.solve(hessian, gradient)[: frames * size].reshape(frames, size)
    np.testing.assert_allclose(found, least, atol=1e-4)  # single-precision rows


def test_a_camera_without_images_has_no_marks_and_takes_up_again() -> None:
    images, masks = painted(rolled(0.0), contrast=60.0)
    follower = FeatureFollower()
    first, _ = follower(images[0], masks[0])
    assert len(first) > 10
    assert len(follower(None, masks[0])[0]) == 0
    again, pixels = follower(images[0], masks[0])
    assert len(again) > 10 and again.min() > first.max()
    assert masks[0][tuple(np.rint(pixels[:, ::-1]).astype(int).T)].all()
    assert len(follower(images[0], np.zeros_like(masks[0]))[0]) == 0


def test_marks_of_large_images_are_told_in_their_own_pixels() -> None:
    images, masks = painted(rolled(0.0), contrast=60.0)
    large = cv2.resize(images[0], None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    wide = cv2.resize(masks[0].astype(np.uint8), None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST).astype(bool)
    settings = FollowSettings(extent=float(np.sqrt(masks[0].sum())) + 1.0)
    _, small = FeatureFollower(settings)(images[0], masks[0])
    _, big = FeatureFollower(settings)(large, wide)
    # A pixel of the small image is four of the large one; their middle lies between them.
    np.testing.assert_allclose(big, 2 * small + 0.5)


def test_marks_that_jump_to_another_place_are_not_bound() -> None:
    cage_rig, template = limb()
    rig = cameras()
    surface = cage_rig.deform(template.binding, rolled(0.0))
    frames = np.arange(8)
    pixels = np.tile([[160.0, 170.0]], (8, 1))
    pixels[4:] += [0.0, 90.0]  # half of them elsewhere: which is right cannot be told
    none = np.zeros(8, np.int64)
    centres = np.array([c.centre for c in rig.cameras])
    marks = bind_tracks(
        FeatureTracks(frames, none, none, pixels), template, lambda _: surface, rig.packed(), centres, gate=10.0
    )
    assert len(marks) == 0
    assert isinstance(marks.at(3), FrameMarks) and len(marks.at(3).views) == 0


def test_following_is_deterministic() -> None:
    again = follow(painted(pose, contrast=60.0) for pose in poses()[:4])
    known = filmed(60.0)
    np.testing.assert_array_equal(again.pixels, known.pixels[known.frames < 4])


def test_what_stands_out_from_the_local_mean_is_that_of_pixels_within() -> None:
    """Against sums written out, for a window of five pixels."""
    grey = np.random.default_rng(4).integers(0, 256, (24, 30), dtype=np.uint8)
    inside = np.zeros(grey.shape, np.uint8)
    inside[5:20, 6:25] = 1
    flat = _flattened(grey, inside, 5)
    within = np.zeros(grey.shape, bool)
    within[6:19, 7:24] = True
    assert (flat[~within] == 128).all()
    for row, column in np.argwhere(within):
        around = (slice(row - 2, row + 3), slice(column - 2, column + 3))
        mean = grey[around][within[around]].mean()
        assert abs(int(flat[row, column]) - np.clip(128 + 4.0 * (grey[row, column] - mean), 0, 255)) <= 1
