"""Several subjects in one frame: silhouettes split into parts that mean the same subject in every view.

The hull of all silhouettes falls into separate solids; the largest are the subjects (smaller ones are phantoms, where
the cones of different subjects cross, or crumbs of a thin part). Each is drawn into each view and names the pixels of
the silhouette there. Where one hides another the pixels belong to both: a silhouette may be too large, never too small.
Subjects that touch with a thin part (a tail, a paw) are told apart by the hull of silhouettes that are shrunk a little:
each point of the surface belongs to the core it is nearest to, along the surface. Those that touch with their bodies
are one solid until they part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from capture.discs import disc
from capture.hull.agreement import mesh_silhouette
from capture.hull.implicit import implicit_hull
from capture.hull.marching import enclosed_volume
from capture.hull.result import Hull

__all__ = ["MOST_SUBJECTS", "Solid", "solids_of"]

#: More than this are not told apart.
MOST_SUBJECTS = 16
#: A solid smaller than this share of the largest is no subject.
_LEAST_SHARE = 0.2
#: How much silhouettes are shrunk if there are fewer solids than subjects: shares of their largest half-thickness.
_SHRINKING = (0.15, 0.3)


@dataclass(frozen=True, eq=False)
class Solid:
    """One connected part of the hull of a frame.

    Attributes:
        centre: (3,) middle of its vertices, mm.
        low, high: (3,) corners of its box, mm.
        masks: per camera (H, W): the part of the silhouette that may show it.
    """

    centre: Floats
    low: Floats
    high: Floats
    masks: list[Bools]


def solids_of(masks: Sequence[Bools], rig: Rig, most: int, *, views: Bools | None = None) -> list[Solid]:
    """Return the solids in the hull of one frame that are large enough for a subject, by falling volume.

    Args:
        masks: one (H, W) per camera.
        rig: the cameras.
        most: return that many at most.
        views: (C,) False leaves a view out of the hull; its silhouette is split all the same.
    """
    if not 1 <= most <= MOST_SUBJECTS:
        raise InputError(f"subjects: wanted a number from 1 to {MOST_SUBJECTS}, got {most}")
    hull = implicit_hull(masks, rig, views=views, sharp=False, score=False)
    if hull.is_empty:
        return []
    count, label = _largest(hull, most)
    if count < most:
        count, label = _by_cores(masks, rig, most, views, hull) or (count, label)
    pieces = [hull.faces[label[hull.faces[:, 0]] == index] for index in range(count)]
    named: list[list[Bools]] = [[] for _ in pieces]
    for camera, mask in zip(rig, masks, strict=True):
        drawn = [mesh_silhouette(camera, hull.vertices, faces) for faces in pieces]
        for own, pixels in zip(named, _shares(mask, drawn), strict=True):
            own.append(pixels)
    solids = []
    for index, own in enumerate(named):
        points = hull.vertices[label == index]
        solids.append(Solid(points.mean(axis=0), points.min(axis=0), points.max(axis=0), own))
    return solids


def _graph(hull: Hull) -> coo_array:
    """Return the edges of a hull's mesh with their lengths, mm, as a sparse (V, V) matrix."""
    first, second = hull.faces[:, [0, 1, 2]].ravel(), hull.faces[:, [1, 2, 0]].ravel()
    length = np.linalg.norm(hull.vertices[first] - hull.vertices[second], axis=1) + 1e-9
    forward = first < second  # each edge belongs to two faces, once in each direction
    size = len(hull.vertices)
    return coo_array((length[forward], (first[forward], second[forward])), shape=(size, size))


def _largest(hull: Hull, most: int) -> tuple[int, Ints]:
    """Return how many parts of a hull are large enough for a subject, and (V,) which each vertex is of; -1: none."""
    number, part = connected_components(_graph(hull), directed=False)
    volumes = np.array([enclosed_volume(hull.vertices, hull.faces[part[hull.faces[:, 0]] == k]) for k in range(number)])
    chosen = [int(k) for k in np.argsort(-volumes, kind="stable")[:most] if volumes[k] >= _LEAST_SHARE * volumes.max()]
    label = np.full(number, -1, dtype=np.int64)
    label[chosen] = np.arange(len(chosen))
    return len(chosen), label[part]


def _by_cores(masks: Sequence[Bools], rig: Rig, most: int, views: Bools | None, hull: Hull) -> tuple[int, Ints] | None:
    """Tell the vertices of a hull apart by which core they are nearest to along the surface; None without cores.

    The cores are the parts of the hull of silhouettes that are shrunk, so that what joins the subjects is gone.
    """
    thickness = np.median([cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, 3).max() for mask in masks])
    for share in _SHRINKING:
        kernel = disc(max(1, round(share * float(thickness))))
        shrunk = [cv2.erode(mask.view(np.uint8), kernel).view(np.bool_) for mask in masks]
        core = implicit_hull(shrunk, rig, views=views, sharp=False, score=False)
        count, label = (0, np.zeros(0, dtype=np.int64)) if core.is_empty else _largest(core, most)
        if count < most:
            continue
        inner = np.flatnonzero(label >= 0)
        _, above = cKDTree(hull.vertices).query(core.vertices[inner])
        seeds, which = np.unique(above, return_index=True)
        away, _, source = dijkstra(_graph(hull), directed=False, indices=seeds, min_only=True, return_predecessors=True)
        named = np.full(len(hull.vertices), -1, dtype=np.int64)
        named[seeds] = label[inner[which]]
        reached = np.isfinite(away)
        named[reached] = named[source[reached]]
        return count, named
    return None


def _shares(mask: Bools, drawn: Sequence[Bools]) -> list[Bools]:
    """Return each solid's pixels (H, W) of a silhouette: where it is drawn, and what hangs together with it.

    Pixels without a solid (a tail too thin for the hull's cells) that hang together with several go to the nearest.
    """
    if len(drawn) == 1:
        return [mask.copy()]
    away = np.stack([cv2.distanceTransform((~one).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) for one in drawn])
    count, blob = cv2.connectedComponents(mask.view(np.uint8), connectivity=8)
    held = np.array([np.bincount(blob[mask & one], minlength=count) > 0 for one in drawn])  # (solids, blobs)
    open_to = held | ~held.any(axis=0)
    nearest = np.where(open_to[:, blob], away, np.inf).argmin(axis=0)
    free = ~np.any(drawn, axis=0)
    return [mask & (one | (free & (nearest == index))) for index, one in enumerate(drawn)]
