"""From a plan to a recording folder: truth, clocks, boards, phantoms, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from calibration.boards.board import Board
from calibration.boards.session import open_session
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.cameras.ring import look_at, ring_rig
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from calibration.xray.cube import load_cube
from capture.recordings.recording import load_recording
from capture.recordings.video import probe, read_frames
from capture.studio.films.acting import perform
from capture.studio.films.board_sessions import floor_pose, wave_board, write_session
from capture.studio.films.film import check_rig, clock, film_cameras
from capture.studio.films.simulation import Plan, RingPlan, load_plan, simulate
from capture.studio.films.xray_recording import cube_text
from capture.studio.light.board_images import BoardSheet, FilmedBoard
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.stage import build_stage
from capture.studio.scene.surfaces import MovingSurface, icosphere
from capture.studio.scene.truth import load_truth
from capture.studio.xray.intensifier import Intensifier
from capture.studio.xray.phantoms import GridPlate, bead_box, grid_transmission
from skeleton.actors.actor import Actor, build_actor
from vivarig.cli import main


def ball(place: tuple[float, float, float] = (0.0, 0.0, 25.0), frames: int = 3) -> MovingSurface:
    vertices, faces = icosphere(20.0, place, subdivisions=3)
    moved = vertices[None] + np.arange(frames)[:, None, None] * np.array([4.0, 0.0, 0.0])
    return MovingSurface(moved, faces, 100.0, vertices, np.full_like(vertices, 0.2))


def small_rig(count: int = 2) -> Rig:
    return ring_rig(count, radius=200.0, height=120.0, target=(0.0, 0.0, 20.0), field_mm=140.0, size=(96, 72))


@pytest.fixture(scope="module")
def mouse() -> Actor:
    return build_actor("mouse")


def test_ring_cameras_look_at_the_target_from_the_ring() -> None:
    rig = ring_rig(5, radius=300.0, height=[100.0, 200.0], target=(10.0, -5.0, 30.0), field_mm=200.0)
    assert rig.names == ("cam01", "cam02", "cam03", "cam04", "cam05")
    for number, camera in enumerate(rig.cameras):
        assert np.allclose(camera.project(np.array([10.0, -5.0, 30.0])), [319.5, 239.5])
        assert np.isclose(np.hypot(*(camera.centre[:2] - [10.0, -5.0])), 300.0)
        assert np.isclose(camera.centre[2], 100.0 if number % 2 == 0 else 200.0)
        above = camera.project(np.array([10.0, -5.0, 40.0]))
        assert above[1] < 239.5  # up is up
    edge = np.linalg.norm(rig[0].project(np.array([[10.0, 95.0, 30.0]]))[0] - [319.5, 239.5])
    assert np.isclose(edge, 320.0, rtol=0.05)  # half the field is half the image


def test_clocks_shift_and_drop_as_told() -> None:
    assert np.array_equal(clock(StudioOptions(), 0, 5), np.arange(5.0))
    shifted = clock(StudioOptions(time_offset=2.0, seed=1), 3, 50)
    assert len(shifted) == 50
    assert 0.0 < abs(shifted[0]) <= 2.0
    assert np.allclose(np.diff(shifted), 1.0)
    dropped = clock(StudioOptions(dropped_frames=0.2, seed=1), 3, 400)
    assert abs(1.0 - len(dropped) / 400 - 0.2) < 0.06
    assert not np.array_equal(dropped, clock(StudioOptions(dropped_frames=0.2, seed=1), 4, 400))


def test_motion_blur_smears_along_the_motion_and_keeps_the_light() -> None:
    surface = ball()
    rig = ring_rig(
        1, radius=200.0, height=120.0, target=(4.0, 0.0, 20.0), field_mm=140.0, size=(96, 72), first_angle=1.5
    )
    sharp = film_cameras(rig, surface, StudioOptions())[0].picture(1.0)
    smeared = film_cameras(rig, surface, StudioOptions(motion_blur=1.0))[0].picture(1.0)
    assert abs(smeared.coverage.sum() / sharp.coverage.sum() - 1.0) < 0.02
    partly = (smeared.coverage > 0.05) & (smeared.coverage < 0.95)
    assert partly.sum() > 1.3 * ((sharp.coverage > 0.05) & (sharp.coverage < 0.95)).sum()


def test_camera_inside_the_body_is_named() -> None:
    rig = ring_rig(2, radius=200.0, height=120.0, target=(0.0, 0.0, 20.0), field_mm=140.0)
    inside = LensCamera("cam02", PinholeLens((64, 48), np.diag([50.0, 50.0, 1.0])), look_at((1, 2, 25), (90, 0, 0)))
    with pytest.raises(InputError, match="'cam02' is inside the body at frame 0"):
        check_rig(type(rig)((rig[0], inside)), ball())


def test_rig_that_never_sees_the_subject_is_refused_and_says_where_it_is() -> None:
    with pytest.raises(InputError, match=r"cam01, cam02 ever sees the subject, which stays within \(4980"):
        check_rig(small_rig(), ball((5000.0, 0.0, 25.0)))


def test_motion_of_another_skeleton_is_refused(mouse: Actor) -> None:
    with pytest.raises(InputError, match="another skeleton"):
        perform(mouse, np.zeros((4, 7)), 100.0)


def test_board_corners_are_where_the_camera_projects_them() -> None:
    board = Board("charuco", 7, 5, 14.0, 10.5, "DICT_4X4_50")
    rig = ring_rig(1, radius=220.0, height=200.0, target=(0.0, 0.0, 0.0), field_mm=160.0, size=(480, 360),
                   distortion=(-0.2, 0.05, 0.001, 0.0))  # fmt: skip
    view = FilmedBoard(rig[0], build_stage(100.0, StudioOptions()), BoardSheet(board, 5.0))
    pose = floor_pose(board)
    image = np.clip(view.picture(pose).light[..., 0] * 235, 0, 255).astype(np.uint8)
    detector = cv2.aruco.CharucoDetector(
        cv2.aruco.CharucoBoard((7, 5), 14.0, 10.5, cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50))
    )
    found, numbers = detector.detectBoard(image)[:2]
    numbers = np.asarray(numbers).ravel()
    assert len(numbers) == 24
    error = np.asarray(found).reshape(-1, 2) - rig[0].project(pose.apply(board.points_mm[numbers]))
    assert np.abs(error.mean(axis=0)).max() < 0.03
    assert np.abs(error).max() < 0.3  # what OpenCV's detector does to single corners


def test_floor_board_lies_print_up_with_its_middle_at_the_origin() -> None:
    for board in (Board("charuco", 7, 5, 14.0, 10.5, "DICT_4X4_50"), Board("chessboard", 8, 6, 30.0)):
        points = floor_pose(board).apply(board.points_mm)
        assert np.allclose(points[:, 2], 0.0)
        assert np.allclose(points.mean(axis=0), 0.0, atol=1e-9)
        assert np.allclose(floor_pose(board).rotation @ [0.0, 0.0, -1.0], [0.0, 0.0, 1.0])


def test_waved_board_faces_the_ring_and_stays_in_reach() -> None:
    board = Board("charuco", 7, 5, 14.0, 10.5, "DICT_4X4_50")
    wave = wave_board(
        board, frames=40, centre=np.array([0.0, 0.0, 60.0]), reach=30.0, turns=1.0, rng=np.random.default_rng(0)
    )
    middle = np.append(np.array(board.size_mm) / 2, 0.0)
    for frame in range(0, 40, 5):
        pose = wave.at(frame)
        assert np.linalg.norm(pose.apply(middle) - [0.0, 0.0, 60.0]) < 80.0
        assert (pose.rotation @ [0.0, 0.0, -1.0])[2] > -0.6  # the print mostly looks up, where the cameras are
        assert np.isclose(np.linalg.det(pose.rotation), 1.0)


def test_session_folder_has_a_video_per_camera_and_the_floor(tmp_path: Path) -> None:
    board = Board("charuco", 5, 4, 20.0, 15.0, "DICT_4X4_50")
    wave = wave_board(
        board, frames=2, centre=np.array([0.0, 0.0, 50.0]), reach=10.0, turns=1.0, rng=np.random.default_rng(0)
    )
    rig = small_rig()
    write_session(tmp_path, rig, board, wave, StudioOptions(motion_blur=0.2), scale=80.0, rate_hz=10.0)

    session = open_session(tmp_path)
    assert [item.name for item in session.footage] == ["cam01", "cam02"]
    assert [item.name for item in session.floor] == ["cam01", "cam02"]
    assert session.boards[0] == replace(board)
    assert probe(tmp_path / "cam01.mp4").frames == 2


def test_holes_of_the_plate_are_where_the_intensifier_shows_them() -> None:
    tube = Intensifier((300, 300), np.array([152.0, 147.0]), 140.0, pincushion=0.08, twist=0.05)
    plate = GridPlate(20.0, 10.0, 0.2, (1.0, 2.0))
    image = grid_transmission(tube, plate)
    for node in plate.nodes(tube):
        column, row = tube.apply(node)
        if np.hypot(column - 152, row - 147) > 120:
            continue
        left, top = round(column) - 8, round(row) - 8
        patch = np.maximum(image[top : top + 17, left : left + 17].astype(float) - 0.04, 0.0)
        y, x = np.mgrid[top : top + 17, left : left + 17]
        near = np.hypot(x - column, y - row) < 7.5
        found = np.array([(x * patch)[near].sum(), (y * patch)[near].sum()]) / patch[near].sum()
        assert np.abs(found - [column, row]).max() < 0.1


def test_cube_file_reads_back_and_no_two_beads_are_close(tmp_path: Path) -> None:
    box = bead_box(60.0, count=20, radius=0.5, seed=4)
    (tmp_path / "cube.csv").write_text(cube_text(box), encoding="utf-8")
    cube = load_cube(tmp_path / "cube.csv")
    assert cube.names == box.names
    assert np.allclose(cube.points, box.points, atol=0.005)
    apart = np.linalg.norm(box.points[:, None] - box.points[None], axis=-1) + 1e3 * np.eye(20)
    assert apart.min() > 60.0 / 7.0
    moved = box.beads(RigidTransform(np.eye(3), np.array([1.0, 2.0, 3.0])))
    assert np.allclose(moved.centres, box.points + np.array([1.0, 2.0, 3.0]))


def test_simulate_makes_a_recording_whose_truth_projects_into_its_masks(tmp_path: Path) -> None:
    plan = Plan(
        frames=2,
        seed=3,
        ring=RingPlan(cameras=2, size=(160, 120)),
        options=StudioOptions(noise=1.0, time_offset=0.5),
    )
    result = simulate(plan, tmp_path / "one")
    recording = load_recording(tmp_path / "one")
    truth = load_truth(tmp_path / "one")
    assert recording.subject == "mouse"
    assert recording.rig is not None
    assert set(result.seen_share.values()) == {1.0}
    assert truth.vertices.shape[0] == len(truth) == 2
    assert truth.joints.positions.shape == (2, len(truth.joints.names), 3)
    assert truth.rotations.shape == (2, len(truth.joints.names), 4)
    assert len(truth.landmarks.names) >= 15
    assert truth.contacts.shape == (2, len(truth.contact_names))
    assert truth.parameters["motion"] == "walk"
    for camera in recording.rig.cameras:
        assert abs(truth.cameras[camera.name]["frames"][0]) <= 0.5
    for item, camera in zip(recording.footage, recording.rig.cameras, strict=True):
        assert item.background is not None
        _, image = next(iter(read_frames(item.source, gray=True)))
        _, empty = next(iter(read_frames(item.background, gray=True)))
        inside = np.rint(camera.project(truth.landmarks.positions[0])).astype(int)
        hip = inside[list(truth.landmarks.names).index("lumbar")]
        assert int(empty[hip[1], hip[0]]) - int(image[hip[1], hip[0]]) > 25  # a dark mouse on a light floor
    # Same plan, same bytes.
    simulate(plan, tmp_path / "two")
    for name in ("videos/cam01.mp4", "videos/cam02_background.mp4", "rig.toml", "truth.h5"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_command_reads_a_plan_and_refuses_to_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan.toml").write_text(
        'body = "mouse"\nmotion = "turn"\nframes = 3\n[rig]\ncameras = 2\nsize = [96, 72]\n[options]\nnoise = 1.0\n',
        encoding="utf-8",
    )
    words = ["simulate", str(tmp_path / "made"), "--plan", str(tmp_path / "plan.toml"), "--option", "shadows=0.5"]
    assert main(words) == 0
    assert "2 of 2 cameras" in capsys.readouterr().out
    assert main(words) == 2
    assert "holds a recording already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('body = "cat"', "unknown body 'cat'"),
        ("frames = 0", "at least 1 frame"),
        ("frames = 2.5", "wanted a int"),
        ("[rig]\nradios = 3", "did you mean 'radius'"),
        ("[options]\nnoise = -2.0", "noise"),
        ('[options]\nnoise = "much"', "wanted a float"),
    ],
)
def test_bad_plans_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_plan(tmp_path / "plan.toml")


def test_unknown_motion_and_foreign_motion_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no motion 'fly'"):
        simulate(Plan(motion="fly", frames=1), tmp_path / "a")
    bvh = (
        "HIERARCHY\nROOT Hips\n{\nOFFSET 0 0 0\n"
        "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation\n"
        "End Site\n{\nOFFSET 0 1 0\n}\n}\nMOTION\nFrames: 1\nFrame Time: 0.01\n0 0 0 0 0 0\n"
    )
    (tmp_path / "man.bvh").write_text(bvh, encoding="utf-8")
    with pytest.raises(InputError, match="motion of another skeleton than 'mouse'"):
        simulate(Plan(motion=str(tmp_path / "man.bvh"), frames=1), tmp_path / "b")
