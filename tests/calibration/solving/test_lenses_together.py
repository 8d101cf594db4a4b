"""Lenses that no camera alone would bear, from what others see of the same boards."""

from __future__ import annotations

import numpy as np
from board_scenes import scene

from calibration.accuracy.measures import held_out_frames, measure
from calibration.solving.rig_solver import SolveOptions, solve_rig


def test_a_short_session_gets_its_principal_points() -> None:
    """32 frames of 4 cameras: held-out corners nearly as with the true rig; each lens alone leaves 15 % more."""
    short = scene(2, cameras=4, frames=40)
    held = np.isin(short.sightings.frame, held_out_frames(short.sightings))
    train, test = short.sightings.where(~held), short.sightings.where(held)
    solution = solve_rig(train, SolveOptions(clocks="off"))
    assert any("together bear richer lenses" in note for note in solution.notes)
    assert all(freedom.centre for freedom in solution.freedoms)
    assert measure(solution.rig, test).rms_px < 1.08 * measure(short.rig, test).rms_px


def test_what_is_given_or_too_short_stays() -> None:
    few = scene(3, cameras=3, frames=16)
    assert not any("together" in note for note in solve_rig(few.sightings, SolveOptions(clocks="off")).notes)
    plain = solve_rig(scene(2, cameras=4, frames=40).sightings, SolveOptions(clocks="off", distortion="radial1"))
    assert {freedom.distortion for freedom in plain.freedoms} == {"radial1"}
