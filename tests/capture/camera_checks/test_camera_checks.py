"""Which camera is wrong: a known fault is named with its amount; sound cameras and wrong silhouettes are not."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from example_rigs import ring
from walking_body import FRAMES, body, seen

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from capture.camera_checks.changes import lag_of_changes
from capture.camera_checks.faults import _named, _Trial, check_cameras
from capture.camera_checks.fits import Placed, fit_pose, residuals
from capture.camera_checks.focus import edge_blur, out_of_focus
from capture.camera_checks.lags import find_lags
from capture.camera_checks.outlines import Outlines, join_outlines, outline
from capture.camera_checks.sentences import sentence
from capture.camera_checks.tangency import moved, tangents, view_of


def turned(rig: Rig, index: int, degrees: list[float]) -> Rig:
    """Return a rig whose file has one camera turned the other way, so that the camera looks turned by ``degrees``."""
    cameras = list(rig)
    camera = cameras[index]
    assert isinstance(camera, LensCamera)
    rotation = rotation_from_vector(np.radians(degrees)) @ camera.camera_from_world.rotation
    cameras[index] = replace(camera, camera_from_world=RigidTransform(rotation, -rotation @ camera.centre))
    return Rig(tuple(cameras))


def test_two_views_of_a_body_share_their_outermost_planes() -> None:
    rig = ring(4)
    nothing = np.zeros(3)
    cameras = [Placed(view_of(c, o), 0.0, nothing, nothing) for c, o in zip(rig, seen(rig), strict=True)]
    found = residuals(0, cameras[0], cameras, np.arange(FRAMES))
    assert found.shape == (3, FRAMES, 2)
    # rounding to pixels alone: 0.29 px in each of two views, weighed by where they look
    assert np.nanmax(np.abs(found)) < 1.5
    assert np.nanmedian(np.abs(found)) < 0.3


def test_the_planes_of_a_view_are_found_once_and_those_of_a_turned_one_anew() -> None:
    rig = ring(2)
    view = view_of(rig[0], seen(rig)[0])
    axis = rig[1].centre - rig[0].centre
    axis /= np.linalg.norm(axis)
    known = tangents(view, axis)
    assert tangents(view, axis.copy()) is known
    turned_view = moved(view, 0.01 * axis, np.zeros(3))
    shift = tangents(turned_view, axis).angle - known.angle
    # about the axis itself all planes turn with the camera
    assert np.nanmax(np.abs(shift - 0.01)) < 1e-9
    assert known.by_turn @ axis == pytest.approx(np.where(np.isfinite(known.angle), 1.0, 0.0))


def test_outline_is_that_of_the_mask() -> None:
    camera = ring(1, distortion=0)[0]
    mask = np.zeros((480, 640), dtype=bool)
    mask[100:140, 200:300] = True
    mask[120:130, 300:310] = True
    corners = outline(mask, camera)
    assert {(200, 100), (200, 139), (299, 100), (309, 120), (309, 129), (299, 139)} == {
        (int(x), int(y)) for x, y in corners
    }
    assert outline(np.zeros((480, 640), dtype=bool), camera).shape == (0, 2)


@pytest.mark.parametrize("cut", [False, True])
def test_outline_is_the_hull_of_all_pixels_as_without_distortion(cut: bool, rng: np.random.Generator) -> None:
    camera = ring(1)[0]
    for _ in range(10):
        mask = np.zeros((480, 640), np.uint8)
        for x, y in rng.integers((60, 60), (580, 420), (5, 2)):
            size = (int(rng.integers(2, 90)), int(rng.integers(1, 40)))
            cv2.ellipse(mask, (int(x), int(y)), size, float(rng.uniform(0, 180)), 0, 360, 1, -1)
        mask[:, : 200 if cut else 0] = 0
        rows, columns = np.nonzero(mask)
        true = camera.undistort_points(np.stack([columns, rows], axis=1)).astype(np.float32)
        found = outline(mask.view(np.bool_), camera, (slice(rows.min(), rows.max() + 1), slice(0, 640)))
        hull, corners = cv2.convexHull(true), camera.undistort_points(found).astype(np.float32)[:, None]
        assert mask[found[:, 1].astype(int), found[:, 0].astype(int)].all()
        for some, other in ((hull, corners), (corners, hull)):
            away = [cv2.pointPolygonTest(other, tuple(map(float, point[0])), True) for point in some]
            assert np.abs(away).max() < 0.1  # what a lens bends along a row of pixels


def test_sound_cameras_are_not_accused() -> None:
    rig = ring(4)
    check = check_cameras(rig, seen(rig), np.arange(FRAMES), most_lag=12)
    assert check.faults == ()
    assert check.disagreement_px.max() < 0.3


@pytest.mark.parametrize("late", [-4.0, 2.0, 9.0])
def test_late_camera_is_named_with_its_lag(late: float) -> None:
    rig = ring(4)
    (fault,) = check_cameras(rig, seen(rig, {2: late}), np.arange(FRAMES), most_lag=12).faults
    assert (fault.camera, fault.kind) == ("cam3", "late")
    assert fault.frames == pytest.approx(late, abs=0.15)
    assert f"write offset = {round(late) + 3} under [cameras.cam3]" in sentence(fault, 3.0)


def test_turned_camera_is_named_with_its_turn() -> None:
    rig = ring(4)
    outlines = seen(rig)
    check = check_cameras(turned(rig, 1, [1.0, -2.0, 0.5]), outlines, np.arange(FRAMES), most_lag=12)
    (fault,) = check.faults
    # the mended rig sees points where the true one does
    assert check.mended is not None
    apart = check.mended.project(body(10.0)) - rig.project(body(10.0))
    assert np.abs(apart[[0, 2, 3]]).max() == 0.0 and np.abs(apart[1]).max() < 2.0
    assert check_cameras(check.mended, outlines, np.arange(FRAMES), most_lag=12).faults == ()
    assert (fault.camera, fault.kind) == ("cam2", "turned")
    # positive: the real camera looks farther up, to the right, clockwise than its file says
    assert fault.degrees == pytest.approx([1.0, -2.0, 0.5], abs=0.2)
    assert "turned by 2.3 degrees" in sentence(fault) and "to the left" in sentence(fault)


def test_turn_means_what_the_sentence_says() -> None:
    camera = ring(1, distortion=0)[0]
    straight_on = camera.rays(camera.lens.intrinsics[:2, 2])[1] * 500 + camera.centre  # type: ignore[attr-defined]
    right = turned(Rig((camera,)), 0, [0.0, 2.0, 0.0])[0].project(straight_on)
    up = turned(Rig((camera,)), 0, [2.0, 0.0, 0.0])[0].project(straight_on)
    # the file's camera, turned back, sees to its right what the real one has in the middle
    assert right[0] > camera.project(straight_on)[0] + 10
    assert up[1] < camera.project(straight_on)[1] - 10


def test_mirrored_and_exchanged_cameras_are_named() -> None:
    rig = ring(4, distortion=0)
    outlines = seen(rig)
    over = Outlines(np.array([639.0, 0.0]) + outlines[3].pixels * np.array([-1.0, 1.0]), outlines[3].starts)
    (fault,) = check_cameras(rig, [*outlines[:3], over], np.arange(FRAMES), most_lag=12).faults
    assert (fault.camera, fault.kind) == ("cam4", "mirrored")
    swapped = [outlines[1], outlines[0], *outlines[2:]]
    (fault,) = check_cameras(rig, swapped, np.arange(FRAMES), most_lag=12).faults
    assert {fault.camera, fault.other} == {"cam1", "cam2"} and fault.kind == "exchanged"


def test_wrong_silhouettes_are_not_taken_for_a_wrong_camera() -> None:
    rig = ring(4)
    outlines = seen(rig)
    ghost = np.array([[250.0, 200.0], [260.0, 280.0]])  # a stain that stays while the body walks
    spoilt = join_outlines([np.concatenate([c, ghost]) for c in np.split(outlines[0].pixels, outlines[0].starts[1:-1])])
    assert check_cameras(rig, [spoilt, *outlines[1:]], np.arange(FRAMES), most_lag=12).faults == ()


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_turn_that_leaves_most_unexplained_is_not_named(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among silhouettes that are all poor a turn that mends little passes for as good as the others."""
    monkeypatch.setattr("capture.camera_checks.faults.cost_without", lambda *_: 1.0)
    monkeypatch.setattr("capture.camera_checks.faults._travels", lambda _: False)  # no shift is tried
    true, frames, nothing = ring(4), np.arange(FRAMES), np.zeros(3)
    outlines, rig = seen(true), turned(true, 1, [3.0, 0.0, 0.0])
    cameras = [Placed(view_of(c, o), 0.0, nothing, nothing) for c, o in zip(rig, outlines, strict=True)]
    mended = fit_pose(1, cameras, frames, 1.0, shift=False)
    trial = [*cameras]
    trial[1] = replace(cameras[1], turn=share * mended.turn)
    fault = _named(_Trial(1, "turned", trial, 0.2), rig, cameras, frames, 4.0)
    assert (fault is not None) == (share == 1.0)


def test_lags_of_all_cameras_are_found_together() -> None:
    rig = ring(4)
    late = {0: 0.0, 1: 5.0, 2: -3.0, 3: 2.5}
    found = find_lags(rig, seen(rig, late), np.arange(FRAMES), most=12)
    assert [lag.doubt for lag in found] == [""] * 4
    assert [lag.frames for lag in found] == pytest.approx(list(late.values()), abs=0.15)


def test_a_body_at_rest_tells_no_lag() -> None:
    rig = ring(3)
    still = [join_outlines([np.split(one.pixels, one.starts[1:-1])[0]] * FRAMES) for one in seen(rig)]
    assert all(lag.doubt for lag in find_lags(rig, still, np.arange(FRAMES), most=10))


def test_turned_camera_gets_no_lag() -> None:
    rig = ring(4)
    found = find_lags(turned(rig, 2, [1.0, 2.0, 0.0]), seen(rig), np.arange(FRAMES), most=12)
    assert "turned" in found[2].doubt and not any(found[index].doubt for index in (0, 1, 3))


def test_changes_of_pictures_tell_a_lag_only_where_something_happens_once(rng: np.random.Generator) -> None:
    time = np.arange(400.0)
    rhythm = 3 * np.sin(0.4 * time) + 0.01 * time
    noise = rng.normal(0, 0.1, (2, 400))
    alone = lag_of_changes(rhythm[:-7] + noise[0, :-7], rhythm[7:] + noise[1, :-7], most=40)
    assert alone.doubt
    events = np.convolve(rng.random(400) < 0.05, [1.0, 0.6, 0.3], "same") * 3
    signal = rhythm + events
    told = lag_of_changes(signal[7:] + noise[0, 7:], signal[:-7] + noise[1, :-7], most=40)
    assert told.doubt == "" and told.frames == pytest.approx(7.0, abs=0.5)


@pytest.mark.parametrize("sigma", [0.8, 2.0, 4.0])
def test_blur_of_an_edge_is_measured_whatever_its_contrast(sigma: float, rng: np.random.Generator) -> None:
    rows, columns = np.mgrid[:200, :200]
    mask = (rows - 100) ** 2 + (columns - 95) ** 2 < 60**2
    for contrast in (90.0, 180.0):
        image = cv2.GaussianBlur(np.where(mask, 40.0 + contrast, 40.0), (0, 0), sigma) + rng.normal(0, 0.7, mask.shape)
        # slopes are taken over three pixels, which adds to a sharp edge; noise makes a wide one look sharper
        assert edge_blur(np.rint(image).astype(np.uint8), mask) == pytest.approx(sigma, rel=0.12, abs=0.25)


def test_only_a_camera_much_blurrier_than_the_others_is_out_of_focus() -> None:
    assert out_of_focus([0.8, 0.9, 3.5, np.nan]) == [2]
    assert out_of_focus([1.5, 1.9, 1.4]) == [] and out_of_focus([3.0, 3.5, 3.2]) == [] and out_of_focus([4.0]) == []


def test_a_subject_that_stays_tells_no_shift_of_a_camera() -> None:
    """Two cameras whose silhouettes are too small: a shift of many degrees around the subject would mend one."""
    rig = ring(4)
    shrunk = []
    for index, camera in enumerate(rig):
        corners = []
        for frame in range(FRAMES):
            pixels = camera.project(body(10.0 + 0.1 * frame))
            hull = cv2.convexHull(camera.undistort_points(pixels).astype(np.float32), returnPoints=False)
            pixels = pixels[hull.ravel()]
            middle = pixels.mean(axis=0)
            if index == 0:
                pixels = middle + 0.9 * (pixels - middle)
            if index == 1:
                pixels = np.where(pixels > middle, middle + [0.9, 0.73] * (pixels - middle), pixels)
            corners.append(np.round(pixels))
        shrunk.append(join_outlines(corners))
    assert all(fault.kind != "moved" for fault in check_cameras(rig, shrunk, np.arange(FRAMES), most_lag=12).faults)


def test_a_camera_that_no_fault_explains_is_unclear() -> None:
    rig = ring(4)
    outlines = seen(rig)
    clean = check_cameras(rig, outlines, np.arange(FRAMES), most_lag=12)
    halves = []
    for corners in np.split(outlines[0].pixels, outlines[0].starts[1:-1]):
        middle = corners.mean(axis=0)  # now the right, now the left half of the body is missing
        side = 1.0 if len(halves) % 7 < 3 else -1.0
        halves.append(np.where(side * (corners - middle) > 0, middle + 0.3 * (corners - middle), corners))
    poor = check_cameras(rig, [join_outlines(halves), *outlines[1:]], np.arange(FRAMES), most_lag=12)
    assert clean.unclear == () and poor.unclear == ("cam1",) and poor.faults == ()
