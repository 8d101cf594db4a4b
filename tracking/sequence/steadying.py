"""The last step of a track: all frames at once, pulled to their neighbours and to the marks that they share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_vector, vector_from_rotation
from tracking.fitting.joint_fit import joint_step
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.observations.feature_tracks import FeatureTracks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.steadiness import steadiness
from tracking.terms.texture import bind_tracks

__all__ = ["steady"]


def steady(
    solver: FrameSolver,
    centres: Floats,
    observe: Callable[[int], Observation],
    fits: list[FrameFit | None],
    texture: FeatureTracks,
    settings: TrackerSettings,
) -> None:
    """Pull all frames to the middle of their neighbours, as strongly as the sequence tells, and to common marks.

    Where fits err by more than their energy knows, a second step brings as much again. ``centres`` (C, 3) are the
    cameras', ``fits`` are changed.
    """
    told = steadiness(fits, _bends(fits))
    pull = np.repeat([settings.smooth_turn, settings.smooth_shift * solver.unit], 3)
    pull = np.tile(pull, len(solver.cage_rig.quads)) if told is None else told.pull
    sweeps = settings.smooth_sweeps * (2 if told is not None and told.noisy else 1)
    for _ in range(max(sweeps, min(len(texture), 1))):
        _join(
            solver,
            centres,
            observe,
            fits,
            texture,
            settings,
            pull**-2.0 if settings.smooth_sweeps else np.zeros(len(pull)),
        )


def _join(
    solver: FrameSolver,
    centres: Floats,
    observe: Callable[[int], Observation],
    fits: list[FrameFit | None],
    texture: FeatureTracks,
    settings: TrackerSettings,
    weight: Floats,
) -> None:
    """Step all frames at once, with the marks that they see in common and a pull to their neighbours' middle."""
    known = [(frame, fit) for frame, fit in enumerate(fits) if fit is not None]

    def surface(frame: int) -> Floats | None:
        fit = fits[frame]
        return None if fit is None else solver.deform(fit.pose)

    marks = bind_tracks(
        texture, solver.template, surface, solver.camera_rows, centres, gate=settings.mark_gate * solver.unit
    )
    blocks, told, bends = [], [], _bends(fits)
    for frame, fit in known:
        block, described = solver.block(observe(frame), fit, marks.at(frame), bends[frame])
        blocks.append(block)
        told.append(described)
    steps = joint_step(blocks, marks.held(settings.mark_hold * solver.unit, settings.mark_lift * solver.unit), weight)
    for (frame, fit), start, step in zip(known, told, steps, strict=True):
        trial = solver.stepped(observe(frame), start, step)
        if trial.agreement > fit.agreement - 0.01:
            fits[frame] = trial


def _bends(fits: list[FrameFit | None]) -> list[Floats | None]:
    """(6 Q,) how far each frame lies from the middle of those beside it, rad and mm; None where one is missing."""
    bends: list[Floats | None] = [None] * len(fits)
    there = np.array([fit is not None for fit in fits])
    inner = 1 + np.flatnonzero(there[:-2] & there[1:-1] & there[2:])
    if len(inner):
        before, here, after = (_poses(fits, inner + k) for k in (-1, 0, 1))
        for frame, bend in zip(inner, _away(here, _middle(before, after)), strict=True):
            bends[frame] = bend
    return bends


def _poses(fits: list[FrameFit | None], frames: Ints) -> QuadPose:
    """Where the quads are in frames (T,) that are all known."""
    poses = [fit.pose for frame in frames if (fit := fits[frame]) is not None]
    return QuadPose(np.array([pose.rotations for pose in poses]), np.array([pose.centres for pose in poses]))


def _away(pose: QuadPose, other: QuadPose) -> Floats:
    """(T, 6 Q) turn, rad, and shift, mm, from other poses to these."""
    turn = vector_from_rotation(pose.rotations @ other.rotations.swapaxes(-1, -2))
    return np.concatenate([turn, pose.centres - other.centres], axis=-1).reshape(len(turn), -1)


def _middle(first: QuadPose, second: QuadPose) -> QuadPose:
    half = 0.5 * vector_from_rotation(second.rotations @ first.rotations.swapaxes(-1, -2))
    return QuadPose(rotation_from_vector(half) @ first.rotations, 0.5 * (first.centres + second.centres))
