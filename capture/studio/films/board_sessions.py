"""Calibration sessions: a board waved through the volume before all cameras, and laid on the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

from calibration.boards.board import Board, save_boards
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bytes, Floats
from calibration.foundation.result_files import create_results
from calibration.geometry.transforms import RigidTransform, quaternion_from_rotation
from capture.recordings.video import write_video
from capture.studio.light.board_images import BoardSheet, FilmedBoard
from capture.studio.light.sensor import Sensor
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.stage import build_stage

__all__ = ["Wave", "floor_pose", "wave_board", "write_session"]

#: Instants that one exposure of the waved board is averaged over, in parts of its length.
BLUR_SHIFTS = np.array([0.0, -1.0, 1.0]) / 3.0
WAVE_TAKE, FLOOR_TAKE = 2, 3


def floor_pose(board: Board) -> RigidTransform:
    """Return ``world_from_board`` of a board that lies on the floor, print up, its middle at the world's origin.

    A print's z points away from the reader, so the board's x is the world's x, its y the world's -y, its z -z.
    """
    rotation = np.diag([1.0, -1.0, -1.0])
    middle = np.append(np.array(board.size_mm) / 2.0, 0.0)
    if board.kind == "chessboard":  # its frame starts at the first inner corner
        middle[:2] -= board.square_mm
    return RigidTransform(rotation, -rotation @ middle)


@dataclass(frozen=True, eq=False)
class Wave:
    """A smooth motion of a board: ``at`` a frame number, between frames too."""

    frames: int
    _places: CubicSpline
    _turns: RotationSpline

    def at(self, frame: float) -> RigidTransform:
        """Return ``world_from_board``."""
        return RigidTransform(self._turns(frame).as_matrix(), np.asarray(self._places(frame)))


def wave_board(
    board: Board, *, frames: int, centre: Floats, reach: float, turns: float, rng: np.random.Generator, step: int = 8
) -> Wave:
    """Plan a wave: the board wanders within ``reach`` mm of ``centre`` and faces all round, tilted up and down.

    Args:
        turns: how often the direction it faces goes round the vertical.
        step: frames between the random way points; fewer are faster motion.
    """
    knots = np.arange(0, frames + 2 * step, step)
    count = len(knots)
    facing = 2.0 * np.pi * turns * knots / frames + rng.uniform(-0.3, 0.3, count)
    tilt = rng.uniform(np.radians(5.0), np.radians(65.0), count)  # upwards, where the cameras are
    roll = rng.uniform(-0.9, 0.9, count)
    middle = np.append(np.array(board.size_mm) / 2.0, 0.0)
    rotations, places = [], []
    for f, t, r in zip(facing, tilt, roll, strict=True):
        towards = np.array([np.cos(f) * np.cos(t), np.sin(f) * np.cos(t), np.sin(t)])
        right = np.cross([0.0, 0.0, 1.0], towards)
        right /= np.linalg.norm(right)
        # Columns are the board's axes in the world: x right, y down as the reader sees it, z away from the reader.
        upright = np.column_stack([right, np.cross(-towards, right), -towards])
        rotation = upright @ Rotation.from_rotvec([0.0, 0.0, r]).as_matrix()
        rotations.append(rotation)
        offset = rng.uniform(-1.0, 1.0, 3) * np.array([1.0, 1.0, 0.6]) * reach
        places.append(np.asarray(centre) + offset - rotation @ middle)
    return Wave(frames, CubicSpline(knots, places), RotationSpline(knots, Rotation.from_matrix(np.array(rotations))))


# Eleven parameters: all but three are keywords of the session that is filmed.
def write_session(
    folder: Path | str,
    rig: Rig,
    board: Board,
    wave: Wave,
    options: StudioOptions,
    *,
    scale: float,
    rate_hz: float,
    quality: int = 16,
    floor_frames: int = 3,
    grip: float = 0.5,
    on_progress: Callable[[int, int], None] | None = None,
) -> None:
    """Film the wave and the floor board with the rig's light cameras: one video each, board.toml, truth.h5.

    Args:
        scale: size of the stage, mm (see `build_stage`).
        grip: place of the hand along the board's lower edge, 0 to 1.
    """
    place = Path(folder)
    stage = build_stage(scale, options)
    sheet = BoardSheet(board, 0.4 * board.square_mm)
    lying = floor_pose(board)

    light = [(number, camera) for number, camera in enumerate(rig.cameras) if camera.kind == "light"]
    total, done = len(light) * (wave.frames + floor_frames), 0
    for number, camera in light:
        sensor = Sensor(number, camera.size, options)
        held = FilmedBoard(camera, stage, sheet, grip=grip, samples=3 if options.motion_blur else 6)

        def waved(view: FilmedBoard = held, eye: Sensor = sensor) -> Iterator[Bytes]:
            nonlocal done
            for frame in range(wave.frames):
                # The middle of the exposure first: there the hand and the shadows are drawn.
                shifts = options.motion_blur * BLUR_SHIFTS if options.motion_blur else BLUR_SHIFTS[:1]
                picture = view.picture(*(wave.at(frame + float(shift)) for shift in shifts)).light
                yield eye.expose(picture, frame=frame, frames=wave.frames, rate_hz=rate_hz, take=WAVE_TAKE)
                done += 1
                if on_progress is not None:
                    on_progress(done, total)

        write_video(place / f"{camera.name}.mp4", waved(), rate_hz, quality=quality)
        picture = FilmedBoard(camera, stage, sheet).picture(lying).light
        stills = (
            sensor.expose(picture, frame=frame, frames=floor_frames, rate_hz=rate_hz, take=FLOOR_TAKE)
            for frame in range(floor_frames)
        )
        write_video(place / "floor" / f"{camera.name}.mp4", stills, rate_hz, quality=quality)
        done += floor_frames
    save_boards((replace(board),), place / "board.toml")
    poses = [wave.at(frame) for frame in range(wave.frames)]
    with create_results(place / "truth.h5", stage="simulate", parameters={"rate_hz": rate_hz}) as file:
        group = file.create_group("board")
        group["rotations"] = quaternion_from_rotation(np.stack([pose.rotation for pose in poses]))
        group["rotations"].attrs["order"] = "wxyz, world from board"
        group["translations"] = np.stack([pose.translation for pose in poses])
        group["floor_rotation"] = quaternion_from_rotation(lying.rotation)
        group["floor_translation"] = lying.translation
