"""Green coordinates in 3D (Lipman, Levin, Cohen-Or 2008), from closed forms.

A point eta inside a closed cage with vertices v_i and faces t_j (unit outward normals n_j) is written
``eta = sum_i phi_i v_i + sum_j psi_j n_j`` (Duveau et al. 2012, eq. 1), with layer potentials of Laplace's equation::

    psi_j = 1/(4 pi) int_{t_j} dS / R                    single layer
    phi_i = 1/(4 pi) int hat_i(xi) (xi - eta).n / R^3 dS     double layer, hat_i the piecewise linear hat of v_i

Lipman et al. integrate them in polar coordinates about each triangle's edges. The same integrals are had from three
edge logarithms f_e and one solid angle per face, without their removable singularities. With eta's projection
p on the face's plane at height d = (v - eta).n, edge e's outward in-plane normal m_e and g_l the gradient of hat l::

    f_e   = log((R_a + R_b + L) / (R_a + R_b - L))
    psi   = (sum_e m_e.(a_e - p) f_e - d Omega) / (4 pi)
    phi_l = (hat_l(p) Omega - d g_l . sum_e m_e f_e) / (4 pi)

Their derivatives by eta need no further logarithm: with S = R_a + R_b and r = v - eta::

    grad f_e   = 2 L / (S^2 - L^2) (r_a / R_a + r_b / R_b)
    grad Omega = sum_e 2 S / (R_a R_b (S^2 - L^2)) r_a x r_b
    grad psi   = (n Omega - sum_e m_e f_e) / (4 pi)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled, compiled_parallel, prange
from calibration.foundation.errors import InputError
from calibration.geometry.elementary_kernels import angles, logarithms

__all__ = ["green_along", "green_coordinates", "green_slopes"]


def green_coordinates(points: Floats, vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Compute the Green coordinates of points in a closed triangle cage.

    Args:
        points: (P, 3) positions, mm; meant to lie strictly inside the cage (a point outside gets sum(phi) = 0).
        vertices: (N, 3) cage vertices, mm.
        faces: (F, 3) vertex indices, counter-clockwise seen from outside.

    Returns:
        phi: (P, N) vertex coordinates, no unit; each row sums to 1 inside.
        psi: (P, F) face coordinates, mm.
    """
    rows = _layers(points, vertices, faces, np.empty((0, 1, 3)))[0]
    return rows[:, : len(vertices)], rows[:, len(vertices) :]


def green_slopes(points: Floats, vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Compute the Green coordinates of points as rows (P, N + F), and their derivatives (3, P, N + F) by the points."""
    return _layers(points, vertices, faces, np.eye(3)[:, None])


def green_along(points: Floats, ways: Floats, vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Compute the Green coordinates of points as rows (P, N + F), and how they change (P, N + F) along ``ways`` (P, 3).

    A third of the numbers of `green_slopes`, where one way of each point is all that is asked.
    """
    rows, slopes = _layers(points, vertices, faces, np.asarray(ways, np.float64)[None])
    return rows, slopes[0]


def _layers(points: Floats, vertices: Floats, faces: Ints, ways: Floats) -> tuple[Floats, Floats]:
    """Return rows (P, N + F), and their derivatives (K, P, N + F) along K ways of each point, (K, P or 1, 3)."""
    points = np.ascontiguousarray(points, np.float64)
    vertices = np.ascontiguousarray(vertices, np.float64)
    faces = np.ascontiguousarray(faces, np.int64)
    if points.ndim != 2 or points.shape[1] != 3 or vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(
            f"green_coordinates: points and vertices must be (n, 3), got {points.shape} and {vertices.shape}"
        )
    # Edge e of a face is opposite its vertex e; the two faces of an edge share its logarithm.
    pairs = np.sort(np.stack([np.roll(faces, -1, axis=1), np.roll(faces, -2, axis=1)], axis=2).reshape(-1, 2), axis=1)
    edges, of_face = np.unique(pairs, axis=0, return_inverse=True)
    rows = np.zeros((len(points), len(vertices) + len(faces)))
    slopes = np.zeros((len(ways), *rows.shape))
    _layer_potentials(points, np.ascontiguousarray(ways), vertices, faces, edges, of_face.reshape(-1, 3), rows, slopes)
    return rows, slopes


class _Faces(NamedTuple):
    """What depends on the faces alone.

    Attributes:
        normals: (F, 3).
        doubled: (F,) areas, doubled.
        shares: (F, 3) lengths of edges over doubled areas.
        outward: (F, 3, 3) normals of edges in the plane.
        along: (F, 3, 3) the outward normals along each other.
        edge_lengths: (E,).
    """

    normals: Floats
    doubled: Floats
    shares: Floats
    outward: Floats
    along: Floats
    edge_lengths: Floats


@compiled
def _faces_of(vertices: Floats, faces: Ints, of_face: Ints, edges: int) -> _Faces:
    count = len(faces)
    normals = np.empty((count, 3))
    doubled = np.empty(count)
    lengths = np.empty((count, 3))
    outward = np.empty((count, 3, 3))
    for j in range(count):
        a, b, c = vertices[faces[j, 0]], vertices[faces[j, 1]], vertices[faces[j, 2]]
        ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        doubled[j] = math.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = nx / doubled[j], ny / doubled[j], nz / doubled[j]
        normals[j, 0], normals[j, 1], normals[j, 2] = nx, ny, nz
        for e in range(3):  # edge e is opposite vertex e
            first, second = vertices[faces[j, (e + 1) % 3]], vertices[faces[j, (e + 2) % 3]]
            ex, ey, ez = second[0] - first[0], second[1] - first[1], second[2] - first[2]
            length = math.sqrt(ex * ex + ey * ey + ez * ez)
            lengths[j, e] = length
            outward[j, e, 0] = (ey * nz - ez * ny) / length
            outward[j, e, 1] = (ez * nx - ex * nz) / length
            outward[j, e, 2] = (ex * ny - ey * nx) / length
    edge_lengths = np.empty(edges)
    along = np.empty((count, 3, 3))
    for j in range(count):
        for e in range(3):
            edge_lengths[of_face[j, e]] = lengths[j, e]
            for k in range(3):
                along[j, e, k] = (
                    outward[j, e, 0] * outward[j, k, 0]
                    + outward[j, e, 1] * outward[j, k, 1]
                    + outward[j, e, 2] * outward[j, k, 2]
                )
    return _Faces(normals, doubled, lengths / doubled.reshape(-1, 1), outward, along, edge_lengths)


@compiled
def _dot(a: Floats, b: Floats) -> float:
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


# Ninety lines: one pass over the faces, whose terms the values and their derivatives share.
@compiled_parallel
def _layer_potentials(
    points: Floats,
    ways: Floats,
    vertices: Floats,
    faces: Ints,
    edges: Ints,
    of_face: Ints,
    rows: Floats,
    slopes: Floats,
) -> None:
    corners, count, sought = len(vertices), len(faces), len(ways)
    normals, doubled, shares, outward, along, edge_lengths = _faces_of(vertices, faces, of_face, len(edges))
    signs = np.empty((count, 3))
    for j in range(count):
        for e in range(3):
            signs[j, e] = 1.0 if faces[j, (e + 1) % 3] == edges[of_face[j, e], 0] else -1.0
    scale = 1.0 / (4.0 * math.pi)
    for i in prange(len(points)):
        r = np.empty((corners, 3))
        distance = np.empty(corners)
        for k in range(corners):
            x, y, z = vertices[k, 0] - points[i, 0], vertices[k, 1] - points[i, 1], vertices[k, 2] - points[i, 2]
            r[k, 0], r[k, 1], r[k, 2] = x, y, z
            distance[k] = math.sqrt(x * x + y * y + z * z)
        # Of each edge: its logarithm, and the derivatives of that and of the solid angles beside it, along each way.
        ratios, logs = np.empty(len(edges)), np.empty(len(edges))
        stretches, swings = np.empty((len(edges), sought)), np.empty((len(edges), sought))
        cross = np.empty(3)
        for e in range(len(edges)):
            a, b = r[edges[e, 0]], r[edges[e, 1]]
            far, near = distance[edges[e, 0]], distance[edges[e, 1]]
            length, total = edge_lengths[e], far + near
            below = total - length
            if below < 1e-14 * total:  # on the edge itself, where the logarithm is integrably infinite
                below = 1e-14 * total
            ratios[e] = (total + length) / below
            if sought:
                factor = 2.0 / (below * (total + length))
                across = factor * total / (far * near)
                by_a, by_b = factor * length / far, factor * length / near
                cross[0] = across * (a[1] * b[2] - a[2] * b[1])
                cross[1] = across * (a[2] * b[0] - a[0] * b[2])
                cross[2] = across * (a[0] * b[1] - a[1] * b[0])
                for k in range(sought):
                    way = ways[k, i % ways.shape[1]]
                    stretches[e, k] = by_a * _dot(a, way) + by_b * _dot(b, way)
                    swings[e, k] = _dot(cross, way)
        logarithms(ratios, logs)
        heights, solid, across, along_it = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
        for j in range(count):
            a, b, c = r[faces[j, 0]], r[faces[j, 1]], r[faces[j, 2]]
            la, lb, lc = distance[faces[j, 0]], distance[faces[j, 1]], distance[faces[j, 2]]
            heights[j] = _dot(a, normals[j])
            # Half the solid angle (Van Oosterom and Strackee 1983); the triple product is height * doubled area.
            across[j] = heights[j] * doubled[j]
            along_it[j] = la * lb * lc + _dot(a, b) * lc + _dot(b, c) * la + _dot(c, a) * lb
        angles(across, along_it, solid)
        sums, hats, bends = np.empty(3), np.empty(3), np.empty(3)
        for j in range(count):
            height, angle = heights[j], 2.0 * solid[j]
            single = -height * angle
            sums[:] = 0.0
            for e in range(3):
                edge = of_face[j, e]
                # The height drops out of m_e.(a_e - p): m_e lies in the plane.
                hats[e] = _dot(outward[j, e], r[faces[j, (e + 1) % 3]])
                single += hats[e] * logs[edge]
                for k in range(3):
                    sums[k] += outward[j, e, k] * logs[edge]
            rows[i, corners + j] = scale * single
            for e in range(3):
                # gradient of hat e = -m_e |e| / (2 A); hat e at p = (m_e . (a_e - p)) |e| / (2 A)
                hats[e] *= shares[j, e]
                bends[e] = _dot(outward[j, e], sums) * shares[j, e]
                rows[i, faces[j, e]] += scale * (hats[e] * angle + height * bends[e])
            for k in range(sought):
                x, y, z = ways[k, i % ways.shape[1]]
                t0, t1, t2 = stretches[of_face[j, 0], k], stretches[of_face[j, 1], k], stretches[of_face[j, 2], k]
                # A face goes round its edges one way, an edge is stored in one: their signs.
                turn = signs[j, 0] * swings[of_face[j, 0], k]
                turn += signs[j, 1] * swings[of_face[j, 1], k]
                turn += signs[j, 2] * swings[of_face[j, 2], k]
                up = normals[j, 0] * x + normals[j, 1] * y + normals[j, 2] * z
                slopes[k, i, corners + j] = scale * (up * angle - (sums[0] * x + sums[1] * y + sums[2] * z))
                for e in range(3):
                    out = outward[j, e, 0] * x + outward[j, e, 1] * y + outward[j, e, 2] * z
                    lever = height * shares[j, e]
                    rise = -shares[j, e] * angle * out + hats[e] * turn - bends[e] * up
                    rise += lever * along[j, e, 0] * t0
                    rise += lever * along[j, e, 1] * t1
                    rise += lever * along[j, e, 2] * t2
                    slopes[k, i, faces[j, e]] += scale * rise
