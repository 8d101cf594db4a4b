"""Where a rodent's hind feet are when no outline tells: under it, on the floor.

A sitting mouse covers its feet, and silhouettes lack what is as pale as the floor. But the hind feet carry it, whether
it walks, sits, grooms or rears. Over two published motions, a mouse's (34 points) and a rat's (23), the balls of the
feet stand ahead of the middle of the hips by 0.24 and 0.36 of the distance from hips to shoulders, with a spread of
0.17 and 0.1, and to either side by 0.39 and 0.30, with a spread of 0.06 and 0.06, seen from above; knees are there too.
The ball lies between the quads of foot and toes. Where the floor is, the rig says: z = 0. A foot that is far from it,
in a world with another origin say, is not held to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.transforms import cross_matrix
from tracking.quads.oriented_quads import QuadPose, QuadRig
from tracking.terms.energy import System, add_row

__all__ = ["Stance", "stance_of"]

AHEAD, BESIDE = 0.24, 0.35
"""Where the ball of a hind foot stands seen from the middle of the hips, shares of the trunk's length."""
ALONG, ACROSS = 0.15, 0.07
"""How far from there, 1 sigma."""
SOLE, HEIGHT = 0.08, 0.07
"""Height of a foot's middle over its sole, as in the built-in bodies at rest; and 1 sigma of where the sole is: the
floor of a rig is known to some millimetres."""
FAR = 5.0
"""Sigmas at which the pull is a quarter: a foot may be lifted, stretched out, or up a wall."""


@dataclass(frozen=True, eq=False)
class Stance:
    """What is known of where the hind feet stand.

    Attributes:
        trunk: quad whose left and right are the pelvis's. hips: left and right.
        feet: quads of both feet, left first. toes: of their toes.
        length: of the trunk, mm.
        left: (3,) the body's left in the trunk's quad. up: (3,) vertical, world axes.
    """

    trunk: int
    hips: tuple[int, int]
    feet: tuple[int, int]
    toes: tuple[int, int]
    length: float
    left: Floats
    up: Floats

    def add_to(self, system: System, pose: QuadPose, erring: float) -> None:
        """Hold the feet softly under the body, and on the floor."""
        _stand(
            np.ascontiguousarray(pose.rotations[self.trunk]),
            np.ascontiguousarray(pose.centres),
            self.left,
            self.up,
            np.array([*self.hips, *self.feet, *self.toes, self.trunk], np.int64),
            self.length,
            erring,
            system.hessian,
            system.gradient,
        )

    def away(self, pose: QuadPose) -> Floats:
        """(2,) how far each foot is from where it stands, in sigmas."""
        across, ahead = self._axes(pose)
        middle = pose.centres[list(self.hips)].mean(axis=0)
        balls = 0.5 * (pose.centres[list(self.feet)] + pose.centres[list(self.toes)])
        away = (balls - middle) / self.length
        sole = pose.centres[list(self.feet)] @ self.up / self.length
        along, beside = away @ ahead - AHEAD, away @ across - BESIDE * np.array([1.0, -1.0])
        return np.asarray(np.sqrt((along / ALONG) ** 2 + (beside / ACROSS) ** 2 + ((sole - SOLE) / HEIGHT) ** 2))

    def _axes(self, pose: QuadPose) -> tuple[Floats, Floats]:
        """Level directions to the left and ahead."""
        across = pose.rotations[self.trunk] @ self.left
        across = across - (across @ self.up) * self.up
        across = across / max(float(np.linalg.norm(across)), 1e-9)
        return across, across @ cross_matrix(self.up)


@compiled
def _stand(
    trunk: Floats,
    centres: Floats,
    left: Floats,
    up: Floats,
    quads: Ints,
    length: float,
    erring: float,
    hessian: Floats,
    gradient: Floats,
) -> None:
    """Add what `Stance.add_to` holds; ``quads`` are both hips, feet and toes, and the trunk."""
    across = trunk @ left
    across -= np.dot(across, up) * up
    across /= max(np.sqrt(np.dot(across, across)), 1e-9)
    ahead = np.cross(across, up)
    middle = 0.5 * (centres[quads[0]] + centres[quads[1]])
    rows, residual = np.empty((2, 15)), np.empty(2)
    columns = np.empty(15, np.int64)
    for k in range(2):
        foot, toe, side = quads[2 + k], quads[4 + k], 1.0 - 2.0 * k
        offset = length * (AHEAD * ahead + side * BESIDE * across)
        away = 0.5 * (centres[foot] + centres[toe]) - middle - offset
        # The place goes with the hips, and turns with the trunk about the vertical.
        swung = np.cross(up, offset)
        for m in range(2):
            row = erring * (ahead / ALONG if m == 0 else across / ACROSS) / length
            residual[m] = np.dot(row, away)
            rows[m, :3], rows[m, 3:6], rows[m, 6:9], rows[m, 9:12] = -0.5 * row, -0.5 * row, 0.5 * row, 0.5 * row
            rows[m, 12:] = -np.dot(row, swung) * up
        for i in range(3):
            columns[i], columns[3 + i] = 6 * quads[0] + 3 + i, 6 * quads[1] + 3 + i
            columns[6 + i], columns[9 + i], columns[12 + i] = 6 * foot + 3 + i, 6 * toe + 3 + i, 6 * quads[6] + i
        root = 1.0 / (1.0 + np.dot(residual, residual) / (erring * FAR) ** 2)
        for m in range(2):
            add_row(columns, root * rows[m], root * residual[m], hessian, gradient)
        upwards = erring * up / (HEIGHT * length)
        above = np.dot(upwards, centres[foot] - SOLE * length * up)
        root = 1.0 / (1.0 + above * above / (erring * FAR) ** 2)
        add_row(columns[6:9], root * upwards, root * above, hessian, gradient)


def stance_of(rig: QuadRig, up: Floats) -> Stance:
    """Return what is known of a rodent's hind feet."""
    at = rig.quad_names.index
    hips, feet, toes = (tuple(at(f"{side}_{part}") for side in ("left", "right")) for part in ("hip", "foot", "toe"))
    shoulders = [at("left_shoulder"), at("right_shoulder")]
    length = float(np.linalg.norm(rig.centres[shoulders].mean(axis=0) - rig.centres[list(hips)].mean(axis=0)))
    trunk = at("lumbar")
    left = rig.rotations[trunk].T @ np.array([0.0, 1.0, 0.0])
    return Stance(trunk, hips, feet, toes, length, left, up)  # type: ignore[arg-type]
