"""A cage that can be built from quads that cannot: those in the way are turned outwards, moved out and drawn in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from tracking.own_bodies.quad_layout import Layout, shrunk, turned
from tracking.quads.cage import Cage, build_cage, crossing_faces, hull_faults
from tracking.quads.oriented_quads import QuadRig, Region

__all__ = ["CageFailure", "Caged", "caged", "laid_and_caged"]

ROUNDS = 60
TINY = 0.4
"""A spare quad that has to be drawn in to less than this share is left out."""
LEAST = 0.12
"""Share of its first size below which no quad is drawn in."""


@dataclass(frozen=True, eq=False)
class Caged:
    """Quads with their cage.

    Attributes:
        rig: the quads, drawn in where that was needed.
        cage: their cage.
        drawn: (Q,) share of its first size that each quad has left.
    """

    rig: QuadRig
    cage: Cage
    drawn: Floats


class CageFailure(InputError):
    """No cage can be built; which quads are in the way, and the quads as they are then."""

    def __init__(self, message: str, rig: QuadRig, quads: Ints) -> None:
        super().__init__(message)
        self.rig, self.quads = rig, quads


def laid_and_caged(lay: Callable[[frozenset[str]], Layout]) -> tuple[Layout, Caged]:
    """Lay quads out and build their cage, without spare quads that come to nothing or are in the way of others.

    Args:
        lay: lays the quads out, without those named.

    Raises:
        CageFailure: no cage can be built.
    """
    without: frozenset[str] = frozenset()
    while True:
        layout = lay(without)
        spare = {spot.name for spot in layout.spots if spot.spare}
        try:
            found = caged(layout)
        except CageFailure as failure:
            trouble = spare & {failure.rig.quad_names[quad] for quad in failure.quads} or spare
            if not trouble:
                raise
            without |= trouble
            continue
        tiny = spare & {name for name, share in zip(found.rig.quad_names, found.drawn, strict=True) if share < TINY}
        if not tiny:
            return layout, found
        without |= tiny


def caged(layout: Layout) -> Caged:
    """Build the cage of a layout.

    Raises:
        CageFailure: the quads of a branching region do not come into convex position, or parts of the cage cross,
            however small the quads are.
    """
    first = layout.rig
    rig = first
    for region in first.regions:
        if len(region.quads) > 2:
            rig = _convex(rig, region)
    for _ in range(ROUNDS):
        faults = _faults(rig)
        if not len(faults):
            rig = _grown_back(rig, first)
            return Caged(rig, build_cage(rig), (rig.extents / first.extents).min(axis=1))
        small = rig.extents[faults].max(axis=1) < LEAST * first.extents[faults].max(axis=1)
        if small.all():
            break
        rig = shrunk(rig, _both_sides(rig, faults[~small]), 0.9)
    names = ", ".join(rig.quad_names[quad] for quad in faults[:5])
    raise CageFailure(
        f"'{rig.name}': the cage crosses itself at {names}, however small its quads are there; do two limbs touch, or "
        "do bones of joints.toml pass through each other? move those joints apart, or take a mesh with limbs apart",
        rig,
        faults,
    )


def _grown_back(rig: QuadRig, first: QuadRig) -> QuadRig:
    """Enlarge quads that were drawn in with others again, as far as the cage allows, the smallest first."""
    for factor in (1.5, 1.25, 1.12):
        share = (rig.extents / first.extents).max(axis=1)
        for quad in np.argsort(share, kind="stable"):
            pair = _both_sides(rig, np.array([quad]))
            if (rig.extents[pair] / first.extents[pair]).max() * factor > 1.0:
                continue
            larger = shrunk(rig, pair, factor)
            if not len(_faults(larger)):
                rig = larger
    return rig


def _both_sides(rig: QuadRig, quads: Ints) -> Ints:
    """The quads and their partners on the other side of the body, by name."""
    names = set()
    for quad in quads:
        name = rig.quad_names[quad]
        names |= {name, name.replace("left", "right"), name.replace("right", "left")}
    return np.array([index for index, name in enumerate(rig.quad_names) if name in names], np.int64)


def _faults(rig: QuadRig) -> Ints:
    """The quads that keep the cage from being built."""
    faults = {quad for region in rig.regions if len(region.quads) > 2 for quad in hull_faults(rig, region)}
    if faults:
        return np.array(sorted(faults), np.int64)
    cage = build_cage(rig, check_crossing=False)
    return np.unique(cage.faces[crossing_faces(cage.vertices, cage.faces)] // 4)


def _convex(rig: QuadRig, region: Region) -> QuadRig:
    """Bring the quads of a branching region into convex position: each a face of the hull of all corners."""
    quads = np.array(region.quads)
    start = rig.extents[quads]
    onward = {int(quad): _onward(rig, region, int(quad)) for quad in quads}
    home = rig.centres.copy()
    for turn in range(ROUNDS):
        faults = hull_faults(rig, region)
        if not faults:
            return rig
        rotations, centres, extents = rig.rotations.copy(), rig.centres.copy(), rig.extents.copy()
        for quad in faults:
            others = rig.centres[quads[quads != quad]].mean(axis=0)
            out = rig.centres[quad] - others
            normal = rotations[quad][:, 2]
            sign = 1.0 if normal @ out >= 0 else -1.0
            wanted = sign * normal + 0.25 * out / max(float(np.linalg.norm(out)), 1e-9)
            rotations[quad] = turned(rotations[quad], sign * wanted / np.linalg.norm(wanted))
            way = onward[quad]
            if way is not None and turn > 8:
                goal = home[quad] + 0.6 * way
                centres[quad] += 0.06 * (goal - centres[quad])
        floor = LEAST * start.max(axis=1)
        keep = extents[quads].max(axis=1) > floor
        extents[quads[keep]] *= 0.94
        rig = replace(rig, rotations=rotations, centres=centres, extents=extents)
    faults = hull_faults(rig, region)
    if not faults:
        return rig
    names = ", ".join(rig.quad_names[quad] for quad in faults)
    raise CageFailure(
        f"'{rig.name}': the bones that meet at '{region.name}' do not spread: {names} lie between the others; move "
        "those joints outwards, or hang them on another joint",
        rig,
        np.array(faults, np.int64),
    )


def _onward(rig: QuadRig, region: Region, quad: int) -> Floats | None:
    """From a quad of a region to the next one away from it, (3,) mm; None where the body ends or branches again."""
    for other in rig.regions:
        if other is not region and quad in other.quads and len(other.quads) == 2:
            following = other.quads[0] if other.quads[1] == quad else other.quads[1]
            return np.asarray(rig.centres[following] - rig.centres[quad])
    return None
