"""Skin weights by heat diffusion over the surface, and dual quaternion skinning.

Weights (Baran and Popovic 2007): for each segment solve ``(L + H) w = H p`` where ``L`` is the mesh Laplacian, ``p``
is 1 on the vertices whose nearest flesh belongs to the segment and ``H = heat / d^2`` pulls harder near the bone.
Deformation (Kavan et al. 2008): ``b = sum_i w_i q_i``, normalised; rigid where one weight is 1, no collapse in twists.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.geometry.transforms import quaternion_from_rotation

__all__ = ["dual_quaternions", "heat_weights", "skin_frames", "strongest", "vertex_areas"]


def heat_weights(points: Floats, faces: Ints, owner: Ints, depth: Floats, segments: int, heat: float) -> Floats:
    """Return weights (V, J), rows summing to 1.

    ``owner`` (V,) is the segment whose flesh forms the surface there, ``depth`` (V,) the distance to its bone, mm.
    """
    laplacian, area = _cotangent(points, faces), vertex_areas(points, faces)
    pull = heat * area / np.maximum(depth, 1e-6) ** 2
    system = splu(sparse.csc_matrix(laplacian + sparse.diags(pull)))
    present = np.unique(owner)
    source = np.zeros((len(points), len(present)))
    for column, segment in enumerate(present):
        source[owner == segment, column] = pull[owner == segment]
    weights = np.zeros((len(points), segments))
    weights[:, present] = np.clip(system.solve(source), 0.0, None)
    return np.asarray(weights / weights.sum(1, keepdims=True))


def vertex_areas(points: Floats, faces: Ints) -> Floats:
    """Return the area (V,) of a third of each vertex's triangles, mm^2."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    third = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 6
    return np.asarray(np.bincount(faces.ravel(), np.repeat(third, 3), len(points)))


def _cotangent(points: Floats, faces: Ints) -> sparse.csr_matrix:
    """Return the cotangent Laplacian, positive semi-definite."""
    count = len(points)
    rows, columns, values = [], [], []
    for k in range(3):
        i, j, o = faces[:, k], faces[:, (k + 1) % 3], faces[:, (k + 2) % 3]
        u, v = points[i] - points[o], points[j] - points[o]
        cross = np.linalg.norm(np.cross(u, v), axis=1)
        # Slivers have huge cotangents of either sign: bounded, the diffusion stays monotone.
        cotangent = np.clip(np.einsum("ij,ij->i", u, v) / np.maximum(cross, 1e-12), 0.05, 5.0) / 2
        rows += [i, j, i, j]
        columns += [j, i, i, j]
        values += [-cotangent, -cotangent, cotangent, cotangent]
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_matrix(entries, shape=(count, count))


def strongest(weights: Floats, influences: int) -> tuple[Ints, Floats]:
    """Return the segments (V, K) with the largest weights, largest first, and those weights normalised (V, K)."""
    order = np.argsort(-weights, axis=1, kind="stable")[:, :influences]
    kept = np.take_along_axis(weights, order, axis=1)
    # The smallest kept weight goes to zero smoothly, so that the cut leaves no step in the surface.
    dropped = np.take_along_axis(weights, np.argsort(-weights, axis=1, kind="stable"), axis=1)[:, influences]
    kept = np.maximum(kept - dropped[:, None], 0.0) * (kept > 0)
    return order.astype(np.int64), kept / kept.sum(1, keepdims=True)


def dual_quaternions(rotations: Floats, translations: Floats) -> Floats:
    """Return unit dual quaternions (..., 8), real part wxyz first, of rigid motions ``x -> R x + t``."""
    real = quaternion_from_rotation(rotations)
    w, x, y, z = np.moveaxis(real, -1, 0)
    a, b, c = np.moveaxis(translations, -1, 0)
    dual = 0.5 * np.stack(
        [-a * x - b * y - c * z, a * w + b * z - c * y, b * w + c * x - a * z, c * w + a * y - b * x], axis=-1
    )
    return np.concatenate([real, dual], axis=-1)


@compiled
def skin_frames(
    points: Floats, normals: Floats, segments: Ints, weights: Floats, motions: Floats, out: Floats, turned: Floats
) -> None:
    """Deform points (V, 3) and normals (V, 3) by motions (T, J, 8) into ``out`` and ``turned`` (T, V, 3).

    ``points`` may be (T, V, 3) per frame if its first axis is T, else (1, V, 3) for all frames.
    """
    q = np.empty(8)
    for t in range(motions.shape[0]):
        source = t if points.shape[0] > 1 else 0
        for v in range(points.shape[1]):
            for k in range(8):
                q[k] = 0.0
            lead = motions[t, segments[v, 0]]
            for i in range(segments.shape[1]):
                w = weights[v, i]
                if w == 0.0:
                    continue
                m = motions[t, segments[v, i]]
                # q and -q are one rotation: take the one on the side of the strongest segment.
                if m[0] * lead[0] + m[1] * lead[1] + m[2] * lead[2] + m[3] * lead[3] < 0.0:
                    w = -w
                for k in range(8):
                    q[k] += w * m[k]
            scale = 1.0 / math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
            for k in range(8):
                q[k] *= scale
            for pas in range(2):
                if pas == 0:
                    px, py, pz = points[source, v, 0], points[source, v, 1], points[source, v, 2]
                else:
                    px, py, pz = normals[v, 0], normals[v, 1], normals[v, 2]
                # x' = x + 2 r x (r x x + w x)
                cx = q[2] * pz - q[3] * py + q[0] * px
                cy = q[3] * px - q[1] * pz + q[0] * py
                cz = q[1] * py - q[2] * px + q[0] * pz
                rx = px + 2.0 * (q[2] * cz - q[3] * cy)
                ry = py + 2.0 * (q[3] * cx - q[1] * cz)
                rz = pz + 2.0 * (q[1] * cy - q[2] * cx)
                if pas == 0:
                    # t = 2 (w d - d0 r + r x d)
                    out[t, v, 0] = rx + 2.0 * (q[0] * q[5] - q[4] * q[1] + q[2] * q[7] - q[3] * q[6])
                    out[t, v, 1] = ry + 2.0 * (q[0] * q[6] - q[4] * q[2] + q[3] * q[5] - q[1] * q[7])
                    out[t, v, 2] = rz + 2.0 * (q[0] * q[7] - q[4] * q[3] + q[1] * q[6] - q[2] * q[5])
                else:
                    turned[t, v, 0], turned[t, v, 1], turned[t, v, 2] = rx, ry, rz
