"""Whether the roll of a rodent's trunk about its long axis and the pitch of its head are told: by outlines, or gravity.

Outlines of a trunk that is nearly round hardly change when it rolls; over what the template errs by they may even
prefer a roll that is wrong. Those of a head before the chest hardly change when it nods. So both are turned in place,
both ways, and compared with themselves: by overlap, less what an animal pays for leaning over or looking up. Where the
spine stands upright, gravity does not tell its roll either, and only outlines are left.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.posture import COST, Posture
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose

__all__ = ["nodded", "pitch_lead", "roll_lead", "rolled"]

TURNS = (0.35, 0.7, 1.05, -0.35, -0.7, -1.05)
"""How far a trunk is rolled, rad."""
NODS = (0.7, 1.05, -0.7, -1.05)
"""How far a head is nodded, rad: one that nods by less moves its nose by less than a tenth of the body, and what the
template errs by tells no more (right heads of five recordings lead by 0.026 and more, a wrong one by 0.008)."""


def roll_lead(solver: FrameSolver, posture: Posture, observation: Observation, fit: FrameFit) -> float:
    """By how much a fit beats itself with the trunk rolled about its long axis, in units of overlap.

    Near 0, or below: the roll is not known, or a better one is.
    """
    poses = [fit.pose, *(rolled(posture, fit.pose, angle) for angle in TURNS)]
    overlaps = solver.overlaps(observation, poses)
    scores = [overlap - _leaning(posture, pose) for overlap, pose in zip(overlaps, poses, strict=True)]
    return scores[0] - max(scores[1:])


def pitch_lead(solver: FrameSolver, posture: Posture, observation: Observation, fit: FrameFit) -> float:
    """The same for the head, nodded about its left and right."""
    poses = [fit.pose, *(nodded(posture, fit.pose, angle) for angle in NODS)]
    overlaps = solver.overlaps(observation, poses)
    scores = [overlap - _looking(posture, pose) for overlap, pose in zip(overlaps, poses, strict=True)]
    return scores[0] - max(scores[1:])


def rolled(posture: Posture, pose: QuadPose, angle: float) -> QuadPose:
    """Return a pose with the trunk's quads rolled about the line from its hind end to the chest."""
    quads = list(posture.spine)
    axis: Floats = pose.centres[posture.chest] - pose.centres[posture.trunk]
    return _turned(pose, quads, axis, pose.centres[quads].mean(axis=0), angle)


def nodded(posture: Posture, pose: QuadPose, angle: float) -> QuadPose:
    """Return a pose with the head nodded about its left and right, downwards if positive."""
    return _turned(pose, list(posture.skull), posture.axes(pose, posture.head)[:, 1], pose.centres[posture.head], angle)


def _turned(pose: QuadPose, quads: list[int], axis: Floats, about: Floats, angle: float) -> QuadPose:
    turn = rotation_from_vector(angle * axis / max(float(np.linalg.norm(axis)), 1e-9))
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[quads] = turn @ rotations[quads]
    centres[quads] = about + (centres[quads] - about) @ turn.T
    return QuadPose(rotations, centres)


def _leaning(posture: Posture, pose: QuadPose) -> float:
    """What leaning over costs, in units of overlap."""
    return COST * float(np.abs(posture.inclination(pose)[: len(posture.spine)]).mean())


def _looking(posture: Posture, pose: QuadPose) -> float:
    """What looking up or down costs, in units of overlap."""
    return COST * abs(float(posture.axes(pose, posture.head)[:, 0] @ posture.up))
