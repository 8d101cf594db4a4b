"""Whether the roll of a rodent's trunk about its long axis is known: by its outlines, or by gravity.

Outlines of a trunk that is nearly round hardly change when it rolls; over what the template errs by they may even
prefer a roll that is wrong. So the trunk is rolled both ways and compared: by overlap, less what an animal pays for
leaning over. Where the spine stands upright, gravity does not tell either, and only outlines are left.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.posture import COST, Posture
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose

__all__ = ["roll_lead", "rolled"]

ROLLS = (0.35, 0.7, 1.05)
"""How far the trunk is rolled, either way, rad."""


def roll_lead(solver: FrameSolver, observation: Observation, fit: FrameFit) -> float:
    """By how much a fit beats itself with the trunk rolled about its long axis, in units of overlap; NaN for people.

    Near 0, or below: the roll is not known, or a better one is.
    """
    posture = solver.posture
    if posture is None:
        return float("nan")
    here = fit.agreement - _leaning(posture, fit.pose)
    rivals = []
    for angle in (*ROLLS, *(-angle for angle in ROLLS)):
        pose = rolled(posture, fit.pose, angle)
        overlap = solver.overlap(observation, pose)
        rivals.append(float(np.nanmean(overlap)) - _leaning(posture, pose))
    return here - max(rivals)


def rolled(posture: Posture, pose: QuadPose, angle: float) -> QuadPose:
    """Return a pose with the trunk's quads rolled about the line from its hind end to the chest."""
    quads = list(posture.spine)
    axis: Floats = pose.centres[posture.chest] - pose.centres[posture.trunk]
    turn = rotation_from_vector(angle * axis / max(float(np.linalg.norm(axis)), 1e-9))
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[quads] = turn @ rotations[quads]
    middle = centres[quads].mean(axis=0)
    centres[quads] = middle + (centres[quads] - middle) @ turn.T
    return QuadPose(rotations, centres)


def _leaning(posture: Posture, pose: QuadPose) -> float:
    """What leaning over costs, in units of overlap."""
    return COST * float(np.abs(posture.inclination(pose)[: len(posture.spine)]).mean())
