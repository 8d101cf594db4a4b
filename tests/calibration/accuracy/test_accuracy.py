"""Accuracy: measured on what was held out; and the real rigs of other people."""

from __future__ import annotations

import json
import re
from pathlib import Path

import cv2
import numpy as np
import pytest
from board_scenes import disturb, scene

from calibration.accuracy.measures import coverage, held_out, measure, repeatability
from calibration.boards.board import Board, load_boards
from calibration.boards.detection import detect_boards, detect_in_image, grey
from calibration.boards.sightings import Sightings, merge_sightings
from calibration.cameras.camera_row import FOCAL, ROTATION, TRANSLATION
from calibration.cameras.rig import duplicate_cameras, load_rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector, vector_from_rotation
from calibration.rig_formats.known_lenses import load_lenses
from calibration.solving.half_turns import align_half_turns, needs_floor
from calibration.solving.planar_pose import half_turn
from calibration.solving.rig_solver import SolveOptions, solve_rig
from capture.recordings.video import read_frames


def degrees_between(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.degrees(np.linalg.norm(vector_from_rotation(a @ b.T))))


def test_measure_on_the_true_rig_shows_the_noise() -> None:
    made = scene(3, cameras=6, frames=20, wrong=0.0)
    score = measure(made.rig, made.sightings)
    # a point from v views fits 2v numbers with 3: residual RMS = 0.2 sqrt(2) sqrt(1 - 3 / 2v), v = 2..4 here
    assert 0.12 < score.rms_px < 0.25
    assert score.square_mm < 1.0 and abs(score.square_bias_mm) < 0.05
    wrong = measure(made.rig, disturb(made.sightings, np.random.default_rng(0), noise=0.0, wrong=0.05))
    assert 0.02 < wrong.left_out < 0.25 and wrong.raw_rms_px > 2 * wrong.rms_px


def test_held_out_repeatability_and_coverage() -> None:
    made = scene(4, cameras=4, frames=60)
    options = SolveOptions(distortion="brown4")
    score = held_out(made.sightings, options)
    assert score is not None and 0.1 < score.rms_px < 0.35 and score.frames > 5
    solution = solve_rig(made.sightings, options)
    spread = repeatability(solution, np.random.default_rng(0))
    assert spread is not None and spread.samples == 10
    model = [np.sqrt(np.trace(solution.bundle.centre_covariance(c))) for c in range(1, 4)]
    # independent noise: resampling and covariance must tell the same story
    assert np.all(spread.centre_mm[1:] < 3 * np.array(model)) and np.all(spread.centre_mm[1:] > np.array(model) / 3)
    seen = coverage(solution, 0)
    assert 0.1 < seen.share <= 1.0 and seen.count.sum() == (made.sightings.camera == 0).sum()
    assert held_out(made.sightings.of_frames(np.unique(made.sightings.frame)[:4]), options) is None


@pytest.mark.realdata
def test_stereo_chessboards_agree_with_the_published_values(shared_data: Path) -> None:
    board = Board("chessboard", 10, 7, 30.0)
    parts = []
    for side in ("left", "right"):
        files = sorted((shared_data / "opencv_boards" / "stereo").glob(f"{side}*.png"))
        frames = ((int(f.stem[-2:]), cv2.imread(str(f))) for f in files)
        parts.append(detect_boards(frames, (board,), name=side).sightings((board,)))
    table = merge_sightings(parts)
    assert len(np.unique(table.frame)) == 13
    solution = solve_rig(table)
    assert all(freedom.distortion == "brown4" for freedom in solution.freedoms)
    rows = solution.bundle.bundle.rows
    focal = np.array([[533.523, 533.527], [536.814, 536.476]])
    assert np.abs(rows[:, FOCAL] / focal - 1).max() < 1e-3
    assert abs(np.linalg.norm(rows[1, TRANSLATION]) - np.linalg.norm([-99.802, 1.124, 0.050])) < 0.1
    published = rotation_from_vector([0.00669, 0.00452, -0.00350])
    assert degrees_between(rows[1, ROTATION].reshape(3, 3), published) < 0.05


@pytest.mark.realdata
def test_fisheye_pairs_agree_with_the_published_translation(shared_data: Path) -> None:
    folder = shared_data / "opencv_boards" / "cameracalibration" / "fisheye" / "calib-3_stereo_from_JY"
    board = Board("chessboard", 9, 7, 24.4)
    parts = []
    for side in ("left", "right"):
        text = (folder / f"{side}.xml").read_text()
        found = {int(m[1]): m[2] for m in re.finditer(r"<image_(\d+)>(.*?)</image", text, re.S)}
        frames = np.array(sorted(found))
        pixels = np.concatenate([np.array(found[f].split(), float).reshape(-1, 2) for f in frames])
        count = len(frames)
        parts.append(
            Sightings(
                (side,),
                ((1280, 800),),
                (board,),
                np.zeros(48 * count, np.int64),
                np.repeat(frames, 48),
                np.zeros(48 * count, np.int64),
                np.tile(np.arange(48), count),
                pixels,
            )
        )
    solution = solve_rig(merge_sightings(parts))
    assert all(freedom.distortion.startswith("fisheye") for freedom in solution.freedoms)  # found by itself
    rows = solution.bundle.bundle.rows
    assert np.linalg.norm(rows[1, TRANSLATION] - [-99.4027, 2.7081, 1.2933]) < 0.1
    assert solution.bundle.rms_px() < 0.35


@pytest.mark.realdata
def test_mouse_cage_and_its_duplicated_camera(shared_data: Path) -> None:
    folder = shared_data / "mouse_cage"
    boards = load_boards(folder / "board.toml")
    parts = []
    for view in ("back", "mid", "side", "top"):
        files = list((folder / view / "calibration_images").glob("*.jpg"))
        numbered = {int(f.stem.split("-")[-1]): f for f in files}
        frames = ((n, cv2.imread(str(numbered[n]))) for n in sorted(numbered)[::3])
        parts.append(detect_boards(frames, boards, name=view).sightings(boards))
    solution = solve_rig(merge_sightings(parts))
    assert solution.bundle.rms_px() <= 0.25
    assert duplicate_cameras(solution.rig) == []
    assert duplicate_cameras(load_rig(folder / "calibration.toml")) == [("side", "top")]


@pytest.mark.realdata
def test_floor_board_of_the_utrecht_room(shared_data: Path) -> None:
    """Poses from one board on the floor that looks the same upside down.

    The derived calibration beside the data was fitted to corners 0.65-0.70 px off in cam1 and cam4, ours to 0.15 px;
    there the two differ by 76 and 37 mm along the line of sight, in cam2 and cam3 by 11 and 9 mm. Silhouettes, hull and
    floor, to which neither was fitted, agree better with ours (benchmarks/room_calibrations.py,
    docs/measured/calibration.md).
    """
    room = shared_data / "utrecht_room"
    board = Board("chessboard", 9, 7, 115.0)
    names = [f"cam{i}" for i in range(1, 5)]
    images, parts = {}, []
    for c, name in enumerate(names):
        pictures = [grey(image) for _, image in read_frames(room / name / "checkerboard.avi", stop=12)]
        images[c] = np.mean(pictures, axis=0).round().astype(np.uint8)
        assert len(detect_in_image(images[c], (board,))) == 1
        parts.append(detect_boards([(0, images[c])], (board,), name=name).sightings((board,)))
    table = merge_sightings(parts)
    assert needs_floor(table)
    lenses = load_lenses(room, names, table.sizes)
    table, notes = align_half_turns(table, np.stack([lenses[n].packed() for n in names]), images)
    assert len(notes) == 3
    solution = solve_rig(table, SolveOptions(fixed=lenses))
    assert solution.bundle.rms_px() < 0.25
    bundle = solution.bundle.bundle
    rig_from_board = RigidTransform(bundle.rotations[0], bundle.translations[0])
    derived = json.loads((room / "calib_derived.json").read_text())
    off = {}
    for turn in (RigidTransform.identity(), half_turn(board.points_mm)):
        for c, name in enumerate(names):
            pose = solution.rig[c].camera_from_world @ rig_from_board @ turn
            want = RigidTransform(
                rotation_from_vector(np.ravel(derived[name]["rvec"])), np.ravel(derived[name]["tvec"])
            )
            distance = float(np.linalg.norm(pose.inverse().translation - want.inverse().translation))
            entry = (distance, degrees_between(pose.rotation, want.rotation))
            off[name] = min(off.get(name, entry), entry) if turn is not None else entry
    assert max(turn for _, turn in off.values()) < 0.5
    assert off["cam2"][0] < 30 and off["cam3"][0] < 30
    assert off["cam1"][0] < 90 and off["cam4"][0] < 45


@pytest.mark.realdata
@pytest.mark.slow
def test_webcams_with_an_inverted_see_through_board(shared_data: Path) -> None:
    """Every second frame of the four-webcam session, nothing said but the session's own board file."""
    session = shared_data / "caliscope" / "4_cam_recording"
    boards = load_boards(session / "charuco.toml")
    parts = []
    for c in range(4):
        frames = read_frames(session / "calibration" / "extrinsic" / f"cam_{c}.mp4", step=2, gray=True)
        parts.append(detect_boards(frames, boards, name=f"cam_{c}", workers=2).sightings(boards))
    table = merge_sightings(parts)
    solution = solve_rig(table)
    assert any("'cam_1' sees the board from behind" in note for note in solution.notes)
    assert solution.bundle.rms_px() < 0.7
    score = measure(solution.rig, table)
    assert abs(score.square_bias_mm) < 0.2 and score.square_mm < 0.6  # of squares of 54 mm
    cut = table.where(~((table.camera == 3) & np.isin(table.frame, table.frame[table.camera != 3])))
    with pytest.raises(Exception, match="'cam_3'"):
        solve_rig(cut)
