"""How a rodent holds itself: what the outlines of a round body do not tell, gravity and the neck do.

Rodents hold the head level: its roll stays small whatever the body does, and the eyes turn against what is left
(Wallace et al. 2013; Meyer, O'Keefe, Poort 2020). A back that faces the ground, or a head turned further than a neck
turns, is not a posture but a wrong fit: a nose in the place of an ear overlaps as well as the right one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = ["Posture", "posture_of"]

LEVEL, UPRIGHT = 0.5, 0.2
"""Cosine of the roll of head and of trunk from which on it is strained."""
NECK = 1.5
"""Turn of the head against the chest from which on it is strained, rad; training poses go to 1.45."""
COST = 0.03
"""Overlap that makes up for one unit of strain: the whole turn of a head changes the overlap by 0.02 at most."""


@dataclass(frozen=True, eq=False)
class Posture:
    """What is known of a rig's posture.

    Attributes:
        head, chest, trunk: quads.
        rest: (Q, 3, 3) their rotations at rest, where the body stands upright along x.
        up: (3,) vertical, world axes.
    """

    head: int
    chest: int
    trunk: int
    rest: Floats
    up: Floats

    def strain(self, head: Floats, chest: Floats, trunk: Floats) -> Floats:
        """Strain (...) of rotations (..., 3, 3) of head, chest and trunk quads, in units of overlap."""
        turns = [
            rotation @ self.rest[quad].T
            for quad, rotation in ((self.head, head), (self.chest, chest), (self.trunk, trunk))
        ]
        rolled = self._rolled(turns[0], LEVEL) + self._rolled(turns[2], UPRIGHT)
        cosine = 0.5 * (np.einsum("...ji,...ji->...", turns[1], turns[0]) - 1.0)
        neck = np.maximum(np.arccos(np.clip(cosine, -1.0, 1.0)) - NECK, 0.0)
        return np.asarray(COST * (rolled + neck))

    def of(self, pose: QuadPose) -> float:
        """Strain of a pose."""
        rotations = pose.rotations
        return float(self.strain(rotations[self.head], rotations[self.chest], rotations[self.trunk]))

    def _rolled(self, turn: Floats, limit: float) -> Floats:
        """How far a part is rolled beyond a limit, as far as it lies level; 0 where it points up or down."""
        ahead, back = turn[..., 0] @ self.up, turn[..., 2] @ self.up
        level = np.sqrt(np.maximum(1.0 - ahead**2, 0.0))
        return np.asarray(np.maximum(limit * level - back, 0.0))


def posture_of(rig: QuadRig, up: Floats | None = None) -> Posture | None:
    """Return what is known of a rodent's posture; None for people, whose heads are not their riddle."""
    names = rig.quad_names
    if not {"head", "thorax", "lumbar", "tail_base"} <= set(names):
        return None
    vertical = np.array([0.0, 0.0, 1.0]) if up is None else np.asarray(up, float)
    return Posture(names.index("head"), names.index("thorax"), names.index("lumbar"), rig.rotations, vertical)
