"""How a rodent holds itself: what the outlines of a round body do not tell, gravity and the neck do.

Rodents hold the head level: its roll stays small whatever the body does, and the eyes turn against what is left
(Wallace et al. 2013; Meyer, O'Keefe, Poort 2020). A back that faces the ground, or a head turned further than a neck
turns, is not a posture but a wrong fit: a nose in the place of an ear overlaps as well as the right one.

The trunk's left and right are level too, whether the animal walks, sits, grooms or rears: over two published motions of
a mouse and a rat (34 and 23 points) the line between the hips is inclined by 3.3 and 1.7 degrees, that between the
shoulders by 4.8 and 2.1, that between the ears by 4.8 and 8.8 (root mean square); shoulders are twisted against hips
by 6.5 and 10.7 degrees, ears against shoulders by 9.6 and 7.2; and the head is pitched from where the built-in bodies
hold it by -14 +- 18 (the mouse) and +27 +- 16. This holds the fit, as do the feet (`stance`). Outlines of a body that
is not quite the template err together (`COMMON`) and would outvote it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from tracking.fitting.stance import Stance, stance_of
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.terms.energy import System, add_row

__all__ = ["Posture", "posture_of"]

LEVEL, UPRIGHT = 0.5, 0.2
"""Cosine of the roll of head and of trunk from which on it is strained."""
NECK = 1.5
"""Turn of the head against the chest from which on it is strained, rad; training poses go to 1.45."""
SWAY, NOD, TWIST = 0.06, 0.12, 0.1
"""Inclination of the trunk's left and right against the horizon, 1 sigma, rad; of the head's; and twist between
neighbours along the spine."""
PITCH = 0.45
"""Pitch of the head, 1 sigma, rad: much wider, for they look up and down."""
LEVELLED = {"lumbar": SWAY, "back": SWAY, "thorax": SWAY, "head": NOD}
CURLED = 0.79
"""Turn of the neck against the pelvis about the vertical from which on the animal is curled up, rad: 45 degrees."""
LYING = 0.5
"""Sine of an inclination that counts a quarter: an animal may lie on its side."""
COST = 0.03
"""Overlap that makes up for one unit of strain: the whole turn of a head changes the overlap by 0.02 at most."""


@dataclass(frozen=True, eq=False)
class Posture:
    """What is known of a rig's posture.

    Attributes:
        head, neck, chest, trunk: quads.
        rest: (Q, 3, 3) their rotations at rest, where the body stands upright along x.
        up: (3,) vertical, world axes.
        level: quads of the spine whose left and right are level. sway: (n,) how far they are inclined, 1 sigma, rad.
        twisted: neighbours along the spine.
        skull: quads that turn with the head.
        stance: of the hind feet.
    """

    head: int
    neck: int
    chest: int
    trunk: int
    rest: Floats
    up: Floats
    level: tuple[int, ...]
    sway: Floats
    twisted: tuple[tuple[int, int], ...]
    stance: Stance | None
    skull: tuple[int, ...]

    @property
    def spine(self) -> tuple[int, ...]:
        """Quads of the trunk along the spine, hind end first."""
        return tuple(quad for quad in self.level if quad != self.head)

    def axes(self, pose: QuadPose, quad: int) -> Floats:
        """(3, 3) where ahead, left and up of the body at rest point in a quad: columns."""
        return np.asarray(pose.rotations[quad] @ self.rest[quad].T)

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

    def hind_feet_away(self, pose: QuadPose) -> Floats:
        """(2,) how far the hind feet are from where they stand, in sigmas; infinite where the animal is curled up.

        A neck turned far against the pelvis goes with a trunk that curls more than the template's: which way the hind
        end of it faces is not known then.
        """
        assert self.stance is not None
        pelvis, neck = (self._axes(pose, (quad,))[0, :, 1] for quad in (self.trunk, self.neck))
        turned = np.arctan2(self.up @ np.cross(pelvis, neck), pelvis @ neck - (pelvis @ self.up) * (neck @ self.up))
        return np.where(abs(turned) < CURLED, self.stance.away(pose), np.inf)

    def inclination(self, pose: QuadPose) -> Floats:
        """Sine (n,) of the inclination of the spine's quads."""
        return np.asarray(self._axes(pose, self.level)[:, :, 1] @ self.up)

    def add_to(self, system: System, pose: QuadPose, erring: float) -> None:
        """Hold left and right of the spine level, the head too, the spine untwisted and the hind feet under it.

        ``erring`` is by how much outlines err together, beyond what the energy takes for one sample. Good ones show
        where feet are, but hardly ever how a round trunk is rolled: of that gravity has a say at least.
        """
        _hold(
            np.ascontiguousarray(pose.rotations),
            self.rest,
            self.up,
            np.array(self.level, np.int64),
            self.sway,
            self.head,
            np.array(self.twisted, np.int64).reshape(-1, 2),
            max(erring, 1.0),
            system.hessian,
            system.gradient,
        )
        if self.stance is not None:
            self.stance.add_to(system, pose, erring)

    def _axes(self, pose: QuadPose, quads: tuple[int, ...]) -> Floats:
        """(n, 3, 3) where ahead, left and up of the body at rest point in some quads: columns."""
        which = list(quads)
        return np.asarray(pose.rotations[which] @ self.rest[which].transpose(0, 2, 1))

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
    spine = [names.index(name) for name in ("lumbar", "back", "thorax", "neck", "head") if name in names]
    sway = {names.index(name): size for name, size in LEVELLED.items() if name in names}
    feet = {f"{side}_{part}" for side in ("left", "right") for part in ("hip", "shoulder", "foot", "toe")}
    return Posture(
        names.index("head"),
        names.index("neck" if "neck" in names else "head"),
        names.index("thorax"),
        names.index("lumbar"),
        np.array(rig.rotations),  # a copy: arrays that may not be written to are compiled for once more
        vertical,
        tuple(sway),
        np.array(list(sway.values())),
        tuple(pairwise(spine)),
        stance_of(rig, vertical) if feet <= set(names) else None,
        tuple(names.index(name) for name in ("head", "nose") if name in names),
    )


@compiled
def _hold(
    rotations: Floats,
    rest: Floats,
    up: Floats,
    level: Ints,
    sway: Floats,
    head: int,
    twisted: Ints,
    say: float,
    hessian: Floats,
    gradient: Floats,
) -> None:
    """Add what `Posture.add_to` holds but for the feet."""
    row, columns = np.empty(6), np.empty(6, np.int64)
    for k in range(len(level)):
        # An axis a turned by w moves by w x a, upwards by w . (a x up).
        across = rotations[level[k]] @ np.ascontiguousarray(rest[level[k], 1])
        sine = np.dot(across, up)
        root = say / ((1.0 + (sine / LYING) ** 2) * sway[k])
        _cross_into(root, across, up, row[:3])
        columns[:3] = 6 * level[k] + np.arange(3)
        add_row(columns[:3], row[:3], root * sine, hessian, gradient)
    ahead = rotations[head] @ np.ascontiguousarray(rest[head, 0])
    sine = np.dot(ahead, up)
    root = say / ((1.0 + (sine / LYING) ** 2) * PITCH)
    _cross_into(root, ahead, up, row[:3])
    columns[:3] = 6 * head + np.arange(3)
    add_row(columns[:3], row[:3], root * sine, hessian, gradient)
    other = np.empty(3)
    for k in range(len(twisted)):
        first, second = twisted[k, 0], twisted[k, 1]
        here_left = rotations[first] @ np.ascontiguousarray(rest[first, 1])
        here_up = rotations[first] @ np.ascontiguousarray(rest[first, 2])
        there_left = rotations[second] @ np.ascontiguousarray(rest[second, 1])
        there_up = rotations[second] @ np.ascontiguousarray(rest[second, 2])
        sine = 0.5 * (np.dot(there_left, here_up) - np.dot(here_left, there_up))
        root = say / ((1.0 + (sine / LYING) ** 2) * TWIST)
        _cross_into(0.5 * root, there_left, here_up, row[:3])
        _cross_into(0.5 * root, here_left, there_up, other)
        for i in range(3):
            row[i] += other[i]
            row[3 + i] = -row[i]
            columns[i], columns[3 + i] = 6 * second + i, 6 * first + i
        add_row(columns, row, root * sine, hessian, gradient)


@compiled
def _cross_into(scale: float, a: Floats, b: Floats, out: Floats) -> None:
    """Write the scaled product a x b."""
    out[0] = scale * (a[1] * b[2] - a[2] * b[1])
    out[1] = scale * (a[2] * b[0] - a[0] * b[2])
    out[2] = scale * (a[0] * b[1] - a[1] * b[0])
