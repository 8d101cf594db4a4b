"""Calibration without a board: recovery of a known rig from a wand, from matched points, and by refinement."""

from __future__ import annotations

import numpy as np
import pytest
from board_scenes import ring_rig

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig, load_rig, save_rig
from calibration.foundation.errors import InputError, SolveError
from calibration.geometry.transforms import RigidTransform, fit_rigid, fit_similarity, rotation_from_vector
from calibration.solving.wand import Marks, load_marks, refine_rig, solve_marks
from vivarig.cli import main

ALONG = np.array([0.0, 150.0, 400.0])


def waved_wand(seed: int) -> tuple[Rig, Marks]:
    """Five cameras, 120 places of a wand of three marks, 0.3 px noise, 15 % not seen, 1 % wrong by 30 px."""
    rng = np.random.default_rng(seed)
    rig = ring_rig(5, rng)
    middle = rng.uniform([-350, -350, 100], [350, 350, 700], (120, 3))
    direction = rng.normal(size=(120, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    points = middle[:, None] + ALONG[None, :, None] * direction[:, None]
    pixels = np.stack([camera.project(points) for camera in rig]) + rng.normal(0, 0.3, (5, 120, 3, 2))
    pixels[rng.random((5, 120, 3)) < 0.15] = np.nan
    pixels[rng.random((5, 120, 3)) < 0.01] += 30.0
    return rig, Marks(rig.names, np.arange(120), pixels)


def errors(solved: Rig, truth: Rig, fit=fit_rigid) -> np.ndarray:
    a, b = (np.stack([camera.centre for camera in rig]) for rig in (solved, truth))
    return np.linalg.norm(fit(a, b).apply(a) - b, axis=1)


def test_wand_of_known_length() -> None:
    rig, marks = waved_wand(0)
    solution = solve_marks(marks, [camera.lens for camera in rig], along_mm=ALONG)
    assert solution.bundle.converged
    assert errors(solution.rig, rig).max() < 1.0  # of a rig of 3 m, scale included
    assert 0.005 < 1 - solution.bundle.inlier.mean() < 0.04
    assert abs(np.nanmedian(solution.length_mm)) < 0.1


def test_matched_points_with_one_known_distance() -> None:
    rig, marks = waved_wand(1)
    known = float(np.linalg.norm(rig[0].centre - rig[1].centre))
    solution = solve_marks(marks, [camera.lens for camera in rig], baseline_mm=known)
    assert errors(solution.rig, rig, fit_similarity).max() < 1.0
    assert errors(solution.rig, rig).max() < 5.0


def test_refinement_keeps_frame_and_scale() -> None:
    rig, marks = waved_wand(2)
    rng = np.random.default_rng(5)
    off = Rig(
        tuple(
            LensCamera(
                camera.name,
                camera.lens,
                RigidTransform(
                    rotation_from_vector(rng.normal(0, 0.003, 3)) @ camera.camera_from_world.rotation,
                    camera.camera_from_world.translation + rng.normal(0, 5, 3),
                ),
            )
            for camera in rig
        )
    )
    refined = refine_rig(off, marks.pixels.reshape(5, -1, 2))
    assert errors(off, rig).max() > 3.0
    assert errors(refined.rig, rig, fit_similarity).max() < 1.0
    shift = np.stack([c.centre for c in refined.rig]).mean(0) - np.stack([c.centre for c in off]).mean(0)
    assert np.linalg.norm(shift) < 1e-6


def test_what_is_missing_is_said(tmp_path) -> None:
    rig, marks = waved_wand(0)
    lenses = [camera.lens for camera in rig]
    with pytest.raises(InputError, match="no scale"):
        solve_marks(marks, lenses)
    with pytest.raises(InputError, match="3 different places"):
        solve_marks(marks, lenses, along_mm=[0, 1])
    lonely = marks.pixels.copy()
    lonely[4] = np.nan
    with pytest.raises(SolveError, match="missing link: camera 'cam5'"):
        solve_marks(Marks(marks.cameras, marks.frames, lonely), lenses, along_mm=ALONG)
    (tmp_path / "marks.csv").write_text("frame,camera,mark,x,y\n0,a,tip,1.5,2.5\n3,b,tip,4,oops\n")
    with pytest.raises(InputError, match="line 3"):
        load_marks(tmp_path / "marks.csv")
    (tmp_path / "marks.csv").write_text("frame,camera,mark,x,y\n0,a,tip,1.5,2.5\n3,b,tip,4,5\n")
    table = load_marks(tmp_path / "marks.csv")
    assert table.cameras == ("a", "b") and table.pixels.shape == (2, 2, 1, 2) and np.isnan(table.pixels[0, 1]).all()


def test_from_the_command_line(tmp_path, capsys) -> None:
    rig, marks = waved_wand(3)
    save_rig(rig, tmp_path / "lenses.toml")
    rows = ["frame,camera,mark,x,y"]
    for c, name in enumerate(marks.cameras):
        for t in range(0, 120, 2):
            for k in range(3):
                if np.isfinite(marks.pixels[c, t, k]).all():
                    rows.append(f"{t},{name},m{k},{marks.pixels[c, t, k, 0]},{marks.pixels[c, t, k, 1]}")
    (tmp_path / "marks.csv").write_text("\n".join(rows))
    common = ["calibrate", str(tmp_path), "--marks", str(tmp_path / "marks.csv")]
    lenses = ["--intrinsics", str(tmp_path / "lenses.toml")]
    assert main([*common, *lenses, "--wand", "0,150,400"]) == 0
    assert errors(load_rig(tmp_path / "results" / "rig.toml"), rig).max() < 2.0
    known = f"{np.linalg.norm(rig[0].centre - rig[1].centre):.3f}"
    assert main([*common, *lenses, "--baseline", known, "--output", str(tmp_path / "points")]) == 0
    assert errors(load_rig(tmp_path / "points" / "rig.toml"), rig).max() < 10.0
    assert main([*common, "--refine", str(tmp_path / "lenses.toml"), "--output", str(tmp_path / "refined")]) == 0
    assert errors(load_rig(tmp_path / "refined" / "rig.toml"), rig).max() < 2.0
    assert main(common) == 2 and "--intrinsics" in capsys.readouterr().err
