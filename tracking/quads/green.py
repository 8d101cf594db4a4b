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
"""

from __future__ import annotations

import math

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled_parallel, prange
from calibration.foundation.errors import InputError

__all__ = ["green_coordinates"]


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
    points = np.ascontiguousarray(points, np.float64)
    vertices = np.ascontiguousarray(vertices, np.float64)
    faces = np.ascontiguousarray(faces, np.int64)
    if points.ndim != 2 or points.shape[1] != 3 or vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(
            f"green_coordinates: points and vertices must be (n, 3), got {points.shape} and {vertices.shape}"
        )
    phi = np.zeros((len(points), len(vertices)))
    psi = np.zeros((len(points), len(faces)))
    _layer_potentials(points, vertices, faces, phi, psi)
    return phi, psi


@compiled_parallel
def _layer_potentials(points: Floats, vertices: Floats, faces: Ints, phi: Floats, psi: Floats) -> None:
    count = len(faces)
    # What depends on the face alone: normal, doubled area, edge lengths, outward edge normals.
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
    scale = 1.0 / (4.0 * math.pi)
    for i in prange(len(points)):
        px, py, pz = points[i, 0], points[i, 1], points[i, 2]
        r = np.empty((3, 3))
        distance = np.empty(3)
        logs = np.empty(3)
        for j in range(count):
            for k in range(3):
                vertex = vertices[faces[j, k]]
                r[k, 0], r[k, 1], r[k, 2] = vertex[0] - px, vertex[1] - py, vertex[2] - pz
                distance[k] = math.sqrt(r[k, 0] * r[k, 0] + r[k, 1] * r[k, 1] + r[k, 2] * r[k, 2])
            nx, ny, nz = normals[j, 0], normals[j, 1], normals[j, 2]
            height = r[0, 0] * nx + r[0, 1] * ny + r[0, 2] * nz
            # Solid angle (Van Oosterom and Strackee 1983); the triple product is height * doubled area.
            dot01 = r[0, 0] * r[1, 0] + r[0, 1] * r[1, 1] + r[0, 2] * r[1, 2]
            dot12 = r[1, 0] * r[2, 0] + r[1, 1] * r[2, 1] + r[1, 2] * r[2, 2]
            dot20 = r[2, 0] * r[0, 0] + r[2, 1] * r[0, 1] + r[2, 2] * r[0, 2]
            denominator = (
                distance[0] * distance[1] * distance[2]
                + dot01 * distance[2]
                + dot12 * distance[0]
                + dot20 * distance[1]
            )
            angle = 2.0 * math.atan2(height * doubled[j], denominator)
            single = -height * angle
            mx, my, mz = 0.0, 0.0, 0.0
            for e in range(3):
                first = (e + 1) % 3
                total = distance[first] + distance[(e + 2) % 3]
                below = total - lengths[j, e]
                if below < 1e-14 * total:  # on the edge itself, where the logarithm is integrably infinite
                    below = 1e-14 * total
                logs[e] = math.log((total + lengths[j, e]) / below)
                ox, oy, oz = outward[j, e, 0], outward[j, e, 1], outward[j, e, 2]
                # The height drops out of m_e.(a_e - p): m_e lies in the plane.
                single += (ox * r[first, 0] + oy * r[first, 1] + oz * r[first, 2]) * logs[e]
                mx += ox * logs[e]
                my += oy * logs[e]
                mz += oz * logs[e]
            psi[i, j] = scale * single
            for e in range(3):
                first = (e + 1) % 3
                ox, oy, oz = outward[j, e, 0], outward[j, e, 1], outward[j, e, 2]
                # gradient of hat e = -m_e |e| / (2 A); hat e at p = (m_e . (a_e - p)) |e| / (2 A)
                share = lengths[j, e] / doubled[j]
                hat = (ox * r[first, 0] + oy * r[first, 1] + oz * r[first, 2]) * share
                slope = (ox * mx + oy * my + oz * mz) * share
                phi[i, faces[j, e]] += scale * (hat * angle + height * slope)
