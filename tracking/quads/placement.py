"""Placing quads on a template: where a cut is asked, the quad takes the size of the body there.

`quads_at_cuts` slices the closed template with the plane of each cut and boxes the outline nearest to the cut's centre.
`enclose` then enlarges quads until the cage holds the whole template with a margin. Growing one quad at a time diverges
(a neighbour's face turns inwards), so all sides grow together by a damped least-squares step that is taken back where
it would break the cage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from tracking.quads.cage import Cage, build_cage, cage_conflicts, clearance
from tracking.quads.oriented_quads import QuadRig, Region

__all__ = ["Cut", "Enclosure", "drawn_in", "enclose", "outline_at", "quads_at_cuts"]


@dataclass(frozen=True, eq=False)
class Cut:
    """Where a quad is wanted.

    Attributes:
        name: name of the quad.
        centre: (3,) a point inside the body, mm.
        normal: (3,) direction across which the body is cut, away from the root.
        width: (3,) direction of the quad's first side; made perpendicular to the normal.
        extents: (4,) fixed sides in mm, or None to take them from the body's outline.
        grow: (4,) by how much the sides exceed the outline besides the margin, mm.
    """

    name: str
    centre: Floats
    normal: Floats
    width: Floats
    extents: Floats | None = None
    grow: Floats | None = None


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A rig grown around a template.

    Attributes:
        rig: rig with enlarged quads.
        cage: its cage.
        depth: (V,) distance of each template vertex to the cage, mm; negative outside.
        grown: (Q, 4) by how much each side grew, mm.
    """

    rig: QuadRig
    cage: Cage
    depth: Floats
    grown: Floats


def outline_at(vertices: Floats, faces: Ints, centre: Floats, normal: Floats) -> Floats:
    """Return the (N, 3) points where a plane cuts the mesh outline nearest to ``centre``.

    Raises:
        InputError: the plane does not meet the mesh.
    """
    height = (vertices - centre) @ normal
    above = height > 0
    crossed = faces[above[faces].any(axis=1) & ~above[faces].all(axis=1)]
    if not len(crossed):
        raise InputError(
            f"no body at the cut through {np.round(centre, 1).tolist()} mm; move the cut into the template"
        )
    edges = np.sort(crossed[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    cut = above[edges[:, 0]] != above[edges[:, 1]]
    keys, inverse = np.unique(edges[cut], axis=0, return_inverse=True)
    share = height[keys[:, 0]] / (height[keys[:, 0]] - height[keys[:, 1]])
    points = vertices[keys[:, 0]] + share[:, None] * (vertices[keys[:, 1]] - vertices[keys[:, 0]])
    links = inverse.reshape(-1, 2)  # each crossed face joins two cut edges
    label = np.arange(len(points))
    while True:
        low = np.minimum(label[links[:, 0]], label[links[:, 1]])
        new = label.copy()
        np.minimum.at(new, links[:, 0], low)
        np.minimum.at(new, links[:, 1], low)
        new = new[new]
        if np.array_equal(new, label):
            break
        label = new
    loops = [points[label == value] for value in np.unique(label)]
    nearest = [float(np.linalg.norm(loop.mean(axis=0) - centre)) for loop in loops]
    return np.asarray(loops[int(np.argmin(nearest))])


def quads_at_cuts(
    name: str,
    vertices: Floats,
    faces: Ints,
    cuts: Sequence[Cut],
    regions: Sequence[tuple[str, Sequence[str]]],
    *,
    root: str,
    margin: float,
) -> QuadRig:
    """Make a rig with one quad at each cut, sized to the template's outline there.

    Args:
        name: name of the rig.
        vertices: (V, 3) closed template in the rest pose, mm.
        faces: (F, 3) its triangles.
        cuts: where quads are wanted.
        regions: name and quad names of each region.
        root: name of the root quad.
        margin: room between body and quad, mm.
    """
    rotations, centres, extents = [], [], []
    for cut in cuts:
        normal = np.asarray(cut.normal, float) / np.linalg.norm(cut.normal)
        width = np.asarray(cut.width, float) - normal * (normal @ cut.width)
        width /= np.linalg.norm(width)
        axes = np.stack([width, np.cross(normal, width), normal], axis=1)
        centre = np.asarray(cut.centre, float)
        if cut.extents is None:
            flat = (outline_at(vertices, faces, centre, normal) - centre) @ axes[:, :2]
            low, high = flat.min(axis=0) - margin, flat.max(axis=0) + margin
            centre = centre + axes[:, :2] @ (0.5 * (low + high))
            half = 0.5 * (high - low)
            sides = np.array([half[0], half[0], half[1], half[1]])
            if cut.grow is not None:
                sides = sides + cut.grow
        else:
            sides = np.asarray(cut.extents, float)
        rotations.append(axes)
        centres.append(centre)
        extents.append(sides)
    names = tuple(cut.name for cut in cuts)
    return QuadRig(
        name,
        names,
        np.array(rotations),
        np.array(centres),
        np.array(extents),
        tuple(Region(label, tuple(names.index(quad) for quad in quads)) for label, quads in regions),
        names.index(root),
    )


def enclose(rig: QuadRig, vertices: Floats, *, margin: float, rounds: int = 60, step: float = 6.0) -> Enclosure:
    """Enlarge the quads of a rig until its cage holds a template.

    Args:
        rig: rig whose cage can be built.
        vertices: (V, 3) template, mm.
        margin: wanted distance from template to cage, mm.
        rounds: most growth steps.
        step: most a side grows in one round, mm.

    Returns:
        The grown rig; ``depth`` says which vertices it could not hold.
    """
    start = rig.extents
    cage = build_cage(rig)
    best, least, stalled = (rig, cage), np.inf, 0
    for turn in range(rounds):
        # A side grows by at most `step`: far vertices cannot come near in a few rounds and are looked at rarely.
        if turn % 8 == 0:
            watched = np.flatnonzero(clearance(vertices, cage)[0] < margin + 8 * step)
        depth, face, weights = clearance(vertices[watched], cage)
        shortfall = float(np.sum(np.maximum(margin - depth, 0.0)))
        if shortfall < 0.98 * least:
            best, least, stalled = (rig, cage), shortfall, 0
        else:
            stalled += 1
            if stalled > 6:  # what is still outside cannot be reached by growing
                break
        if depth.min() >= margin and clearance(vertices, cage)[0].min() >= margin:
            break
        short = np.flatnonzero(depth < margin + 1.0)
        growth = _growth(rig, cage, margin + 1.0 - depth[short], face[short], weights[short], step)
        rig, cage, moved = _grow(rig, cage, growth)
        if not moved:
            break
    rig, cage = best
    return Enclosure(rig, cage, clearance(vertices, cage)[0], rig.extents - start)


def drawn_in(template: Floats, enclosure: Enclosure, room: float, *, what: str) -> tuple[Floats, Floats]:
    """Draw the few vertices that a grown cage cannot hold into it.

    Args:
        template: (V, 3) the mesh the cage was grown for, mm.
        enclosure: the grown cage.
        room: least distance from the cage afterwards, mm.
        what: whose mesh, for errors.

    Returns:
        The mesh, all inside; and by how much each of the N vertices moved that had less room, (N,) mm.

    Raises:
        InputError: they are many (3 %, of a few points more than two) or far outside (1.5 % of the mesh's size).
    """
    cage = enclosure.cage
    low = np.flatnonzero(enclosure.depth < room)
    size = float(np.linalg.norm(np.ptp(template, axis=0)))
    worst = float(max(-enclosure.depth.min(), 0.0))
    # Joints and marked points are a few: one of them near the cage is no sign of a body that does not fit.
    if len(low) > max(0.03 * len(template), 2.0) or worst > 0.015 * size:
        at = template[int(np.argmin(enclosure.depth))]
        raise InputError(
            f"{what}: {len(low)} of {len(template)} vertices cannot be held by the cage (worst {worst:.1f} mm outside, "
            f"at {np.round(at).tolist()} mm in the cage's pose); cut off what is not body there, or take a scan with "
            "limbs apart"
        )
    moved = template.copy()
    corner = [cage.vertices[cage.faces[:, k]] for k in range(3)]
    normals = np.cross(corner[1] - corner[0], corner[2] - corner[0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    for _ in range(8):  # more than once, for edges and corners
        depth, face, weights = clearance(moved[low], cage)
        short = depth < room
        if not short.any():
            break
        foot = np.einsum("pk,pki->pi", weights[short], cage.vertices[cage.faces[face[short]]])
        moved[low[short]] = foot - 1.2 * room * normals[face[short]]
    return moved, np.linalg.norm(moved[low] - template[low], axis=1)


def _growth(rig: QuadRig, cage: Cage, wanted: Floats, face: Ints, weights: Floats, step: float) -> Floats:
    """Least-squares growth (Q, 4) of the sides that moves the nearest faces outwards by the wanted distances."""
    a, b, c = (cage.vertices[cage.faces[face, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    axis_of = np.array([[0, 2], [1, 2], [1, 3], [0, 3]])  # the two sides each corner lies on
    sign_of = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    rows = np.zeros((len(face), 4 * len(rig)))
    for k in range(3):
        vertex = cage.faces[face, k]
        quad, corner = vertex // 4, vertex % 4
        for side in range(2):
            direction = rig.rotations[quad, :, side] * sign_of[corner, side][:, None]
            effect = weights[:, k] * np.sum(normals * direction, axis=1)
            np.add.at(rows, (np.arange(len(face)), 4 * quad + axis_of[corner, side]), effect)
    system = rows.T @ rows + 0.05 * len(face) / len(rig) * np.eye(rows.shape[1])
    return np.asarray(np.clip(np.linalg.solve(system, rows.T @ wanted), 0.0, step).reshape(-1, 4))


def _grow(rig: QuadRig, cage: Cage, growth: Floats) -> tuple[QuadRig, Cage, bool]:
    """Apply a growth; quads that would break the cage grow in height only, else in width only, else not at all."""
    patterns = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    for scale in (1.0, 0.4, 0.15):
        held = np.zeros(len(rig), int)
        while True:
            allowed = scale * growth * patterns[held]
            if allowed.max() <= 1e-3:
                break
            candidate = replace(rig, extents=rig.extents + allowed)
            conflicts = cage_conflicts(candidate)
            if not conflicts:
                return candidate, build_cage(candidate), True
            trouble = [quad for quad in conflicts if held[quad] < 3 and growth[quad].max() > 0]
            if not trouble:
                break
            held[trouble] += 1
    # One side after the other, the largest wish first, each kept where the cage stays whole.
    moved = False
    for quad, side in np.argwhere(growth > 0.1 * growth.max())[np.argsort(-growth[growth > 0.1 * growth.max()])]:
        extents = rig.extents.copy()
        extents[quad, side] += growth[quad, side]
        candidate = replace(rig, extents=extents)
        if not cage_conflicts(candidate):
            rig, moved = candidate, True
    return rig, build_cage(rig) if moved else cage, moved
