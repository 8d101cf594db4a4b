"""Several subjects in one frame: silhouettes split into labelled parts that mean the same subject in every view.

The hull of all silhouettes falls into separate solids; the largest are the subjects (smaller ones are phantoms, where
the cones of different subjects cross). Each is drawn into each view and names the pixels of the silhouette there.
Solids that touch are one subject until they part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from calibration.arrays import Bools, Bytes, Floats
from calibration.errors import InputError
from calibration.rig import Rig
from capture.hull.agreement import mesh_silhouette
from capture.hull.implicit import implicit_hull
from capture.hull.marching import enclosed_volume

__all__ = ["SHARED", "LabelledFrame", "label_subjects"]

#: Label of pixels where one subject hides another.
SHARED = 255


@dataclass(frozen=True, eq=False)
class LabelledFrame:
    """The subjects of one frame.

    Attributes:
        labels: per camera (H, W): 0 background, 1, 2, ... the subjects, `SHARED` where several lie behind each other.
        centres: (n, 3) middle of each subject's vertices, mm; NaN where a subject of the frame before was not found.
        volumes: (n,) mm^3.
    """

    labels: list[Bytes]
    centres: Floats
    volumes: Floats


def label_subjects(
    masks: Sequence[Bools], rig: Rig, most: int, *, previous: LabelledFrame | None = None
) -> LabelledFrame:
    """Split the silhouettes of one frame, one mask (H, W) per camera, into at most ``most`` subjects.

    Subjects are numbered by falling volume, or as the nearest ones of ``previous``.
    """
    if not 1 <= most < SHARED:
        raise InputError(f"subjects: wanted a number from 1 to {SHARED - 1}, got {most}")
    hull = implicit_hull(masks, rig, sharp=False, score=False)
    labels = [np.zeros(mask.shape, dtype=np.uint8) for mask in masks]
    if hull.is_empty:
        return LabelledFrame(labels, np.full((0, 3), np.nan), np.zeros(0))
    first, second = hull.faces[:, [0, 1, 2]].ravel(), hull.faces[:, [1, 2, 0]].ravel()
    size = len(hull.vertices)
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(size, size))
    number, solid = connected_components(graph, directed=False)
    parts = [hull.faces[solid[hull.faces[:, 0]] == index] for index in range(number)]
    volumes = np.array([enclosed_volume(hull.vertices, faces) if len(faces) else 0.0 for faces in parts])
    largest = np.argsort(-volumes, kind="stable")[:most]
    centres = np.array([hull.vertices[solid == index].mean(axis=0) for index in largest])
    names = np.arange(len(largest), dtype=np.int64)
    if previous is not None and len(previous.centres):
        names = _matched(centres, previous.centres)
    all_centres = np.full((int(names.max()) + 1, 3), np.nan)
    all_volumes = np.zeros(len(all_centres))
    all_centres[names], all_volumes[names] = centres, volumes[largest]
    for index, (camera, mask) in enumerate(zip(rig, masks, strict=True)):
        drawn = [mesh_silhouette(camera, hull.vertices, parts[which]) for which in largest]
        labels[index] = _named(mask, drawn, names)
    return LabelledFrame(labels, all_centres, all_volumes)


def _matched(centres: Floats, before: Floats) -> NDArray[np.int64]:
    """Return (n,) numbers of the nearest subjects of the frame before; new ones are counted on."""
    away = np.linalg.norm(centres[:, None] - before[None], axis=2)
    rows, columns = linear_sum_assignment(np.where(np.isfinite(away), away, 1e9))
    names = np.full(len(centres), -1, dtype=np.int64)
    names[rows] = columns
    new = np.flatnonzero(names < 0)
    names[new] = len(before) + np.arange(len(new))
    return names


def _named(mask: Bools, drawn: Sequence[Bools], names: NDArray[np.int64]) -> Bytes:
    """Return (H, W) labels of a silhouette: the subject drawn there, at the rim the nearest one."""
    covered = np.sum(drawn, axis=0)
    away = np.stack([cv2.distanceTransform((~one).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) for one in drawn])
    label: Bytes = (names[away.argmin(axis=0)] + 1).astype(np.uint8)
    label[covered > 1] = SHARED
    label[~mask] = 0
    return label
