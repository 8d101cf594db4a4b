"""Camera models against OpenCV, finite differences, their own inverse, and real rigs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import scipy.io
from example_rigs import one_of_each

from calibration.cameras.camera import Camera, LensCamera, MatrixCamera
from calibration.cameras.camera_row import (
    CENTRE,
    CENTRE_Z,
    DISTORTION,
    FOCAL,
    LENS,
    LENS_PARAMETERS,
    MATRIX_ENTRIES,
    PRINCIPAL_POINT,
    ROTATION,
    ROW,
    SKEW,
    TRANSLATION,
)
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.projection import project_into, project_point, project_point_with_jacobian
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import triangulate
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector, vector_from_rotation
from calibration.rig_formats import ReadOptions, read_rig

CAMERAS: dict[str, Camera] = one_of_each()
LENSES = {name: camera for name, camera in CAMERAS.items() if isinstance(camera, LensCamera)}


def points(rng: np.random.Generator, n: int = 300) -> np.ndarray:
    return rng.uniform(-80, 80, (n, 3))


@pytest.mark.parametrize("name", [name for name in LENSES if name != "fisheye"])
def test_pinhole_agrees_with_opencv(name: str, rng: np.random.Generator) -> None:
    camera = LENSES[name]
    k = camera.lens.intrinsics.copy()
    k[0, 1] = 0  # OpenCV ignores the skew
    camera = replace(camera, lens=PinholeLens(camera.size, k, camera.lens.distortion))
    x, pose = points(rng), camera.camera_from_world
    expected = cv2.projectPoints(
        x,
        vector_from_rotation(pose.rotation),
        pose.translation,
        k,
        np.append(camera.lens.distortion, np.zeros(4))[: max(4, len(camera.lens.distortion))],
    )[0]
    assert np.abs(camera.project(x) - expected.reshape(-1, 2)).max() < 1e-9


def test_fisheye_agrees_with_opencv(rng: np.random.Generator) -> None:
    camera = LENSES["fisheye"]
    k, pose, x = camera.lens.intrinsics, camera.camera_from_world, points(rng)
    alpha = k[0, 1] / k[0, 0]
    expected = cv2.fisheye.projectPoints(
        x[:, None], vector_from_rotation(pose.rotation), pose.translation, k, camera.lens.distortion, alpha=alpha
    )[0]
    assert np.abs(camera.project(x) - expected.reshape(-1, 2)).max() < 1e-9


@pytest.mark.parametrize("name", LENSES)
def test_numbers_of_a_row_stand_under_their_names(name: str) -> None:
    camera = LENSES[name]
    row, k, pose = camera.packed(), camera.lens.intrinsics, camera.camera_from_world
    assert len(row) == ROW == CENTRE_Z + 1 and len(row[LENS]) == LENS_PARAMETERS
    assert [*row[FOCAL], *row[PRINCIPAL_POINT], row[SKEW]] == [k[0, 0], k[1, 1], k[0, 2], k[1, 2], k[0, 1]]
    given = camera.lens.distortion
    assert np.array_equal(row[DISTORTION], np.pad(given, (0, 14 - len(given))))
    assert np.array_equal(row[ROTATION].reshape(3, 3), pose.rotation)
    assert np.array_equal(row[TRANSLATION], pose.translation)
    assert np.array_equal(row[CENTRE], camera.centre)


def test_a_matrix_stands_where_a_lens_has_its_pose() -> None:
    camera = next(camera for camera in CAMERAS.values() if isinstance(camera, MatrixCamera))
    assert np.array_equal(camera.packed()[MATRIX_ENTRIES].reshape(3, 4), camera.facing)


@pytest.mark.parametrize("name", CAMERAS)
def test_rays_invert_projection(name: str) -> None:
    camera = CAMERAS[name]
    grid = np.stack(np.meshgrid(np.linspace(0, 639, 41), np.linspace(0, 479, 31)), axis=-1)
    origins, directions = camera.rays(grid)
    back = camera.project(origins + 300 * directions)
    assert np.isfinite(directions).all()
    assert np.abs(back - grid).max() < 1e-10
    assert np.allclose(origins, camera.centre)


@pytest.mark.parametrize("name", CAMERAS)
def test_jacobians_against_finite_differences(name: str, rng: np.random.Generator) -> None:
    camera, x = CAMERAS[name], points(rng, 40)
    found = camera.project_with_jacobians(x)
    assert np.abs(found.pixels - camera.project(x)).max() < 1e-10
    by_point = _numeric(lambda s: camera.project(x + s), 3, 1e-4)
    assert _relative(found.by_point, by_point) < 1e-6
    if isinstance(camera, LensCamera):
        assert _relative(found.by_pose, _numeric(lambda s: _posed(camera, s).project(x), 6, 1e-5)) < 1e-6
        count = 5 + len(camera.lens.distortion)
        assert _relative(found.by_lens, _numeric(lambda s: _lensed(camera, s).project(x), count, 1e-5)) < 1e-6
    else:
        assert isinstance(camera, MatrixCamera)
        by_matrix = _numeric(lambda s: _rematrixed(camera, s).project(x), 12, 1e-5)
        assert _relative(found.by_lens, by_matrix) < 1e-6


@pytest.mark.parametrize("name", CAMERAS)
def test_one_point_by_itself_has_the_same_jacobian(name: str, rng: np.random.Generator) -> None:
    camera, x = CAMERAS[name], points(rng, 5)
    found = camera.project_with_jacobians(x)
    by_point, scratch = np.empty((2, 3)), np.empty((2, 16))
    for n in range(len(x)):
        pixel = project_point_with_jacobian(camera.packed(), *x[n], by_point, scratch)
        assert np.abs(pixel - found.pixels[n]).max() < 1e-10
        assert _relative(by_point, found.by_point[n]) < 1e-12


def _numeric(function, count: int, step: float) -> np.ndarray:
    steps = step * np.eye(count)
    return np.stack([(function(s) - function(-s)) / (2 * step) for s in steps], axis=-1)


def _relative(analytic: np.ndarray, numeric: np.ndarray) -> float:
    return float(np.abs(analytic - numeric).max() / np.abs(numeric).max())


def _posed(camera: LensCamera, s: np.ndarray) -> LensCamera:
    pose = camera.camera_from_world
    moved = RigidTransform(rotation_from_vector(s[:3]) @ pose.rotation, pose.translation + s[3:])
    return replace(camera, camera_from_world=moved)


def _lensed(camera: LensCamera, s: np.ndarray) -> LensCamera:
    k = camera.lens.intrinsics + np.array([[s[0], s[4], s[2]], [0, s[1], s[3]], [0, 0, 0]])
    return replace(camera, lens=type(camera.lens)(camera.size, k, camera.lens.distortion + s[5:]))


def _rematrixed(camera: MatrixCamera, s: np.ndarray) -> MatrixCamera:
    return replace(camera, matrix=camera.facing + s.reshape(3, 4))


@pytest.mark.parametrize("name", CAMERAS)
def test_many_points_are_projected_to_the_bit_as_one(name: str, rng: np.random.Generator) -> None:
    row = CAMERAS[name].packed()
    some = np.concatenate([points(rng, 700), 1e4 * rng.normal(size=(400, 3)), CAMERAS[name].centre[None]])
    found = np.empty((len(some), 2))
    project_into(row, some, found)
    single = np.array([project_point(row, *one) for one in some])
    assert np.isnan(single).any() and np.isfinite(single).any()
    np.testing.assert_array_equal(found, single)


@pytest.mark.parametrize("name", CAMERAS)
def test_points_behind_are_nan(name: str) -> None:
    camera = CAMERAS[name]
    behind = camera.centre + (camera.centre - np.zeros(3))
    assert np.isnan(camera.project(behind)).all()
    assert np.isnan(camera.project_with_jacobians(behind).pixels).all()


def test_beyond_the_invertible_radius_nothing_is_returned() -> None:
    # k1 alone: r (1 - 0.5 r^2) rises to r = sqrt(2/3), where it is 0.5443; nothing projects further out than that
    k = np.array([[100.0, 0, 0], [0, 100, 0], [0, 0, 1]])
    camera = LensCamera("c", PinholeLens((640, 480), k, np.array([-0.5, 0, 0, 0])), RigidTransform.identity())
    assert np.isclose(camera.lens.invertible_limit, 2 / 3)
    assert np.isnan(camera.rays([[54.5, 0.0]])[1]).all()
    assert np.isfinite(camera.rays([[54.4, 0.0]])[1]).all()
    assert np.isnan(camera.project([[0.9, 0, 1.0]])).all(), "this point would fold back into the image"


def test_undistortion(rng: np.random.Generator) -> None:
    camera = LENSES["pinhole14"]
    x = points(rng)
    ideal = replace(camera, lens=PinholeLens(camera.size, camera.lens.intrinsics, np.zeros(0)))
    assert np.abs(camera.undistort_points(camera.project(x)) - ideal.project(x)).max() < 1e-9
    mx, my = camera.undistortion_maps()
    assert np.abs(camera.undistort_points([mx[100, 200], my[100, 200]]) - [200, 100]).max() < 1e-9


def test_leading_axes_broadcast(rig: Rig, rng: np.random.Generator) -> None:
    x = points(rng, 12).reshape(3, 4, 3)
    all_views = rig.project(x)
    assert all_views.shape == (8, 3, 4, 2)
    for camera, view in zip(rig, all_views, strict=True):
        assert np.array_equal(camera.project(x), view)
        assert camera.rays(view)[1].shape == (3, 4, 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: PinholeLens((640, 480), np.eye(2)), r"intrinsics must be \(3, 3\), got \(2, 2\)"),
        (lambda: PinholeLens((640, 480), np.diag([-1.0, 1, 1])), "focal lengths must be positive"),
        (lambda: PinholeLens((640, 480), np.eye(3), np.zeros(6)), "got 6"),
        (lambda: PinholeLens((640, 0), np.eye(3)), "two positive whole numbers"),
        (lambda: FisheyeLens((640, 480), np.eye(3), np.zeros(5)), r"must be \(4,\), got \(5,\)"),
        (lambda: LensCamera("left", PinholeLens((9, 9), np.eye(3)), RigidTransform(-np.eye(3), np.zeros(3))), "'left'"),
        (lambda: MatrixCamera("p", (9, 9), np.zeros((3, 4))), "singular"),
        (lambda: PinholeLens((640, 480), np.full((3, 3), np.nan)), "finite"),
    ],
)
def test_bad_cameras(build, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


@pytest.mark.realdata
@pytest.mark.parametrize("session", ["markerless_mouse_1", "markerless_mouse_2"])
def test_dannce_labels_are_reproduced(session: str, shared_data: Path) -> None:
    """The stored 2D labels are projections of the stored 3D: an exact test of skew and row-vector matrices."""
    file = shared_data / "dannce_mouse" / session / "label3d_dannce.mat"
    rig = read_rig(file, options=ReadOptions(size=(1152, 1024)))
    labels = scipy.io.loadmat(file)["labelData"].ravel()
    world = np.concatenate([labels[0]["data_3d"][0, 0].reshape(-1, 3)])
    pixels = np.stack([label["data_2d"][0, 0].reshape(-1, 2) for label in labels])
    seen = np.isfinite(world).all(1) & np.isfinite(pixels).all((0, 2))
    assert seen.sum() > 1500
    world, pixels = world[seen], pixels[:, seen]
    assert np.abs(rig.project(world) - pixels).max() < 1e-9
    result = triangulate(rig, pixels)
    assert np.abs(result.points - world).max() < 1e-6
    assert not result.reason.any()


def real_rigs(folder: Path) -> dict[str, Rig]:
    """Return the calibrations of every real rig."""
    found = {
        "dannce": read_rig(
            folder / "dannce_mouse/markerless_mouse_1/label3d_dannce.mat", options=ReadOptions((1152, 1024))
        ),
        "caliscope": read_rig(folder / "caliscope/charuco_calibration/camera_array.toml"),
        "jaw_xray": read_rig(folder / "jaw_xray", options=ReadOptions(unit_mm=10)),
        "mouse_cage_published": read_rig(folder / "mouse_cage/calibration.toml"),
        "utrecht_published": read_rig_folder(folder / "utrecht_room"),
    }
    for name in ("mouse_cage", "utrecht_room"):
        derived = json.loads((folder / name / "calib_derived.json").read_text())
        cameras = []
        for key, value in derived.items():
            if key != "note":
                lens = PinholeLens(tuple(value.get("size", (644, 486))), value["K"], value["dist"])
                cameras.append(LensCamera(key, lens, RigidTransform.from_vectors(value["rvec"], value["tvec"])))
        found[name] = Rig(tuple(cameras))
    return found


def read_rig_folder(folder: Path) -> Rig:
    options = ReadOptions(size=(644, 486))
    cameras = [read_rig(folder / f"cam{n}" / "config.xml", options=options)[0] for n in (1, 2, 3, 4)]
    return Rig(tuple(replace(camera, name=f"cam{n + 1}") for n, camera in enumerate(cameras)))


@pytest.mark.realdata
def test_real_lenses_invert(shared_data: Path) -> None:
    for name, rig in real_rigs(shared_data).items():
        for camera in rig:
            w, h = camera.size
            grid = np.stack(np.meshgrid(np.arange(0.0, w, 8), np.arange(0.0, h, 8)), axis=-1)
            origins, directions = camera.rays(grid)
            depth = 500.0
            back = camera.project(origins + depth * directions)
            known = np.isfinite(directions[..., 0])
            print(f"{name} {camera.name}: {100 * (1 - known.mean()):.2f} % of the image has no inverse")
            assert np.abs(back[known] - grid[known]).max() < 1e-10
            # a published one-term lens (k1 = -0.3 alone) folds over before the corners: so says the file
            assert known.mean() > 0.6
