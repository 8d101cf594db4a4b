"""The cage: one rule that turns any tree of oriented quads into a closed triangle mesh.

Its vertices are the quads' corners, so each belongs rigidly to one quad. A region between two quads is a tube; a region
between three or more is the convex hull of their corners less the quads themselves; a quad that bounds one region
only is capped. Regions are thus glued along quads, and the surface is closed by construction where each hull has its
quads among its faces (corners in convex position), which is checked.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled, compiled_parallel, prange
from calibration.foundation.errors import InputError
from calibration.geometry.elementary_kernels import angles
from calibration.geometry.rotation_kernels import dot3
from tracking.quads.oriented_quads import QuadRig, Region

__all__ = ["Cage", "build_cage", "cage_conflicts", "clearance", "crossing_faces"]


@dataclass(frozen=True, eq=False)
class Cage:
    """Closed triangle mesh on the corners of a rig's quads; vertex 4 q + k is corner k of quad q.

    Attributes:
        vertices: (4 Q, 3) rest positions, mm.
        faces: (F, 3) vertex indices, counter-clockwise seen from outside.
    """

    vertices: Floats
    faces: Ints


def build_cage(rig: QuadRig, *, check_crossing: bool = True) -> Cage:
    """Build the cage of a rig of quads.

    Raises:
        InputError: a region's quads are not faces of the convex hull of their corners, the surface does not close,
            or (with ``check_crossing``) it crosses itself in the rest pose; the message names the region or quads.
    """
    corners = rig.posed_corners(rig.rest)
    vertices = corners.reshape(-1, 3)
    faces: list[tuple[int, int, int]] = []
    for region in rig.regions:
        faces += _tube(rig, corners, region) if len(region.quads) == 2 else _hull(rig, corners, region)
    bounded = np.bincount([quad for region in rig.regions for quad in region.quads], minlength=len(rig))
    for quad in np.flatnonzero(bounded == 1):
        base = 4 * int(quad)
        faces += [(base, base + 1, base + 2), (base, base + 2, base + 3)]
    oriented = _orient(rig, vertices, np.array(faces, np.int64))
    if check_crossing:
        pairs = crossing_faces(vertices, oriented)
        if len(pairs):
            names = sorted({rig.quad_names[v // 4] for v in oriented[pairs[0]].ravel()})
            raise InputError(
                f"rig '{rig.name}': the cage crosses itself near quads {', '.join(names)}; move or shrink one of them"
            )
    return Cage(vertices, oriented)


def _tube(rig: QuadRig, corners: Floats, region: Region) -> list[tuple[int, int, int]]:
    """Join two quads' corner loops: the pairing with the shortest rungs, and of each side's diagonals the outer one."""
    first, second = region.quads
    best: tuple[float, list[int]] | None = None
    for direction in (1, -1):
        for shift in range(4):
            order = [(shift + direction * k) % 4 for k in range(4)]
            cost = float(np.sum((corners[first] - corners[second][order]) ** 2))
            if best is None or cost < best[0]:
                best = (cost, order)
    assert best is not None
    order = best[1]
    middle = 0.5 * (corners[first].mean(axis=0) + corners[second].mean(axis=0))
    faces = []
    for k in range(4):
        after = (k + 1) % 4
        a, b = 4 * first + k, 4 * first + after
        c, d = 4 * second + order[after], 4 * second + order[k]
        flat = corners.reshape(-1, 3)
        outer = np.linalg.norm(flat[a] + flat[c] - 2 * middle) - np.linalg.norm(flat[b] + flat[d] - 2 * middle)
        # On a flat side both are alike: the choice must not hang on the last digits, which a file rounds.
        if outer > 1e-4:
            faces += [(a, b, c), (a, c, d)]
        else:
            faces += [(a, b, d), (b, c, d)]
    return faces


def cage_conflicts(rig: QuadRig) -> list[int]:
    """Return the quads that keep a rig's cage from being built: no faces of their region's hull, or crossing."""
    faults = {quad for region in rig.regions if len(region.quads) > 2 for quad in hull_faults(rig, region)}
    if faults:
        return sorted(faults)
    cage = build_cage(rig, check_crossing=False)
    return [int(quad) for quad in np.unique(cage.faces[crossing_faces(cage.vertices, cage.faces)] // 4)]


def hull_faults(rig: QuadRig, region: Region) -> list[int]:
    """Return the quads of a region of three or more that are not faces of the convex hull of all its corners."""
    return _hull_of(rig, rig.posed_corners(rig.rest), region)[1]


def _hull_of(rig: QuadRig, corners: Floats, region: Region) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Convex hull of a region's corners less the quads' own faces, and the quads that are not among them."""
    ids = np.concatenate([4 * quad + np.arange(4) for quad in region.quads])
    try:
        hull = ConvexHull(corners.reshape(-1, 3)[ids])
    except QhullError:
        raise InputError(f"rig '{rig.name}': the quads of region '{region.name}' lie in one plane") from None
    owner = ids[hull.simplices] // 4
    own = (owner == owner[:, :1]).all(axis=1)
    faults = []
    for quad in region.quads:
        covered = int(np.sum(own & (owner[:, 0] == quad)))
        missing = 4 - len(np.intersect1d(hull.vertices, np.flatnonzero(ids // 4 == quad)))
        if covered != 2 or missing:
            faults.append(quad)
    return [(int(a), int(b), int(c)) for a, b, c in ids[hull.simplices[~own]]], faults


def _hull(rig: QuadRig, corners: Floats, region: Region) -> list[tuple[int, int, int]]:
    """Convex hull of a region's corners less the quads' own faces."""
    faces, faults = _hull_of(rig, corners, region)
    if faults:
        raise InputError(
            f"rig '{rig.name}': quad '{rig.quad_names[faults[0]]}' is not a face of region '{region.name}' (its "
            "corners must be in convex position with the other quads'); turn it outwards, move it out or shrink it"
        )
    return faces


def _orient(rig: QuadRig, vertices: Floats, faces: Ints) -> Ints:
    """Turn all faces counter-clockwise seen from outside, walking over shared edges; check closed and manifold."""
    edges: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, face in enumerate(faces):
        for k in range(3):
            a, b = int(face[k]), int(face[(k + 1) % 3])
            edges[min(a, b), max(a, b)].append(index)
    for (a, b), owners in edges.items():
        if len(owners) != 2:
            raise InputError(
                f"rig '{rig.name}': the cage is not closed between quads '{rig.quad_names[a // 4]}' and "
                f"'{rig.quad_names[b // 4]}' (an edge has {len(owners)} faces); check the regions"
            )
    result = faces.copy()
    done = np.zeros(len(faces), bool)
    done[0] = True
    queue = [0]
    while queue:
        index = queue.pop()
        for k in range(3):
            a, b = int(result[index, k]), int(result[index, (k + 1) % 3])
            for other in edges[min(a, b), max(a, b)]:
                if done[other]:
                    continue
                face = list(result[other])
                if face[(face.index(a) + 1) % 3] == b:  # same direction along the edge: turn it over
                    result[other] = result[other][::-1]
                done[other] = True
                queue.append(other)
    if not done.all():
        raise InputError(f"rig '{rig.name}': the cage falls into separate pieces; join the regions by common quads")
    corner = [vertices[result[:, k]] for k in range(3)]
    volume = float(np.sum(corner[0] * np.cross(corner[1], corner[2])))
    return result if volume > 0 else np.ascontiguousarray(result[:, ::-1])


def crossing_faces(vertices: Floats, faces: Ints) -> Ints:
    """Return (N, 2) pairs of faces without a common vertex that cross each other."""
    return np.array(_crossings(np.ascontiguousarray(vertices), np.ascontiguousarray(faces)), np.int64).reshape(-1, 2)


@compiled
def _crossings(vertices: Floats, faces: Ints) -> list[tuple[int, int]]:
    found = [(0, 0) for _ in range(0)]
    low = np.empty((len(faces), 3))
    high = np.empty((len(faces), 3))
    for i in range(len(faces)):
        for k in range(3):
            column = vertices[faces[i], k]
            low[i, k], high[i, k] = column.min(), column.max()
    for i in range(len(faces)):
        for j in range(len(faces)):
            apart = False
            for k in range(3):
                apart = apart or low[i, k] > high[j, k] or low[j, k] > high[i, k]
                for m in range(3):
                    apart = apart or faces[i, k] == faces[j, m]
            if apart:
                continue
            a, b, c = vertices[faces[j, 0]], vertices[faces[j, 1]], vertices[faces[j, 2]]
            ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
            vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
            for k in range(3):  # an edge of face i through face j (Moeller and Trumbore)
                start, end = vertices[faces[i, k]], vertices[faces[i, (k + 1) % 3]]
                wx, wy, wz = end[0] - start[0], end[1] - start[1], end[2] - start[2]
                px, py, pz = wy * vz - wz * vy, wz * vx - wx * vz, wx * vy - wy * vx
                determinant = ux * px + uy * py + uz * pz
                # In the face's plane, as sides of a straight tube are, an edge touches and does not cross.
                scale = (ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz) * (wx * wx + wy * wy + wz * wz)
                if abs(determinant) < 1e-9 * np.sqrt(scale):
                    continue
                ox, oy, oz = start[0] - a[0], start[1] - a[1], start[2] - a[2]
                first = (ox * px + oy * py + oz * pz) / determinant
                qx, qy, qz = oy * uz - oz * uy, oz * ux - ox * uz, ox * uy - oy * ux
                second = (wx * qx + wy * qy + wz * qz) / determinant
                along = (vx * qx + vy * qy + vz * qz) / determinant
                if first > 1e-9 and second > 1e-9 and first + second < 1 - 1e-9 and 1e-9 < along < 1 - 1e-9:
                    found.append((i, j))
                    break
    return found


def clearance(points: Floats, cage: Cage) -> tuple[Floats, Ints, Floats]:
    """Measure how deep points lie inside the cage.

    Args:
        points: (P, 3) mm.
        cage: closed cage.

    Returns:
        depth: (P,) distance to the nearest face, mm; negative outside.
        face: (P,) the nearest face.
        weights: (P, 3) barycentric coordinates of the nearest point on it.
    """
    points = np.ascontiguousarray(points, np.float64)
    depth = np.empty(len(points))
    face = np.empty(len(points), np.int64)
    weights = np.empty((len(points), 3))
    _nearest_faces(points, np.ascontiguousarray(cage.vertices), cage.faces, depth, face, weights)
    return depth, face, weights


@compiled_parallel
def _nearest_faces(points: Floats, vertices: Floats, faces: Ints, depth: Floats, face: Ints, weights: Floats) -> None:
    count = len(faces)
    middles, radii = _balls(vertices, faces)
    for i in prange(len(points)):
        r, lengths = np.empty((len(vertices), 3)), np.empty(len(vertices))
        for k in range(len(vertices)):
            for axis in range(3):
                r[k, axis] = vertices[k, axis] - points[i, axis]
            lengths[k] = np.sqrt(dot3(r[k], r[k]))
        # The nearest face is none of those whose ball lies beyond the far side of another's.
        least, reach = np.empty(count), np.inf
        across, along, half = np.empty(count), np.empty(count), np.empty(count)
        for j in range(count):
            x, y, z = middles[j, 0] - points[i, 0], middles[j, 1] - points[i, 1], middles[j, 2] - points[i, 2]
            away = np.sqrt(x * x + y * y + z * z)
            least[j] = away - radii[j]
            reach = min(reach, away + radii[j])
            # Winding number by solid angles (Van Oosterom and Strackee 1983).
            a, b, c = r[faces[j, 0]], r[faces[j, 1]], r[faces[j, 2]]
            la, lb, lc = lengths[faces[j, 0]], lengths[faces[j, 1]], lengths[faces[j, 2]]
            across[j] = a[0] * (b[1] * c[2] - b[2] * c[1])
            across[j] += a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
            along[j] = la * lb * lc + dot3(a, b) * lc + dot3(b, c) * la + dot3(c, a) * lb
        angles(across, along, half)
        best = np.inf
        for j in range(count):
            if least[j] > reach:
                continue
            a, b, c = r[faces[j, 0]], r[faces[j, 1]], r[faces[j, 2]]
            wa, wb, wc = _nearest_on_triangle(dot3(a, a), dot3(b, b), dot3(c, c), dot3(a, b), dot3(b, c), dot3(c, a))
            x = wa * a[0] + wb * b[0] + wc * c[0]
            y = wa * a[1] + wb * b[1] + wc * c[1]
            z = wa * a[2] + wb * b[2] + wc * c[2]
            square = x * x + y * y + z * z
            if square < best:
                best, face[i] = square, j
                weights[i, 0], weights[i, 1], weights[i, 2] = wa, wb, wc
                reach = min(reach, 1.000001 * np.sqrt(square))
        depth[i] = np.sqrt(best) if half.sum() > np.pi else -np.sqrt(best)


@compiled
def _balls(vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Middles (F, 3) of faces and the radii (F,) of balls around them that hold the face, with room for rounding."""
    middles, radii = np.empty((len(faces), 3)), np.zeros(len(faces))
    for j in range(len(faces)):
        a, b, c = vertices[faces[j, 0]], vertices[faces[j, 1]], vertices[faces[j, 2]]
        for k in range(3):
            middles[j, k] = (a[k] + b[k] + c[k]) / 3.0
        for corner in (a, b, c):
            x, y, z = corner[0] - middles[j, 0], corner[1] - middles[j, 1], corner[2] - middles[j, 2]
            radii[j] = max(radii[j], 1.000001 * np.sqrt(x * x + y * y + z * z))
    return middles, radii


@compiled
def _nearest_on_triangle(
    aa: float, bb: float, cc: float, ab: float, bc: float, ca: float
) -> tuple[float, float, float]:
    """Barycentric coordinates of the point of triangle abc nearest to the origin (Ericson 2005, 5.1.5).

    The arguments are the corners' scalar products.
    """
    d1, d2 = aa - ab, aa - ca  # -(b - a).a and -(c - a).a
    if d1 <= 0 and d2 <= 0:
        return 1.0, 0.0, 0.0
    d3, d4 = ab - bb, ab - bc
    if d3 >= 0 and d4 <= d3:
        return 0.0, 1.0, 0.0
    vc = d1 * d4 - d3 * d2
    if vc <= 0 and d1 >= 0 and d3 <= 0:
        t = d1 / (d1 - d3)
        return 1.0 - t, t, 0.0
    d5, d6 = ca - bc, ca - cc
    if d6 >= 0 and d5 <= d6:
        return 0.0, 0.0, 1.0
    vb = d5 * d2 - d1 * d6
    if vb <= 0 and d2 >= 0 and d6 <= 0:
        t = d2 / (d2 - d6)
        return 1.0 - t, 0.0, t
    va = d3 * d6 - d5 * d4
    if va <= 0 and d4 - d3 >= 0 and d5 - d6 >= 0:
        t = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return 0.0, 1.0 - t, t
    total = va + vb + vc
    return va / total, vb / total, vc / total
