"""Lenses alone: one folder of pictures (or a video) of the board per camera, each camera by itself.

Pictures of different cameras that share a number were not taken at one instant, and are never taken for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.boards.board import Board
from calibration.boards.detection import CameraDetections
from calibration.boards.frame_choice import choose_frames, sharp_views
from calibration.boards.session import Session
from calibration.boards.sightings import merge_sightings
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens
from calibration.foundation.files import write_text
from calibration.rig_formats.opencv_storage import yaml_storage
from calibration.solving.rig_solver import SolveOptions, rig_of_rows, start_lenses
from vivarig.calibration_stage.board_footage import detect_session
from vivarig.calibration_stage.options import CalibrateOptions
from vivarig.console.reporting import CommandReport

__all__ = ["calibrate_lenses"]


def calibrate_lenses(session: Session, options: CalibrateOptions) -> CommandReport:
    """Fit each camera's lens from its own views and write ``lenses/CAMERA/lens.yml``, as OpenCV does."""
    output = options.output or session.folder / "results"
    lines, numbers = [], {}
    for footage in session.footage:
        alone = replace(session, footage=(footage,), floor=())
        boards, detections, notes = detect_session(
            alone, output, workers=options.workers, step=options.step, trim=options.trim
        )
        camera, views, error = _fitted(detections[0], boards, options)
        fisheye = isinstance(camera.lens, FisheyeLens)
        content = {
            "image_width": camera.size[0],
            "image_height": camera.size[1],
            "camera_name": camera.name,
            "distortion_model": "fisheye" if fisheye else "plumb_bob",
            "camera_matrix": camera.lens.intrinsics,
            "distortion_coefficients": np.asarray(camera.lens.distortion).reshape(1, -1),
        }
        write_text(output / "lenses" / camera.name / "lens.yml", yaml_storage(content))
        focal = camera.lens.intrinsics[0, 0]
        lines.append(
            f"  {camera.name}: {camera.size[0]}x{camera.size[1]} px, focal length {focal:.1f} px, "
            f"{'fisheye' if fisheye else 'pinhole'}, {views} views, {error:.2f} px RMS"
        )
        lines += [f"    {note}" for note in notes]
        numbers[camera.name] = {"focal_px": focal, "views": views, "rms_px": error}
    head = f"{len(session.footage)} lenses, each from its own views alone; no poses: pictures were not taken together"
    place = output / "lenses"
    last = f"wrote {place}: give it to `vivarig calibrate` with --intrinsics {place}"
    return CommandReport([head, *lines, last], numbers)


def _fitted(
    detections: CameraDetections, boards: tuple[Board, ...], options: CalibrateOptions
) -> tuple[LensCamera, int, float]:
    sharp, _ = sharp_views(detections)
    sightings, _ = choose_frames(merge_sightings([sharp.sightings(boards)]), options.frames)
    lens = start_lenses(sightings, SolveOptions(lens=options.lens, distortion=options.distortion))
    camera = rig_of_rows(lens.rows, sightings, lens.freedoms)[0]
    single = lens.singles[0]
    assert isinstance(camera, LensCamera) and single is not None
    return camera, len(sightings.targets()), single.rms_px()
