"""Several subjects in one frame: silhouettes split into parts that mean the same subject in every view.

The hull of all silhouettes falls into separate solids; the largest are the subjects (smaller ones are phantoms, where
the cones of different subjects cross, or crumbs of a thin part). Each is drawn into each view and names the pixels of
the silhouette there. Where one hides another the pixels belong to both: a silhouette may be too large, never too small.
Subjects that touch with a thin part (a tail, a paw) are told apart by the hull of silhouettes that are shrunk a little;
those that touch with their bodies are one solid until they part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from calibration.arrays import Bools, Floats
from calibration.errors import InputError
from calibration.rig import Rig
from capture.background_appearance import disc
from capture.hull.agreement import mesh_silhouette
from capture.hull.implicit import implicit_hull
from capture.hull.marching import enclosed_volume

__all__ = ["MOST_SUBJECTS", "Solid", "solids_of"]

#: More than this are not told apart.
MOST_SUBJECTS = 16
#: A solid smaller than this share of the largest is no subject.
_LEAST_SHARE = 0.2
#: How much silhouettes are shrunk if there are fewer solids than subjects: shares of their largest half-thickness.
_SHRINKING = (0.0, 0.15, 0.3)


@dataclass(frozen=True, eq=False)
class Solid:
    """One connected part of the hull of a frame.

    Attributes:
        centre: (3,) middle of its vertices, mm.
        low, high: (3,) corners of its box, mm.
        volume: mm^3.
        masks: per camera (H, W): the part of the silhouette that may show it.
    """

    centre: Floats
    low: Floats
    high: Floats
    volume: float
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
    solids: list[Solid] = []
    thickness = np.median([cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, 3).max() for mask in masks])
    for share in _SHRINKING:
        found = _solids(masks, rig, most, views, round(share * float(thickness)))
        if share == 0.0 or len(found) == most:
            solids = found
        if len(found) in (0, most):
            break
    return solids


def _solids(masks: Sequence[Bools], rig: Rig, most: int, views: Bools | None, shrunk_px: int) -> list[Solid]:
    """Return the solids in the hull of silhouettes shrunk by some pixels, with their shares of the whole ones."""
    kernel = disc(shrunk_px)
    cores = masks if shrunk_px == 0 else [cv2.erode(mask.view(np.uint8), kernel).view(np.bool_) for mask in masks]
    hull = implicit_hull(cores, rig, views=views, sharp=False, score=False)
    if hull.is_empty:
        return []
    first, second = hull.faces[:, [0, 1, 2]].ravel(), hull.faces[:, [1, 2, 0]].ravel()
    size = len(hull.vertices)
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(size, size))
    number, part = connected_components(graph, directed=False)
    pieces = [hull.faces[part[hull.faces[:, 0]] == index] for index in range(number)]
    volumes = np.array([enclosed_volume(hull.vertices, faces) if len(faces) else 0.0 for faces in pieces])
    chosen = [int(k) for k in np.argsort(-volumes, kind="stable")[:most] if volumes[k] >= _LEAST_SHARE * volumes.max()]
    named: list[list[Bools]] = [[] for _ in chosen]
    for camera, mask in zip(rig, masks, strict=True):
        drawn = [mesh_silhouette(camera, hull.vertices, pieces[index]) for index in chosen]
        if shrunk_px:
            drawn = [cv2.dilate(one.view(np.uint8), kernel).view(np.bool_) for one in drawn]
        for own, pixels in zip(named, _shares(mask, drawn), strict=True):
            own.append(pixels)
    solids = []
    for index, own in zip(chosen, named, strict=True):
        points = hull.vertices[part == index]
        solids.append(Solid(points.mean(axis=0), points.min(axis=0), points.max(axis=0), float(volumes[index]), own))
    return solids


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
