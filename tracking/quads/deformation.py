"""How a posed cage moves the points bound to it, and the derivatives with respect to the quads.

A bound point has one row of Green coordinates over the *carriers* of the cage, its vertices v_i and scaled normals
s_j n_j (Duveau et al. 2012, eq. 1): ``P = sum_i phi_i v_i + sum_j psi_j s_j n_j``. Carriers depend on the quads,
rows do not, so the derivative of any number of points is a product of their rows with one small sparse table: a vertex
moves with its own quad, a normal and its stretch with the (at most three) quads its face hangs on.

Derivatives are with respect to six numbers per quad: a rotation vector applied on the left in world axes (rad), then
the displacement of the centre (mm).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibration.foundation.arrays import Floats, Ints, Singles
from calibration.foundation.compiled import compiled, compiled_parallel, prange
from calibration.foundation.errors import InputError
from calibration.geometry.rotation_kernels import dot3
from tracking.quads.anchors import anchored_rows
from tracking.quads.cage import Cage, build_cage, clearance
from tracking.quads.green import green_coordinates
from tracking.quads.oriented_quads import QuadPose, QuadRig

__all__ = ["CageRig", "CarrierDerivatives", "resized", "scaled_cage"]

FLAT = 0.3
"""Below this conformality (1 for a similar face, 0 for one squashed to a line) the normal of a face fades away.

Eq. 1 is discontinuous where a face is squashed to a line and turns over: its normal jumps from one side to the other
at full stretch, and a solver that meets such a wall stops there. Faded in proportion to the area, the normal passes
through zero instead. 2 s1 s2 / (s1^2 + s2^2) of the face's stretches s1, s2: 0.3 is a ratio of 6.5 to one."""
ROWS = 768
"""Outline samples whose derivatives are made at a time."""


@dataclass(frozen=True, eq=False)
class CarrierDerivatives:
    """Derivatives of all carriers with respect to all quads, as the blocks that are not zero.

    Attributes:
        starts: (Q + 1,) where each quad's entries start in the other two.
        columns: (N,) the carriers that a quad moves.
        blocks: (N, 18) row-major (3, 6) derivatives of those carriers.
    """

    starts: Ints
    columns: Ints
    blocks: Floats

    def of_quads(self, quads: Ints) -> CarrierDerivatives:
        """Return those with respect to some of the quads, in their order."""
        spans = [slice(self.starts[quad], self.starts[quad + 1]) for quad in quads]
        starts = np.cumsum([0] + [span.stop - span.start for span in spans])
        return CarrierDerivatives(
            starts,
            np.concatenate([self.columns[span] for span in spans]),
            np.concatenate([self.blocks[span] for span in spans]),
        )


@dataclass(frozen=True, eq=False)
class CageRig:
    """A rig of quads with its cage.

    Attributes:
        quads: the quads at rest.
        cage: their cage.
    """

    quads: QuadRig
    cage: Cage

    @classmethod
    def build(cls, rig: QuadRig) -> CageRig:
        """Build the cage of a rig."""
        return cls(rig, build_cage(rig))

    def bind(self, points: Floats, *, margin: float = 0.0, what: str = "points") -> Floats:
        """Compute the (P, 4 Q + F) coordinates of rest-pose points, to be carried by the cage.

        Raises:
            InputError: a point lies outside the cage, or nearer to it than ``margin`` mm: Green coordinates of such a
                point map it to nonsense.
        """
        points = np.asarray(points, np.float64)
        depth, face, _ = clearance(points, self.cage)
        outside = np.flatnonzero(depth < margin)
        if len(outside):
            worst = int(np.argmin(depth))
            quads = sorted({self.quads.quad_names[v // 4] for v in self.cage.faces[face[worst]]})
            raise InputError(
                f"rig '{self.quads.name}': {len(outside)} of {len(points)} {what} are not inside the cage by "
                f"{margin:g} mm (worst {depth[worst]:.1f} mm, near quads {', '.join(quads)}); enlarge those quads"
            )
        return np.hstack(green_coordinates(points, self.cage.vertices, self.cage.faces))

    def bind_through(self, anchors: Floats, points: Floats, *, what: str = "anchors") -> Floats:
        """Compute the (P, 4 Q + F) coordinates of points anywhere near the cage, each through its anchor inside.

        Raises:
            InputError: an anchor lies outside the cage.
        """
        inside = self.bind(anchors, what=what)
        free = np.flatnonzero((anchors != points).any(axis=1))
        inside[free] = anchored_rows(self.cage, anchors[free], points[free])
        return inside

    def carriers(self, pose: QuadPose) -> Floats:
        """Return the (4 Q + F, 3) carriers in a pose: cage vertices, then stretched normals, mm and 1."""
        vertices = self.quads.posed_corners(pose).reshape(-1, 3)
        normals = np.empty((len(self.cage.faces), 3))
        _stretched_normals(vertices, self.cage.faces, self._rest_faces, normals)
        return np.concatenate([vertices, normals])

    def deform(self, binding: Floats | Singles, pose: QuadPose) -> Floats:
        """Carry bound points, (P, 3) mm, to a pose."""
        columns = np.ascontiguousarray(self.carriers(pose).T, binding.dtype)
        # Column by column: a product with three of them at once is laid out anew before, at twice the cost.
        return np.stack([binding @ column for column in columns], axis=1)

    def derivatives(self, pose: QuadPose) -> CarrierDerivatives:
        """Return the derivatives of the carriers in a pose."""
        corners = self.quads.posed_corners(pose)
        arms = (corners - np.asarray(pose.centres)[:, None, :]).reshape(-1, 3)
        starts, columns, slots = self._incidence
        blocks = np.zeros((len(columns), 18))
        _carrier_blocks(corners.reshape(-1, 3), arms, self.cage.faces, self._rest_faces, starts, slots, blocks)
        return CarrierDerivatives(starts, columns, blocks)

    def point_jacobian(self, binding: Floats, derivatives: CarrierDerivatives) -> Floats:
        """Return the (P, 3, 6 Q) derivative of bound points."""
        result = np.empty((len(binding), len(self.quads), 18))
        _gather(
            np.ascontiguousarray(binding, np.float64),
            derivatives.starts,
            derivatives.columns,
            derivatives.blocks,
            result,
        )
        return result.reshape(len(binding), len(self.quads), 3, 6).transpose(0, 2, 1, 3).reshape(len(binding), 3, -1)

    def by_carrier(self, binding: Floats | Singles) -> Singles:
        """Return (P, N) the coordinates of points in the order of the quads' carriers, for `outline_jacobian`."""
        return np.ascontiguousarray(binding[:, self._incidence[1]], np.float32)

    def by_carrier_of(self, binding: Floats | Singles, quads: Ints) -> Singles:
        """Return the same for the carriers of some of the quads."""
        starts, columns, _ = self._incidence
        ours = np.concatenate([columns[starts[quad] : starts[quad + 1]] for quad in quads])
        return np.ascontiguousarray(binding[:, ours], np.float32)

    def outline_jacobian(
        self, by_carrier: Singles, pairs: Ints, directions: Floats, scale: Floats, derivatives: CarrierDerivatives
    ) -> Singles:
        """Return the (N, 6 Q) derivative of ``scale direction . m``, m being the middle of two bound points.

        In single precision, which halves the time of the solver's largest loop. Pairs that come more than once, as they
        do where several observed samples are nearest to one edge, are derived once.

        Args:
            by_carrier: coordinates of the points, see `by_carrier`.
            pairs: (N, 2) which two.
            directions: (N, 3).
            scale: (N,).
            derivatives: of the carriers, by all quads or by those that ``by_carrier`` is of.
        """
        starts = derivatives.starts
        quads = len(starts) - 1
        blocks = derivatives.blocks.astype(np.float32)
        along = (0.5 * scale[:, None] * directions).astype(np.float32)
        result = np.empty((len(pairs), 6 * quads), np.float32)
        order, edges, begins = _by_edge(pairs, len(by_carrier))
        # A few hundred rows at a time stay in the processor's cache.
        rows = np.empty((min(ROWS, len(edges)), by_carrier.shape[1]), np.float32)
        by_quad = np.empty((quads, len(rows), 18), np.float32)
        for first in range(0, len(edges), ROWS):
            count = min(ROWS, len(edges) - first)
            _middle_rows(by_carrier, edges[first : first + count], rows)
            for quad in range(quads):
                span = slice(starts[quad], starts[quad + 1])
                np.matmul(rows[:count, span], blocks[span], out=by_quad[quad, :count])
            _along(by_quad, along, order, begins[first : first + count + 1], result)
        return result

    def outline_jacobian_along(
        self,
        binding: Singles,
        pairs: Ints,
        directions: Floats,
        scale: Floats,
        derivatives: CarrierDerivatives,
        ways: Floats,
    ) -> Floats:
        """Return the (N, K) derivative of ``scale direction . m`` by K numbers of which all quads depend.

        What `outline_jacobian` gives times ``ways``, in single precision too: where K is small the points are derived
        by these numbers, and nothing by the quads.

        Args:
            binding: (P, 4 Q + F) coordinates of the points.
            pairs, directions, scale: as in `outline_jacobian`.
            derivatives: of the carriers by all quads.
            ways: (6 Q, K) derivative of the quads by the numbers.
        """
        moves = np.zeros((binding.shape[1], 3, ways.shape[1]))
        _carriers_along(derivatives.starts, derivatives.columns, derivatives.blocks, ways, moves)
        points = binding @ moves.reshape(len(moves), -1).astype(np.float32)
        result = np.empty((len(pairs), ways.shape[1]))
        _middles_along(points.reshape(len(points), 3, -1), pairs, 0.5 * scale[:, None] * directions, result)
        return result

    @cached_property
    def _rest_faces(self) -> Floats:
        """(F, 4): |u|^2, u.v, |v|^2 and doubled area of the rest faces, u and v being the edges from vertex 0."""
        a, b, c = (self.cage.vertices[self.cage.faces[:, k]] for k in range(3))
        u, v = b - a, c - a
        doubled = np.linalg.norm(np.cross(u, v), axis=1)
        table = np.stack([np.sum(u * u, axis=1), np.sum(u * v, axis=1), np.sum(v * v, axis=1), doubled], axis=1)
        return np.ascontiguousarray(table)

    @cached_property
    def _incidence(self) -> tuple[Ints, Ints, Ints]:
        """Which carriers each quad moves (starts, columns), and where among them each face finds its vertices."""
        count = len(self.quads)
        lists: list[list[int]] = [list(range(4 * quad, 4 * quad + 4)) for quad in range(count)]
        place = np.empty((len(self.cage.faces), 3), np.int64)
        for index, face in enumerate(self.cage.faces):
            carrier = 4 * count + index
            for k in range(3):
                owned = lists[int(face[k]) // 4]
                if owned[-1] != carrier:
                    owned.append(carrier)
                place[index, k] = len(owned) - 1
        starts = np.concatenate([[0], np.cumsum([len(owned) for owned in lists])]).astype(np.int64)
        slots = starts[self.cage.faces // 4] + place
        return starts, np.concatenate(lists).astype(np.int64), slots


def resized(cage_rig: CageRig, scales: Floats) -> CageRig:
    """Return quads whose width and height are scaled by (Q, 2), on the same rest cage."""
    extents = cage_rig.quads.extents * np.repeat(np.asarray(scales), 2, axis=1)
    return CageRig(replace(cage_rig.quads, extents=extents), cage_rig.cage)


def scaled_cage(cage_rig: CageRig, scale: float) -> CageRig:
    """Return quads and cage with all lengths multiplied by one factor."""
    rig, cage = cage_rig.quads, cage_rig.cage
    grown = replace(rig, centres=rig.centres * scale, extents=rig.extents * scale)
    return CageRig(grown, Cage(cage.vertices * scale, cage.faces))


@compiled
def _stretched_normals(vertices: Floats, faces: Ints, rest: Floats, normals: Floats) -> None:
    for j in range(len(faces)):
        a, b, c = vertices[faces[j, 0]], vertices[faces[j, 1]], vertices[faces[j, 2]]
        u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        v0, v1, v2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        w0, w1, w2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
        uu, uv, vv = u0 * u0 + u1 * u1 + u2 * u2, u0 * v0 + u1 * v1 + u2 * v2, v0 * v0 + v1 * v1 + v2 * v2
        stretch = np.sqrt(max(uu * rest[j, 2] - 2.0 * uv * rest[j, 1] + vv * rest[j, 0], 0.0) / 2.0) / rest[j, 3]
        length = np.sqrt(w0 * w0 + w1 * w1 + w2 * w2) + 1e-30
        fade = length / max(FLAT * stretch * stretch * rest[j, 3], 1e-30)
        factor = stretch / length if fade >= 1.0 else stretch * fade * (2.0 - fade) / length
        normals[j, 0], normals[j, 1], normals[j, 2] = factor * w0, factor * w1, factor * w2


@compiled
def _carrier_blocks(
    vertices: Floats, arms: Floats, faces: Ints, rest: Floats, starts: Ints, slots: Ints, blocks: Floats
) -> None:
    for i in range(len(vertices)):
        # dv = omega x arm + shift
        block = blocks[starts[i // 4] + i % 4]
        x, y, z = arms[i, 0], arms[i, 1], arms[i, 2]
        block[1], block[2] = z, -y
        block[6], block[8] = -z, x
        block[12], block[13] = y, -x
        block[3] = block[10] = block[17] = 1.0
    # Room for what a face needs, made once: arrays made for each face would cost more than the work in them.
    by_edge = np.empty((3, 3, 3))  # derivative of s n by the three vertices of the face
    u, v, w, n, turn_u, turn_v = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for j in range(len(faces)):
        for k in range(3):
            u[k] = vertices[faces[j, 1], k] - vertices[faces[j, 0], k]
            v[k] = vertices[faces[j, 2], k] - vertices[faces[j, 0], k]
        w[0], w[1], w[2] = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]
        uu, uv, vv = dot3(u, u), dot3(u, v), dot3(v, v)
        length = np.sqrt(dot3(w, w)) + 1e-30
        for k in range(3):
            n[k] = w[k] / length
        square = 2.0 * rest[j, 3] * rest[j, 3]
        stretch = np.sqrt(max(uu * rest[j, 2] - 2.0 * uv * rest[j, 1] + vv * rest[j, 0], 1e-30) / square)
        fade = length / (FLAT * stretch * stretch * rest[j, 3])
        scale = 1.0 / (FLAT * stretch * rest[j, 3])  # s n fade (2 - fade) = scale (2 - fade) w
        for k in range(3):
            # s^2 = (|u'|^2 |v|^2 - 2 u'.v' u.v + |v'|^2 |u|^2) / (2 (2 A)^2)
            grow_u = (u[k] * rest[j, 2] - v[k] * rest[j, 1]) / (square * stretch)
            grow_v = (v[k] * rest[j, 0] - u[k] * rest[j, 1]) / (square * stretch)
            # dw = du x v + u x dv, dn = (1 - n n^T) dw / |w|
            nxt, last = (k + 1) % 3, (k + 2) % 3
            turn_u[k] = turn_v[k] = 0.0
            turn_u[nxt], turn_u[last] = -v[last], v[nxt]
            turn_v[nxt], turn_v[last] = u[last], -u[nxt]
            along_u, along_v = dot3(n, turn_u), dot3(n, turn_v)
            for r in range(3):
                if fade >= 1.0:
                    by_u = n[r] * grow_u + stretch * (turn_u[r] - n[r] * along_u) / length
                    by_v = n[r] * grow_v + stretch * (turn_v[r] - n[r] * along_v) / length
                else:
                    fade_u = (scale * along_u - 2.0 * fade * grow_u) / stretch
                    fade_v = (scale * along_v - 2.0 * fade * grow_v) / stretch
                    by_u = scale * ((2.0 - fade) * (turn_u[r] - w[r] * grow_u / stretch) - w[r] * fade_u)
                    by_v = scale * ((2.0 - fade) * (turn_v[r] - w[r] * grow_v / stretch) - w[r] * fade_v)
                by_edge[1, r, k], by_edge[2, r, k], by_edge[0, r, k] = by_u, by_v, -by_u - by_v
        for m in range(3):
            vertex = faces[j, m]
            block = blocks[slots[j, m]]
            x, y, z = arms[vertex, 0], arms[vertex, 1], arms[vertex, 2]
            for r in range(3):
                d0, d1, d2 = by_edge[m, r, 0], by_edge[m, r, 1], by_edge[m, r, 2]
                # row of d * (-[arm]_x): omega -> d . (omega x arm)
                block[6 * r] += y * d2 - z * d1
                block[6 * r + 1] += z * d0 - x * d2
                block[6 * r + 2] += x * d1 - y * d0
                block[6 * r + 3] += d0
                block[6 * r + 4] += d1
                block[6 * r + 5] += d2


@compiled_parallel
def _gather(binding: Floats, starts: Ints, columns: Ints, blocks: Floats, result: Floats) -> None:
    for i in prange(len(binding)):
        for q in range(len(starts) - 1):
            total = np.zeros(18)
            for k in range(starts[q], starts[q + 1]):
                weight = binding[i, columns[k]]
                for m in range(18):
                    total[m] += weight * blocks[k, m]
            result[i, q] = total


@compiled_parallel
def _middle_rows(by_carrier: Singles, pairs: Ints, rows: Singles) -> None:
    for i in prange(len(pairs)):
        first, second = pairs[i, 0], pairs[i, 1]
        for k in range(by_carrier.shape[1]):
            rows[i, k] = by_carrier[first, k] + by_carrier[second, k]


@compiled
def _by_edge(pairs: Ints, points: int) -> tuple[Ints, Ints, Ints]:
    """Sort pairs (N, 2): their order, the M different ones (M, 2), and where each of those begins in the order."""
    # By the first point, counted; then the few with the same first point by the second.
    heads = np.zeros(points + 1, np.int64)
    for i in range(len(pairs)):
        heads[pairs[i, 0] + 1] += 1
    for k in range(points):
        heads[k + 1] += heads[k]
    order = np.empty(len(pairs), np.int64)
    filled = heads[:-1].copy()
    for i in range(len(pairs)):
        at = filled[pairs[i, 0]]
        filled[pairs[i, 0]] += 1
        while at > heads[pairs[i, 0]] and pairs[order[at - 1], 1] > pairs[i, 1]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    edges, begins = np.empty((len(pairs), 2), np.int64), np.empty(len(pairs) + 1, np.int64)
    count = 0
    for k in range(len(order)):
        first, second = pairs[order[k], 0], pairs[order[k], 1]
        if count == 0 or edges[count - 1, 0] != first or edges[count - 1, 1] != second:
            edges[count, 0], edges[count, 1], begins[count] = first, second, k
            count += 1
    begins[count] = len(order)
    return order, edges[:count], begins[: count + 1]


@compiled_parallel
def _along(by_quad: Singles, directions: Singles, order: Ints, begins: Ints, result: Singles) -> None:
    for edge in prange(len(begins) - 1):
        for k in range(begins[edge], begins[edge + 1]):
            i = order[k]
            x, y, z = directions[i, 0], directions[i, 1], directions[i, 2]
            for q in range(len(by_quad)):
                block = by_quad[q, edge]
                for m in range(6):
                    result[i, 6 * q + m] = x * block[m] + y * block[6 + m] + z * block[12 + m]


@compiled
def _carriers_along(starts: Ints, columns: Ints, blocks: Floats, ways: Floats, moves: Floats) -> None:
    for quad in range(len(starts) - 1):
        for n in range(starts[quad], starts[quad + 1]):
            for r in range(3):
                for m in range(6):
                    by_quad = blocks[n, 6 * r + m]
                    for k in range(ways.shape[1]):
                        moves[columns[n], r, k] += by_quad * ways[6 * quad + m, k]


@compiled_parallel
def _middles_along(points: Singles, pairs: Ints, directions: Floats, result: Floats) -> None:
    for i in prange(len(pairs)):
        a, b = points[pairs[i, 0]], points[pairs[i, 1]]
        x, y, z = directions[i, 0], directions[i, 1], directions[i, 2]
        for k in range(result.shape[1]):
            result[i, k] = x * (a[0, k] + b[0, k]) + y * (a[1, k] + b[1, k]) + z * (a[2, k] + b[2, k])
