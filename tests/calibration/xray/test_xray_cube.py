"""Cube: identification from nothing, bundle adjustment with honest errors, bad input said."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.xray.bundle import CubeObservations, _Problem, adjust_bundle
from calibration.xray.cube import (
    BeadCube,
    CubeImage,
    calibrate_with_cube,
    load_cube,
    save_cube,
)
from calibration.xray.identification import identify_cube, rotations_everywhere
from calibration.xray.undistortion import MARGIN_PX, DistortionMap, net_shape

SIZE = 640


def make_cube(count=32, seed=5):
    rng = np.random.default_rng(seed)
    return np.round(rng.uniform(0, 54, (count, 3)), 1)


CUBE = make_cube()


def camera(eye, name, focal=2300.0):
    """An X-ray source at ``eye`` that looks at the middle of the cube."""
    eye = np.asarray(eye, dtype=float)
    z = CUBE.mean(0) - eye
    z /= np.linalg.norm(z)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    rotation = np.stack([x, np.cross(z, x), z])
    k = np.array([[focal, 0, SIZE / 2 - 4], [0, focal, SIZE / 2 + 6], [0, 0, 1.0]])
    return LensCamera(name, PinholeLens((SIZE, SIZE), k), RigidTransform(rotation, -rotation @ eye), "xray")


CAMERAS = (camera([820, 330, 290], "left"), camera([300, -800, 330], "right"))


def turned(vector, shift):
    rotation = rotation_from_vector(np.array(vector))
    middle = CUBE.mean(0)
    return RigidTransform(rotation, middle - rotation @ middle + np.array(shift))


POSES = (RigidTransform.identity(), turned([0.3, -0.5, 0.2], [4.0, 3.0, -5.0]))


def swirl():
    """A small smooth distortion as a map, both ways."""
    shape = net_shape((SIZE, SIZE), 8.0)
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]] * 8.0 - MARGIN_PX
    forward = np.stack([3.0 * np.sin(x / 150) * np.cos(y / 170), 2.5 * np.cos(x / 160) * np.sin(y / 140)], axis=-1)
    backward = np.zeros_like(forward)
    nodes = np.stack([x, y], axis=-1)
    one = DistortionMap((SIZE, SIZE), 8.0, backward, forward, np.ones(shape, dtype=bool))
    inverse = np.zeros_like(forward)
    for _ in range(30):
        inverse = nodes - one.distort(nodes + inverse) + inverse
    return DistortionMap((SIZE, SIZE), 8.0, inverse, forward, np.ones(shape, dtype=bool))


def observations(rng, noise, maps=None, poses=POSES):
    rows, pixels = [], []
    for c, view in enumerate(CAMERAS):
        for k, pose in enumerate(poses):
            at = view.project(pose.apply(CUBE))
            if maps:
                at = maps[view.name].distort(at)
            seen = np.flatnonzero(rng.random(len(CUBE)) > 0.1)
            rows += [(c, k, b) for b in seen]
            pixels.append(at[seen] + rng.normal(size=(len(seen), 2)) * noise)
    index = np.array(rows)
    return CubeObservations(index[:, 0], index[:, 1], index[:, 2], np.concatenate(pixels), np.ones(len(index)))


def rough(rng):
    cameras = []
    for view in CAMERAS:
        pose = view.camera_from_world
        k = view.lens.intrinsics * np.array([[1.04, 1, 1], [1, 1.04, 1], [1, 1, 1]])
        moved = RigidTransform(
            rotation_from_vector(rng.normal(size=3) * 0.02) @ pose.rotation, pose.translation + rng.normal(size=3) * 5
        )
        cameras.append(LensCamera(view.name, PinholeLens(view.size, k), moved, "xray"))
    poses = [POSES[0]]
    for pose in POSES[1:]:
        poses.append(RigidTransform(rotation_from_vector(rng.normal(size=3) * 0.02) @ pose.rotation, pose.translation))
    return cameras, poses


def test_bundle_covers_the_truth_and_fits_to_the_noise():
    """50 seeds, 6 coordinates each: the 95 % intervals cover 90 to 99 %; RMS stays within 1.1 times the noise."""
    maps = {view.name: swirl() for view in CAMERAS}
    hits, rms = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        seen = observations(rng, 0.2, maps)
        result = adjust_bundle(*rough(rng), CUBE, seen, maps=maps)
        error = np.array([a.centre - b.centre for a, b in zip(result.cameras, CAMERAS, strict=True)])
        spread = np.sqrt(np.diagonal(result.centre_covariance, axis1=1, axis2=2))
        hits.append(np.abs(error) < 1.96 * spread)
        rms.append(result.rms_px)
    assert 0.90 <= np.mean(hits) <= 0.99
    assert np.max(rms) < 1.1 * 0.2


def test_bundle_jacobian_matches_finite_differences():
    rng = np.random.default_rng(0)
    maps = {view.name: swirl() for view in CAMERAS}
    problem = _Problem(list(CAMERAS), list(POSES), CUBE, observations(rng, 0.2, maps), maps, False)
    _, derivative = problem._linearise()
    kept = (list(problem.cameras), list(problem.poses))
    for column in range(problem.columns):
        step = np.zeros(problem.columns)
        step[column] = 1e-5
        sides = []
        for sign in (1, -1):
            problem.cameras, problem.poses = list(kept[0]), list(kept[1])
            problem._move(sign * step)
            sides.append(problem.residual())
        slope = -(sides[0] - sides[1]) / 2e-5
        scale = 1.0 + np.abs(derivative[..., column]).max()
        assert np.abs(slope - derivative[..., column]).max() < 1e-4 * scale


def test_a_wrong_bead_is_left_out():
    rng = np.random.default_rng(1)
    seen = observations(rng, 0.1)
    seen.pixels[7] += 6.0
    result = adjust_bundle(*rough(rng), CUBE, seen)
    assert not result.used[7] and result.used.sum() >= len(result.used) - 2


def test_identification_from_nothing_names_every_bead():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        turn = rotations_everywhere(50)[int(rng.integers(50))]
        pose = RigidTransform(turn, np.array([5.0, -8.0, 900.0]) - turn @ CUBE.mean(0))
        view = LensCamera("x", CAMERAS[0].lens, pose, "xray")
        kept = np.flatnonzero(rng.random(len(CUBE)) > 0.1)
        false = rng.uniform(150, 500, (2, 2))
        spots = np.concatenate([view.project(CUBE[kept]) + rng.normal(size=(len(kept), 2)) * 0.1, false])
        match = identify_cube(spots, CUBE, (SIZE, SIZE))
        label = np.append(kept, [-1, -1])
        assert len(match) >= len(kept) - 1
        assert (label[match.spots] == match.beads).all()


def test_mirrored_image_wrong_cube_and_too_few_beads_are_said():
    spots = CAMERAS[0].project(CUBE)
    mirrored = np.stack([SIZE - 1 - spots[:, 0], spots[:, 1]], axis=1)
    with pytest.raises(SolveError, match="mirrored"):
        identify_cube(mirrored, CUBE, (SIZE, SIZE), who="camera 'left'")
    with pytest.raises(SolveError, match="wrong cube file"):
        identify_cube(spots, make_cube(seed=77), (SIZE, SIZE))
    with pytest.raises(SolveError, match="5 cube beads visible, wanted at least 6"):
        identify_cube(spots[:5], CUBE, (SIZE, SIZE))


def test_cube_images_calibrate_both_views():
    """From pictures: beads drawn, found, identified, adjusted; centres within four of their own sigmas."""
    images = []
    for view in CAMERAS:
        for k, pose in enumerate(POSES):
            y, x = np.mgrid[0:SIZE, 0:SIZE].astype(float)
            depth = np.zeros((SIZE, SIZE))
            for px, py in view.project(pose.apply(CUBE)):
                s = np.s_[int(py) - 9 : int(py) + 11, int(px) - 9 : int(px) + 11]
                depth[s] += 0.7 * np.exp(-0.5 * ((x[s] - px) ** 2 + (y[s] - py) ** 2) / 1.6**2)
            light = np.random.default_rng(k).poisson(180 * np.exp(-depth) * 30) / 30
            images.append(CubeImage(view.name, k, np.clip(np.rint(light), 0, 255).astype(np.uint8)))
    result = calibrate_with_cube(images, BeadCube(tuple(map(str, range(len(CUBE)))), CUBE))
    assert result.bundle.rms_px < 0.06
    for c, view in enumerate(CAMERAS):
        spread = np.sqrt(np.diagonal(result.bundle.centre_covariance[c]))
        assert (np.abs(result.cameras[c].centre - view.centre) < 4 * spread + 0.05).all()


def test_cube_files(tmp_path):
    cube = BeadCube(tuple(f"b{k}" for k in range(len(CUBE))), CUBE)
    save_cube(cube, tmp_path / "cube.csv")
    again = load_cube(tmp_path / "cube.csv")
    assert again.names == cube.names and np.allclose(again.points, cube.points)
    (tmp_path / "xma.csv").write_text("white\n1,2,3\n4,5,6\n7,8,1\n2,9,4\n5,1,7\n3,3,9\n")
    assert np.allclose(load_cube(tmp_path / "xma.csv", unit="cm").points[0], [10, 20, 30])
    (tmp_path / "flat.csv").write_text("x y z\n" + "\n".join(f"{k},{k * k % 7},0" for k in range(8)))
    with pytest.raises(InputError, match="plane"):
        load_cube(tmp_path / "flat.csv")
    (tmp_path / "bad.csv").write_text("x y z\n1,2,3\n1,two,3\n")
    with pytest.raises(InputError, match="line 3"):
        load_cube(tmp_path / "bad.csv")
