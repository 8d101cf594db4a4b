"""Poses from surveyed points: recovered within what is stated, wrong coordinates and clicks named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from board_scenes import looking_at

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import Lens, PinholeLens
from calibration.cameras.rig import Rig, load_rig, rig_to_toml
from calibration.foundation.errors import InputError, SolveError
from calibration.solving.survey_files import load_surveyed_scene
from calibration.solving.surveyed import SurveyedScene, solve_surveyed
from vivarig.cli import main

NAMES = tuple(f"p{index}" for index in range(8))
MATRIX = np.array([[1500.0, 0, 960], [0, 1500, 540], [0, 0, 1]])


def room(seed: int) -> tuple[SurveyedScene, Rig, list[Lens]]:
    """Four cameras of 1920x1080 px 4 m from the middle, eight points known to 2 mm, clicked with 2 px noise."""
    rng = np.random.default_rng(seed)
    points = np.array([[x, y, z] for x in (-900, 900) for y in (-900, 900) for z in (0, 1700)], dtype=np.float64)
    points += rng.uniform(-100, 100, points.shape)
    lens = PinholeLens((1920, 1080), MATRIX, np.array([-0.1, 0.05, 0.001, 0.0, 0.0]))
    cameras = []
    for index in range(4):
        turn = index * np.pi / 2 + 0.4
        centre = np.array([4000 * np.cos(turn), 4000 * np.sin(turn), 1500.0 + 100 * index])
        cameras.append(LensCamera(f"cam{index}", lens, looking_at(centre, np.array([0.0, 0.0, 800.0]))))
    rig = Rig(tuple(cameras))
    pixels = np.stack([camera.project(points) for camera in rig]) + rng.normal(0, 2.0, (4, 8, 2))
    scene = SurveyedScene(NAMES, points + rng.normal(0, 2.0, points.shape), np.full(8, 2.0), rig.names, pixels)
    return scene, rig, [lens] * 4


def test_centres_are_within_the_stated_sigma_and_30_mm() -> None:
    """Six scenes, 24 cameras: all within 30 mm; errors in units of sigma have variance 1, as far as 72 tell."""
    errors, shares = [], []
    for seed in range(6):
        scene, rig, lenses = room(seed)
        found = solve_surveyed(scene, lenses)
        assert not found.wrong_points and not found.wrong_clicks
        apart = np.stack([a.centre - b.centre for a, b in zip(found.rig, rig, strict=True)])
        errors.append(np.linalg.norm(apart, axis=1))
        shares.append(apart / found.centre_sd)
    assert np.max(errors) < 30.0
    assert 0.7 < np.sqrt(np.mean(np.square(shares))) < 1.3


def test_a_wrong_coordinate_is_named_and_does_no_harm() -> None:
    scene, rig, lenses = room(7)
    world = scene.world.copy()
    world[3, 1] += 100.0
    found = solve_surveyed(SurveyedScene(scene.names, world, scene.sd_mm, scene.cameras, scene.pixels), lenses)
    assert list(found.wrong_points) == ["p3"] and abs(found.wrong_points["p3"] - 100) < 20 and not found.wrong_clicks
    assert max(np.linalg.norm(a.centre - b.centre) for a, b in zip(found.rig, rig, strict=True)) < 40.0


def test_a_wrong_click_is_named() -> None:
    scene, _, lenses = room(8)
    pixels = scene.pixels.copy()
    pixels[2, 5] += (40.0, 10.0)
    found = solve_surveyed(SurveyedScene(scene.names, scene.world, scene.sd_mm, scene.cameras, pixels), lenses)
    assert list(found.wrong_clicks) == [("cam2", "p5")] and not found.wrong_points


def test_too_few_points_and_points_on_a_line_are_said() -> None:
    scene, _, lenses = room(9)
    pixels = scene.pixels.copy()
    pixels[1, 3:] = np.nan
    with pytest.raises(InputError, match="camera 'cam1': 3 surveyed points are clicked, 4 are needed"):
        solve_surveyed(SurveyedScene(scene.names, scene.world, scene.sd_mm, scene.cameras, pixels), lenses)
    line = np.outer(np.arange(8.0), [100.0, 20.0, 10.0])
    with pytest.raises(SolveError, match="on one line"):
        solve_surveyed(SurveyedScene(scene.names, line, scene.sd_mm, scene.cameras, scene.pixels), lenses)


def written(place: Path, scene: SurveyedScene, rig: Rig) -> None:
    lines = ["sd_mm = 2.0"]
    for name, at in zip(scene.names, scene.world, strict=True):
        lines += [f"[points.{name}]", f"world = {at.tolist()}"]
    (place / "scene.toml").write_text("\n".join(lines))
    rows = [
        f"{camera},{name},{x!r},{y!r}"
        for camera, per in zip(scene.cameras, scene.pixels.tolist(), strict=True)
        for name, (x, y) in zip(scene.names, per, strict=True)
    ]
    (place / "clicks.csv").write_text("camera,point,x,y\n" + "\n".join(rows) + "\n")
    (place / "lenses.toml").write_text(rig_to_toml(rig))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scene, rig, _ = room(0)
    written(tmp_path, scene, rig)
    words = ["calibrate", "--points", str(tmp_path / "scene.toml"), "--marks", str(tmp_path / "clicks.csv")]
    assert main(words) == 2
    assert "surveyed points give poses, not lenses" in capsys.readouterr().err
    words += ["--intrinsics", str(tmp_path / "lenses.toml")]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "4 cameras from 8 surveyed points, 32 clicks" in said and "+-" in said
    found = load_rig(tmp_path / "results" / "rig.toml")
    assert max(np.linalg.norm(found[name].centre - rig[name].centre) for name in rig.names) < 30.0
    text = (tmp_path / "scene.toml").read_text().replace(f"world = {scene.world[6].tolist()}", "world = [0, 0, 0]")
    (tmp_path / "scene.toml").write_text(text)
    assert main(words) == 1
    assert "point 'p6': its coordinates are" in capsys.readouterr().err


def test_a_click_of_an_unknown_point_names_the_nearest(tmp_path: Path) -> None:
    scene, rig, _ = room(0)
    written(tmp_path, scene, rig)
    (tmp_path / "clicks.csv").write_text("camera,point,x,y\ncam0,P3,1,2\n")
    with pytest.raises(InputError, match=r"point 'P3' is not in .*scene\.toml"):
        load_surveyed_scene(tmp_path / "scene.toml", tmp_path / "clicks.csv")
