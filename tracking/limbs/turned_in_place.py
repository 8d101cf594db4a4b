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

__all__ = ["nodded", "rolled", "turned_leads"]

TURNS = (0.35, 0.7, 1.05, -0.35, -0.7, -1.05)
"""How far a trunk is rolled, rad."""
NODS = (0.7, 1.05, -0.7, -1.05)
"""How far a head is nodded, rad: one that nods by less moves its nose by less than a tenth of the body, and what the
template errs by tells no more (right heads of five recordings lead by 0.026 and more, a wrong one by 0.008)."""


def turned_leads(solver: FrameSolver, posture: Posture, observation: Observation, fit: FrameFit) -> tuple[float, float]:
    """By how much a fit beats itself with the trunk rolled about its long axis, and with the head nodded, in overlap.

    Near 0, or below: the roll, or the nod, is not known, or a better one is.
    """
    rolls = [rolled(posture, fit.pose, angle) for angle in TURNS]
    nods = [nodded(posture, fit.pose, angle) for angle in NODS]
    here, *turned = solver.overlaps(observation, [fit.pose, *rolls, *nods])
    by_roll = [overlap - _leaning(posture, pose) for overlap, pose in zip(turned[: len(rolls)], rolls, strict=True)]
    by_nod = [overlap - _looking(posture, pose) for overlap, pose in zip(turned[len(rolls) :], nods, strict=True)]
    roll = here - _leaning(posture, fit.pose) - max(by_roll)
    return roll, here - _looking(posture, fit.pose) - max(by_nod)


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
