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

__all__ = ["green_coordinates", "green_slopes"]


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
    rows = _layers(points, vertices, faces, 0)[0]
    return rows[:, : len(vertices)], rows[:, len(vertices) :]


def green_slopes(points: Floats, vertices: Floats, faces: Ints) -> tuple[Floats, Floats]:
    """Compute the Green coordinates of points as rows (P, N + F), and their derivatives (3, P, N + F) by the points."""
    return _layers(points, vertices, faces, 3)


def _layers(points: Floats, vertices: Floats, faces: Ints, axes: int) -> tuple[Floats, Floats]:
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
    slopes = np.zeros((axes, *rows.shape))
    _layer_potentials(points, vertices, faces, edges, of_face.reshape(-1, 3), rows, slopes)
    return rows, slopes


class _Faces(NamedTuple):
    """What depends on the faces alone.

    Attributes:
        normals: (F, 3).
        doubled: (F,) areas, doubled.
        lengths: (F, 3) of edges.
        outward: (F, 3, 3) normals of edges in the plane.
        along: (F, 3, 3) the outward normals along each other.
        edge_lengths: (E,).
    """

    normals: Floats
    doubled: Floats
    lengths: Floats
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
    return _Faces(normals, doubled, lengths, outward, along, edge_lengths)


# Ninety lines: one pass over the faces, whose terms the values and their derivatives share.
@compiled_parallel
def _layer_potentials(
    points: Floats, vertices: Floats, faces: Ints, edges: Ints, of_face: Ints, rows: Floats, slopes: Floats
) -> None:
    corners, count = len(vertices), len(faces)
    sloped = len(slopes) == 3
    normals, doubled, lengths, outward, along, edge_lengths = _faces_of(vertices, faces, of_face, len(edges))
    scale = 1.0 / (4.0 * math.pi)
    for i in prange(len(points)):
        r = np.empty((corners, 3))
        distance = np.empty(corners)
        for k in range(corners):
            x, y, z = vertices[k, 0] - points[i, 0], vertices[k, 1] - points[i, 1], vertices[k, 2] - points[i, 2]
            r[k, 0], r[k, 1], r[k, 2] = x, y, z
            distance[k] = math.sqrt(x * x + y * y + z * z)
        # Of each edge: its logarithm, and the derivatives of that and of the solid angles beside it.
        logs = np.empty(len(edges))
        turns = np.empty((len(edges), 6))
        for e in range(len(edges)):
            a, b = edges[e, 0], edges[e, 1]
            length, total = edge_lengths[e], distance[a] + distance[b]
            below = total - length
            if below < 1e-14 * total:  # on the edge itself, where the logarithm is integrably infinite
                below = 1e-14 * total
            logs[e] = math.log((total + length) / below)
            if sloped:
                near = 2.0 / (below * (total + length))
                across = near * total / (distance[a] * distance[b])
                by_a, by_b = near * length / distance[a], near * length / distance[b]
                for k in range(3):
                    turns[e, k] = by_a * r[a, k] + by_b * r[b, k]
                turns[e, 3] = across * (r[a, 1] * r[b, 2] - r[a, 2] * r[b, 1])
                turns[e, 4] = across * (r[a, 2] * r[b, 0] - r[a, 0] * r[b, 2])
                turns[e, 5] = across * (r[a, 0] * r[b, 1] - r[a, 1] * r[b, 0])
        sums = np.empty(3)
        swing = np.empty(3)
        for j in range(count):
            p, q, s = faces[j, 0], faces[j, 1], faces[j, 2]
            nx, ny, nz = normals[j, 0], normals[j, 1], normals[j, 2]
            height = r[p, 0] * nx + r[p, 1] * ny + r[p, 2] * nz
            # Solid angle (Van Oosterom and Strackee 1983); the triple product is height * doubled area.
            dot01 = r[p, 0] * r[q, 0] + r[p, 1] * r[q, 1] + r[p, 2] * r[q, 2]
            dot12 = r[q, 0] * r[s, 0] + r[q, 1] * r[s, 1] + r[q, 2] * r[s, 2]
            dot20 = r[s, 0] * r[p, 0] + r[s, 1] * r[p, 1] + r[s, 2] * r[p, 2]
            denominator = (
                distance[p] * distance[q] * distance[s]
                + dot01 * distance[s]
                + dot12 * distance[p]
                + dot20 * distance[q]
            )
            angle = 2.0 * math.atan2(height * doubled[j], denominator)
            single = -height * angle
            sums[:] = 0.0
            swing[:] = 0.0
            for e in range(3):
                first, edge = faces[j, (e + 1) % 3], of_face[j, e]
                ox, oy, oz = outward[j, e, 0], outward[j, e, 1], outward[j, e, 2]
                # The height drops out of m_e.(a_e - p): m_e lies in the plane.
                single += (ox * r[first, 0] + oy * r[first, 1] + oz * r[first, 2]) * logs[edge]
                sums[0] += ox * logs[edge]
                sums[1] += oy * logs[edge]
                sums[2] += oz * logs[edge]
                if sloped:
                    sign = 1.0 if first == edges[edge, 0] else -1.0
                    for k in range(3):
                        swing[k] += sign * turns[edge, 3 + k]
            rows[i, corners + j] = scale * single
            if sloped:
                for k in range(3):
                    slopes[k, i, corners + j] = scale * (normals[j, k] * angle - sums[k])
            for e in range(3):
                first = faces[j, (e + 1) % 3]
                ox, oy, oz = outward[j, e, 0], outward[j, e, 1], outward[j, e, 2]
                # gradient of hat e = -m_e |e| / (2 A); hat e at p = (m_e . (a_e - p)) |e| / (2 A)
                share = lengths[j, e] / doubled[j]
                hat = (ox * r[first, 0] + oy * r[first, 1] + oz * r[first, 2]) * share
                slope = (ox * sums[0] + oy * sums[1] + oz * sums[2]) * share
                rows[i, faces[j, e]] += scale * (hat * angle + height * slope)
                if sloped:
                    t0, t1, t2 = turns[of_face[j, 0]], turns[of_face[j, 1]], turns[of_face[j, 2]]
                    c = height * share
                    c0, c1, c2 = c * along[j, e, 0], c * along[j, e, 1], c * along[j, e, 2]
                    for k in range(3):
                        rise = -share * angle * outward[j, e, k] + hat * swing[k] - slope * normals[j, k]
                        slopes[k, i, faces[j, e]] += scale * (rise + c0 * t0[k] + c1 * t1[k] + c2 * t2[k])
