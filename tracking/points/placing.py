"""Where on a body the points of another program are: by their names first, then as the recording itself shows.

What one program calls a hip lies up to 50 mm from what another does, always on the same side. So once a sequence is
tracked, the mean offset of each point's marks, in the axes of the quad that carries it, is taken as its place, and the
scatter that is left as its sigma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from tracking.observations.marks import Marks
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.subjects.body_points import FIRST_SIGMA, BodyPoints
from tracking.subjects.subject import Subject
from tracking.terms.texture import match_pixels

__all__ = ["Placed", "carriers", "frame_rows", "own_points", "place_points", "points_on", "without_wrong"]

FEWEST = 12
"""Marks without which a point stays where its name puts it."""
LEAST_SIGMA = 4.0
"""Marks are never believed more than this, thousandths of the size."""
WILD = 120.0
"""Marks that scatter more than this say nothing, thousandths."""
WIDEST = 90.0
"""How far, at most, a point is moved from where its name puts it, thousandths."""


def own_points(subject: Subject) -> dict[str, Floats]:
    """Return the coordinates (4 Q + F,) of all joints and virtual markers of a subject, by name; joints go first."""
    rows = dict(zip(subject.joint_names, subject.joint_binding, strict=True))
    for name, vertex in zip(subject.marker_names, subject.marker_vertices, strict=True):
        rows.setdefault(name, subject.template.binding[vertex])
    return rows


def points_on(subject: Subject, names: dict[str, str]) -> BodyPoints:
    """Put named points (a file's name: the subject's own) on a subject."""
    rows = own_points(subject)
    binding = np.array([rows[own] for own in names.values()])
    return BodyPoints(tuple(names), binding, np.full(len(names), FIRST_SIGMA))


@dataclass(frozen=True, eq=False)
class Placed:
    """One frame whose pose is known, and the marks seen in it."""

    pose: QuadPose
    sightings: Marks


def place_points(
    cage_rig: CageRig, points: BodyPoints, frames: Sequence[Placed], camera_rows: Floats, unit: float
) -> BodyPoints:
    """Move points to where their marks were seen on the body.

    Args:
        cage_rig: quads and cage.
        points: as known so far.
        frames: poses and marks.
        camera_rows: (C, 36) packed cameras.
        unit: one thousandth of the subject's size, mm.

    Returns:
        The points with offsets and sigmas of this recording. A point whose marks scatter widely gets a sigma without
        bounds: it has no say.
    """
    count = len(points.names)
    carrier = carriers(cage_rig, points.binding)
    offset = np.zeros((count, 3))
    sigma = points.sigma.copy()
    rows = [frame_rows(cage_rig, points, carrier, one, camera_rows) for one in frames if len(one.sightings)]
    if not rows:
        return points
    owner, directions, residuals = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    for point in range(count):
        ours = owner == point
        if ours.sum() < 2 * FEWEST or not np.isfinite(sigma[point]):
            continue
        offset[point], spread = _robust_offset(directions[ours], residuals[ours], unit)
        sigma[point] = np.inf if spread > WILD * unit else max(spread / unit, LEAST_SIGMA)
        far = float(np.linalg.norm(offset[point]))
        offset[point] *= min(1.0, WIDEST * unit / max(far, 1e-9))
    return replace(points, binding=_moved(cage_rig, points.binding, carrier, offset), sigma=sigma)


def without_wrong(points: BodyPoints, frames: Sequence[Marks]) -> BodyPoints:
    """Take the say from points whose marks contradict silhouettes or other views more often than not in some frames."""
    count = len(points.names)
    given, used = np.zeros(count), np.zeros(count)
    for seen in frames:
        given += np.count_nonzero(seen.status, axis=0)
        used += np.bincount(seen.owner, minlength=count)
    return replace(points, sigma=np.where(used < 0.5 * given, np.inf, points.sigma))


def carriers(cage_rig: CageRig, binding: Floats) -> Ints:
    """(P,) the quad that carries most of each point."""
    quads = len(cage_rig.quads)
    share = np.abs(binding[:, : 4 * quads]).reshape(len(binding), quads, 4).sum(axis=2)
    return np.asarray(np.argmax(share, axis=1), np.int64)


def frame_rows(
    cage_rig: CageRig, points: BodyPoints, carrier: Ints, frame: Placed, camera_rows: Floats
) -> tuple[Ints, Floats, Floats]:
    """Owner, direction in the axes of the carrying quad, and residual (mm) of two rows per mark."""
    seen = frame.sightings
    at = cage_rig.deform(np.ascontiguousarray(points.binding, np.float32), frame.pose)
    matches = match_pixels(at[seen.owner], seen.views, seen.pixels, camera_rows)
    owner = np.repeat(seen.owner, 2)
    local = np.einsum("nij,ni->nj", frame.pose.rotations[carrier[owner]], matches.directions)
    good = matches.weights > 0
    return owner[good], local[good], matches.residuals[good]


def _robust_offset(directions: Floats, residuals: Floats, unit: float) -> tuple[Floats, float]:
    """Offset (3,) that takes the residuals away, and the scatter that is left, 1 sigma along one axis, mm."""
    offset: Floats = np.zeros(3)
    scatter = np.inf
    for _ in range(12):
        left = residuals + directions @ offset
        scatter = 1.4826 * float(np.median(np.abs(left)))
        width = max(2.0 * scatter, LEAST_SIGMA * unit)
        weight = 1.0 / (1.0 + (left / width) ** 2) ** 2
        # Marks of a few views leave depth open: half a sigma of what is usual holds it.
        held = np.eye(3) * (scatter / (FIRST_SIGMA * unit)) ** 2
        system = (directions * weight[:, None]).T @ directions + held
        offset = np.asarray(np.linalg.solve(system, -(directions * weight[:, None]).T @ residuals), np.float64)
    return offset, scatter


def _moved(cage_rig: CageRig, binding: Floats, carrier: Ints, offset: Floats) -> Floats:
    """Move bound points (P, 4 Q + F) by offsets (P, 3) in the axes of the quads that carry them.

    To first order in the coordinates, so that a point that leaves the cage is still carried along.
    """
    rest = cage_rig.quads
    shift = np.einsum("pij,pj->pi", rest.rotations[carrier], offset)
    places = cage_rig.deform(binding, rest.rest)
    step = 0.5
    here = cage_rig.bind(places)
    gradients = [(cage_rig.bind(places + step * axis) - here) / step for axis in np.eye(3)]
    return np.asarray(binding + sum(shift[:, k : k + 1] * gradients[k] for k in range(3)))
