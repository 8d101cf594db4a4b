"""A rig from surveyed points of the scene, clicked in each camera, with known lenses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.boards.session import open_session
from calibration.cameras.rig import rig_to_toml
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.rig_formats.known_lenses import load_stated_lenses
from calibration.solving.survey_files import load_surveyed_scene
from calibration.solving.surveyed import SurveyedScene, SurveySolution, solve_surveyed
from vivarig.calibration_stage.board_calibration import opened_session
from vivarig.calibration_stage.lens_calibration import calibrate_lenses
from vivarig.calibration_stage.options import CalibrateOptions
from vivarig.console.reporting import CommandReport

__all__ = ["calibrate_from_survey", "calibrate_project_scene", "scene_of_project"]


def calibrate_from_survey(points: Path, clicks: Path | None, intrinsics: Path | None, output: Path) -> CommandReport:
    """Solve a rig from surveyed points and write rig.toml."""
    if intrinsics is None:
        raise InputError(
            "surveyed points give poses, not lenses: give the lenses with --intrinsics (a rig file, or results/lenses "
            "of `vivarig calibrate FOLDER --lenses-only`)"
        )
    scene = load_surveyed_scene(points, clicks)
    lenses = load_stated_lenses(intrinsics, scene.cameras)
    missing = [name for name in scene.cameras if name not in lenses]
    if missing:
        raise InputError(f"{intrinsics}: no lens for camera {', '.join(missing)}; it has {', '.join(lenses)}")
    solution = solve_surveyed(scene, [lenses[name] for name in scene.cameras])
    write_text(output / "rig.toml", rig_to_toml(solution.rig))
    return _report(scene, solution, output)


def scene_of_project(folder: Path) -> Path | None:
    """Return the file of surveyed points of a project whose poses come from them (Pose2Sim), None for others."""
    try:
        return open_session(folder).scene_file
    except InputError:
        return None


def calibrate_project_scene(folder: Path, scene: Path, clicks: Path, options: CalibrateOptions) -> CommandReport:
    """Take the project's lenses from its own pictures, unless they are given, and its poses from the clicks."""
    output = options.output or folder / "results"
    if options.intrinsics is not None:
        return calibrate_from_survey(scene, clicks, options.intrinsics, output)
    lenses = calibrate_lenses(opened_session(folder, options, lenses=True), replace(options, output=output))
    poses = calibrate_from_survey(scene, clicks, output / "lenses", output)
    return replace(poses, lines=[*lenses.lines, *poses.lines])


def _report(scene: SurveyedScene, solution: SurveySolution, output: Path) -> CommandReport:
    clicks = int(np.isfinite(solution.residuals).sum())
    lines = [
        f"{len(scene.cameras)} cameras from {len(scene.names)} surveyed points, {clicks} clicks; a click is good to "
        f"{solution.sigma_px:.2f} px (1 sigma, estimated)"
    ]
    for camera, sd, apart in zip(solution.rig, solution.centre_sd, solution.residuals, strict=True):
        place = ", ".join(f"{value:.1f} +- {error:.1f}" for value, error in zip(camera.centre, sd, strict=True))
        lines.append(
            f"  {camera.name}: at ({place}) mm (1 sigma), {int(np.isfinite(apart).sum())} clicks, median "
            f"{np.nanmedian(apart):.2f} px off"
        )
    wrong = [
        f"point '{name}': its coordinates are {off:.0f} mm from where the cameras see it, and were not used"
        for name, off in solution.wrong_points.items()
    ]
    wrong += [
        f"camera '{camera}': the click of '{name}' is {off:.0f} px off, and was not used"
        for (camera, name), off in solution.wrong_clicks.items()
    ]
    lines += [f"  {text}" for text in wrong] + [f"wrote {output / 'rig.toml'}"]
    numbers = {
        "sigma_px": solution.sigma_px,
        "centres_mm": {camera.name: camera.centre for camera in solution.rig},
        "centre_sd_mm": {camera.name: sd for camera, sd in zip(solution.rig, solution.centre_sd, strict=True)},
        "wrong_points": dict(solution.wrong_points),
        "wrong_clicks": [f"{camera} {name}" for camera, name in solution.wrong_clicks],
    }
    return CommandReport(lines, numbers, quality_ok=not wrong, reason="; ".join(wrong))
