"""What is put before an X-ray machine to calibrate it: the perforated plate and the cube of beads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import trimesh

from calibration.foundation.arrays import Floats, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from capture.studio.scene.surfaces import MovingSurface, icosphere
from capture.studio.xray.intensifier import Intensifier
from capture.studio.xray.xray_images import METAL, Beads, Solid

__all__ = ["BeadBox", "GridPlate", "bead_box", "grid_transmission"]

#: Share of the beam that passes the steel of the plate.
STEEL_PASS = 0.04
#: Linear attenuation of acrylic, 1/mm.
ACRYLIC = 0.022


@dataclass(frozen=True)
class GridPlate:
    """A perforated plate on the intensifier's face: holes on a hexagonal lattice, bright on dark.

    Attributes:
        pitch: distance of neighbouring holes, ideal px.
        hole: diameter of a hole, ideal px.
        turn: of the lattice against the image's rows, rad.
        shift: of the lattice's origin from the intensifier's centre, ideal px.
    """

    pitch: float
    hole: float
    turn: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if not 0.0 < self.hole < self.pitch:
            raise InputError(f"grid plate: a hole of {self.hole:g} px does not fit a pitch of {self.pitch:g} px")

    def nodes(self, intensifier: Intensifier) -> Floats:
        """Return the ideal pixels (n, 2) of the holes whose image lies on the intensifier's screen."""
        reach = int(2.0 * intensifier.radius / self.pitch) + 2
        i, j = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
        flat = np.stack([i + 0.5 * j, np.sqrt(0.75) * j], axis=-1).reshape(-1, 2) * self.pitch
        c, s = np.cos(self.turn), np.sin(self.turn)
        points = flat @ np.array([[c, s], [-s, c]]) + intensifier.centre + np.asarray(self.shift)
        seen = np.linalg.norm(intensifier.apply(points) - intensifier.centre, axis=1) < intensifier.radius
        return np.asarray(points[seen])


@compiled
def _holes(
    ideal: Floats, across: Floats, down: Floats, lattice: Floats, radius: float, samples: int, passed: Singles
) -> None:
    """Share (H, W) of each pixel that lies in a hole; ``lattice`` = (pitch, turn, origin x, origin y)."""
    pitch, turn = lattice[0], lattice[1]
    c, s = np.cos(turn), np.sin(turn)
    half = np.sqrt(0.75)
    for row in range(passed.shape[0]):
        for column in range(passed.shape[1]):
            count = 0
            for a in range(samples):
                for b in range(samples):
                    du, dv = (a + 0.5) / samples - 0.5, (b + 0.5) / samples - 0.5
                    x = ideal[row, column, 0] + du * across[row, column, 0] + dv * down[row, column, 0] - lattice[2]
                    y = ideal[row, column, 1] + du * across[row, column, 1] + dv * down[row, column, 1] - lattice[3]
                    u, v = (c * x + s * y) / pitch, (-s * x + c * y) / pitch
                    # the two lattice rows around v hold the nearest node
                    least = 1e9
                    for j in (np.floor(v / half), np.floor(v / half) + 1.0):
                        du_row = u - 0.5 * j
                        dx = du_row - np.rint(du_row)
                        dy = v - half * j
                        least = min(least, dx * dx + dy * dy)
                    if least * pitch * pitch < radius * radius:
                        count += 1
            passed[row, column] = count / (samples * samples)


def grid_transmission(intensifier: Intensifier, plate: GridPlate) -> Singles:
    """Return the share (H, W) of the beam behind the plate, as the intensifier shows it."""
    width, height = intensifier.size
    x, y = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    ideal = intensifier.remove(np.stack([x, y], axis=-1))
    down = np.asarray(np.gradient(ideal, axis=0, edge_order=2))
    across = np.asarray(np.gradient(ideal, axis=1, edge_order=2))
    origin = intensifier.centre + np.asarray(plate.shift)
    passed = np.zeros((height, width), dtype=np.float32)
    _holes(ideal, across, down, np.array([plate.pitch, plate.turn, *origin]), 0.5 * plate.hole, 6, passed)
    return np.asarray(STEEL_PASS + (1.0 - STEEL_PASS) * passed, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class BeadBox:
    """A calibration cube: an acrylic box with steel beads at known places.

    Attributes:
        names: of the beads.
        points: (n, 3) in the cube's frame, mm.
        radius: of the beads, mm.
        side: (3,) of the box, mm; the middle of its base is the frame's origin, z up.
    """

    names: tuple[str, ...]
    points: Floats
    radius: float
    side: Floats

    def beads(self, world_from_cube: RigidTransform) -> Beads:
        """Return the beads as metal spheres in the world."""
        return Beads(world_from_cube.apply(self.points), np.full(len(self.points), self.radius), METAL)

    def acrylic(self, world_from_cube: RigidTransform, wall: float = 4.0) -> list[Solid]:
        """Return the box's walls as solids (outer minus inner)."""
        solids = []
        for side, sign in ((self.side, 1.0), (self.side - 2.0 * wall, -1.0)):
            box = trimesh.creation.box(extents=side)
            vertices = world_from_cube.apply(np.asarray(box.vertices) + np.array([0.0, 0.0, 0.5 * self.side[2]]))
            solids.append(Solid(vertices, np.asarray(box.faces, dtype=np.int64), sign * ACRYLIC))
        return solids

    def surface(self, world_from_cube: RigidTransform) -> MovingSurface:
        """Return the beads as dark balls, for light cameras; the acrylic is invisible."""
        vertices, faces = [], []
        ball, triangles = icosphere(self.radius, subdivisions=2)
        for number, centre in enumerate(world_from_cube.apply(self.points)):
            vertices.append(ball + centre)
            faces.append(triangles + number * len(ball))
        return MovingSurface.still(np.concatenate(vertices), np.concatenate(faces), reflectance=0.05)


def bead_box(side: float, *, count: int, radius: float, seed: int) -> BeadBox:
    """Place ``count`` beads in the walls of a cube of ``side`` mm, irregularly, so that no turned view looks alike.

    No two are nearer than a seventh of the side.
    """
    rng = np.random.default_rng([seed, 611])
    margin = 0.06 * side
    found: list[Floats] = []
    while len(found) < count:
        wall = int(rng.integers(0, 6))
        point = rng.uniform(margin, side - margin, 3)
        point[wall % 3] = 0.02 * side if wall < 3 else 0.98 * side
        point = np.round(point, 2)
        if all(np.linalg.norm(point - other) > side / 7.0 for other in found):
            found.append(point)
    ordered = sorted(found, key=lambda p: (p[2], p[1], p[0]))
    names = tuple(f"bead{number:02d}" for number in range(1, count + 1))
    base = np.array([0.5 * side, 0.5 * side, 0.0])
    return BeadBox(names, np.array(ordered) - base, radius, np.full(3, side))
