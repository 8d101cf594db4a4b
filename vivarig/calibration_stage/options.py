"""How a session is calibrated: the options of `vivarig calibrate` as one typed thing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from calibration.foundation.errors import InputError

__all__ = ["CalibrateOptions", "WorldOptions"]


@dataclass(frozen=True)
class WorldOptions:
    """Where the world's axes come from; none: the frame of the first camera.

    Attributes:
        floor_frame: frame in which the board lies on the floor.
        floor_board: which of several boards lies there.
        points: points.toml with marked points, known places, distances.
        axes: names of three marked points: origin, on x, on the y side.
        below: cameras that film through the floor on purpose.
    """

    floor_frame: int | None = None
    floor_board: str | None = None
    points: Path | None = None
    axes: tuple[str, ...] = ()
    below: tuple[str, ...] = ()


@dataclass(frozen=True)
class CalibrateOptions:
    """How a session of board footage is calibrated.

    Attributes:
        board: board description; None: SESSION/board.toml.
        output: where results go; None: SESSION/results.
        cameras: use these only; none: all.
        lens: "auto", "pinhole" or "fisheye".
        distortion: terms to solve for: "auto" or one of `calibration.bundle.parameters.DISTORTIONS`.
        intrinsics: file of known lenses.
        refine_intrinsics: whether to free the known lenses.
        board_shape: whether the board's corners may move.
        clocks: whether to estimate camera time offsets: "auto", "on" or "off".
        largest_part: whether to solve the largest part if cameras do not connect.
        frames: calibrate from so many frames at most.
        step: look at every how many frames.
        trim: whether videos start together but end differently.
        workers: images searched at once.
        world: where the world's axes come from.
    """

    board: Path | None = None
    output: Path | None = None
    cameras: tuple[str, ...] = ()
    lens: Literal["auto", "pinhole", "fisheye"] = "auto"
    distortion: str = "auto"
    intrinsics: Path | None = None
    refine_intrinsics: bool = False
    board_shape: bool = False
    clocks: Literal["auto", "on", "off"] = "auto"
    largest_part: bool = False
    frames: int = 200
    step: int = 1
    trim: bool = False
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)
    world: WorldOptions = WorldOptions()

    def __post_init__(self) -> None:
        """Refuse numbers that can mean nothing."""
        if self.frames < 3 or self.step < 1 or self.workers < 1:
            raise InputError("--frames must be 3 or more, --step and --workers 1 or more")
