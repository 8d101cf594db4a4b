"""Where a subject's skin lies, vertex by vertex, from the outlines of a few frames.

Lengths and girths of parts (`tracking.adapting.shape_search`) leave hair, clothes, muscles and the build of a person
open: a body of the right proportions still misses its outlines by some 8 mm, and hands and feet are pulled along. So
each vertex of the outline template gets one number more, how far out along its normal it lies. The pairs of outline
samples of all frames, in which each vertex is on the outline in some frames and views, say it by linear least squares;
neighbours keep to each other (`SLOPE`), and all to the body (`HOLD`). Poses and skin take turns.

Outlines do not tell a limb that moved from flesh that moved round it. Flesh may grow and shrink round a quad, but what
is a shift or a turn of all the skin near it is left to the quad (`BALANCE`): otherwise the skin takes up what the
prior's poses are off, and the joints wander from where the body has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve
from scipy.spatial import cKDTree

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.meshes import vertex_normals
from tracking.adapting.scale_search import make_solver
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.template import Template, bare
from tracking.subjects.skin import SkinMover
from tracking.subjects.subject import Subject

__all__ = ["OutlinePairs", "fit_skin", "outline_pairs"]

ROUNDS = 3
"""How often poses and skin take turns."""
SLOPE = 0.8
"""How steeply the skin leaves the body's, 1 sigma: change between neighbouring vertices against their distance."""
HOLD = 40.0
"""How far it lies from the body's, 1 sigma, thousandths of the size."""
BALANCE = 1.0
"""How far the skin round a quad goes as a whole, 1 sigma, thousandths of the size (of a turn: at its mean distance)."""
STEPS = 4
"""Least-squares steps, the pairs weighed anew by what is left of their residuals."""
DIGITS = 2
"""The skin is kept in hundredths of a millimetre: what is written with the results is what was tracked with."""


@dataclass(frozen=True, eq=False)
class OutlinePairs:
    """Pairs of outline samples of several frames: template vertices (N, 2), residuals (N,) mm, shares of outline (N,),
    and how much a pair's residual grows with a millimetre outwards (N,)."""

    vertices: Ints
    residuals: Floats
    shares: Floats
    outward: Floats


def fit_skin(
    mover: SkinMover,
    rig: Rig,
    looks: Mapping[int, Observation],
    fits: Mapping[int, FrameFit],
    settings: Settings,
    *,
    wear: Callable[[Subject], Subject] = lambda subject: subject,
) -> tuple[Floats, dict[int, FrameFit]]:
    """Find how far a subject's skin lies from the body's, from the outlines of some frames.

    Args:
        mover: of the body, of the right lengths and girths.
        rig: cameras.
        looks: silhouettes of each frame.
        fits: of the frames to learn from, by that body.
        settings: of the solver.
        wear: dresses the body; what it wears tells nothing of the skin.

    Returns:
        (V,) how far out the vertices of the outline template lie, mm, and the fits with that skin.
    """
    out = np.zeros(len(mover.subject.outline_template.vertices))
    solver = make_solver(wear(mover.subject), rig, settings)
    for _ in range(ROUNDS):
        out = np.round(_moves(solver, outline_pairs(solver, looks, fits), out), DIGITS)
        solver = make_solver(wear(mover.moved(out, whole=False)), rig, settings)
        fits = {
            frame: solver.fit(looks[frame], fit.pose, fit.latent, latent_steps=False) for frame, fit in fits.items()
        }
    return out, dict(fits)


def outline_pairs(solver: FrameSolver, looks: Mapping[int, Observation], fits: Mapping[int, FrameFit]) -> OutlinePairs:
    """The pairs of all frames' outlines."""
    found = []
    flesh = solver.template.flesh
    for frame, fit in fits.items():
        matches = solver.outline_matches(looks[frame], fit.pose)
        ours = np.ones(len(matches.pairs), np.bool_) if flesh is None else (matches.pairs < flesh).all(axis=1)
        normals = vertex_normals(solver.deform(fit.pose), solver.template.faces)[matches.pairs].sum(axis=1)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
        outward = np.sum(normals * matches.directions, axis=1)
        found.append((matches.pairs[ours], matches.residuals[ours], matches.weights[ours], outward[ours]))
    vertices, residuals, shares, outward = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return OutlinePairs(vertices, residuals, shares, outward)


def _moves(solver: FrameSolver, pairs: OutlinePairs, now: Floats) -> Floats:
    """(V,) how far out each vertex lies, mm, from pairs that were made with the skin as it is ``now`` (V,)."""
    settings, unit, template = solver.settings, solver.unit, bare(solver.template)
    rows, count = np.arange(len(pairs.residuals)), len(template.vertices)
    half = 0.5 * pairs.outward
    by_vertex = sparse.csr_matrix(
        (np.r_[half, half], (np.r_[rows, rows], pairs.vertices.T.ravel())), shape=(len(rows), count)
    )
    whole = _whole_moves(template, solver.cage_rig.quads.centres)
    stiff = _stiffness(template) + sparse.identity(count) / (HOLD * unit) ** 2
    stiff = stiff + whole.T @ whole / (BALANCE * unit) ** 2
    scale = settings.robust[-1] * unit
    share = pairs.shares / ((settings.contour_sigma * unit) ** 2 * settings.contour_length * unit)
    out = now
    for _ in range(STEPS):
        left = pairs.residuals + by_vertex @ (out - now)
        weight = share / (1.0 + (left / scale) ** 2) ** 2
        hessian = by_vertex.T @ sparse.diags(weight) @ by_vertex + stiff
        out = out - spsolve(hessian.tocsc(), by_vertex.T @ (weight * left) + stiff @ out)
    return np.asarray(out)


def _stiffness(template: Template) -> sparse.csr_matrix:
    """Curvature (V, V) of what neighbours keep to each other."""
    faces = template.faces
    edges = np.unique(np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1), axis=0)
    length = np.linalg.norm(template.vertices[edges[:, 0]] - template.vertices[edges[:, 1]], axis=1)
    unit = 1.0 / (SLOPE * np.maximum(length, 1e-3 * length.max()))
    rows = np.arange(len(edges))
    change = sparse.csr_matrix(
        (np.r_[unit, -unit], (np.r_[rows, rows], edges.T.ravel())), shape=(len(edges), len(template.vertices))
    )
    return sparse.csr_matrix(change.T @ change)


def _whole_moves(template: Template, centres: Floats) -> sparse.csr_matrix:
    """(6 Q, V) shift and turn of the skin nearest to each quad (centres (Q, 3)) as a whole, by how far out it lies."""
    normals = vertex_normals(template.vertices, template.faces)
    corners = template.vertices[template.faces]
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    share = np.asarray(np.bincount(template.faces.ravel(), np.repeat(area, 3), len(normals)), float)
    owner = np.asarray(cKDTree(centres).query(template.vertices)[1], np.int64)
    share = share / np.maximum(np.bincount(owner, share, len(centres))[owner], 1e-12)
    arm = template.vertices - centres[owner]
    reach = np.bincount(owner, share * np.linalg.norm(arm, axis=1), len(centres))
    turn = np.cross(arm, normals) / np.maximum(reach[owner], 1e-9)[:, None]
    values = share[:, None] * np.concatenate([normals, turn], axis=1)
    rows = 6 * owner[:, None] + np.arange(6)
    columns = np.broadcast_to(np.arange(len(normals))[:, None], rows.shape)
    return sparse.csr_matrix((values.ravel(), (rows.ravel(), columns.ravel())), shape=(6 * len(centres), len(normals)))
