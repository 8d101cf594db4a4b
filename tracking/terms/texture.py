"""Marks on the skin as data: they see twist about a limb's axis and sliding along it, which no outline does.

A mark followed through the images of one camera (`tracking.observations.feature_tracks`) is one and the same spot of
skin. Where it lies on the template is not known beforehand; the fits of all frames that saw it say where, each with its
own error. All frames are then fitted again at once (`tracking.fitting.joint_fit`), so that one spot, wherever it is,
falls on the pixels where the mark was seen. So twist and slide of the frames are made one with each other, without a
first frame that would rule the others; what is wrong in the same way in all frames no texture can tell.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calibration.cameras.projection import project_point, project_point_with_jacobian
from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.compiled import compiled, compiled_parallel, prange
from tracking.observations.feature_tracks import FeatureTracks
from tracking.quads.template import Template
from tracking.terms.silhouette import Matches

__all__ = ["FrameMarks", "SkinMarks", "bind_tracks", "face_frames", "match_marks", "match_pixels"]

SHORTEST = 4
"""Frames that must have seen a mark, and agree where on the skin it is."""


@dataclass(frozen=True, eq=False)
class FrameMarks:
    """The marks that one frame saw.

    Attributes:
        binding: (N, 4 Q + F) coordinates of their spots on the template.
        views: (N,) camera.
        pixels: (N, 2) where they were seen, px.
        marks: (N,) which marks they are.
        faces: (N,) a face of the template at the spot.
    """

    binding: Singles
    views: Ints
    pixels: Floats
    marks: Ints
    faces: Ints


@dataclass(frozen=True, eq=False)
class SkinMarks:
    """Marks of a sequence whose spots on the template are known.

    Attributes:
        binding: (K, 4 Q + F) coordinates of the spots.
        faces: (K,) a face of the template at each spot.
        normals: (K, 3) its unit normal, template at rest.
        frames, views, marks: (N,) frame, camera and spot of each sighting, frames ascending.
        pixels: (N, 2) px.
    """

    binding: Singles
    faces: Ints
    normals: Floats
    frames: Ints
    views: Ints
    marks: Ints
    pixels: Floats

    def __len__(self) -> int:
        """Return the number of sightings."""
        return len(self.frames)

    def at(self, frame: int) -> FrameMarks:
        """Return the marks seen in one frame."""
        rows = slice(*np.searchsorted(self.frames, [frame, frame + 1]))
        marks = self.marks[rows]
        return FrameMarks(self.binding[marks], self.views[rows], self.pixels[rows], marks, self.faces[marks])

    def held(self, along: float, across: float) -> Floats:
        """Return (K, 3, 3) the curvature that holds each spot, 1 sigma along the skin and across it, mm."""
        outer = self.normals[:, :, None] * self.normals[:, None, :]
        return np.asarray((np.eye(3) - outer) / along**2 + outer / across**2)


def bind_tracks(
    tracks: FeatureTracks,
    template: Template,
    surface: Callable[[int], Floats | None],
    camera_rows: Floats,
    centres: Floats,
    *,
    gate: float,
) -> SkinMarks:
    """Find the spot of each mark on a template that has been fitted to the frames.

    Args:
        tracks: marks followed in the images.
        template: closed mesh, bound to its cage.
        surface: gives the template (V, 3) as fitted to a frame, mm; None where there is no fit.
        camera_rows: (C, 36) packed cameras.
        centres: (C, 3) their centres, mm.
        gate: sightings further than this from the mark's middle, on the template at rest, are of something else, mm.
    """
    faces = np.ascontiguousarray(template.faces, np.int64)
    face = np.full(len(tracks), -1, np.int64)
    shares = np.zeros((len(tracks), 3))
    edges = np.searchsorted(tracks.frames, np.arange(int(tracks.frames.max(initial=-1)) + 2))
    for frame in range(len(edges) - 1):
        rows = slice(edges[frame], edges[frame + 1])
        vertices = surface(frame) if edges[frame] < edges[frame + 1] else None
        if vertices is not None:
            _cast_views(
                np.ascontiguousarray(vertices, np.float64), faces, camera_rows, centres, tracks.views[rows],
                tracks.pixels[rows], face[rows], shares[rows],
            )  # fmt: skip
    # What is seen of clothes says nothing of the body below.
    flesh = len(template.vertices) if template.flesh is None else template.flesh
    hit = np.flatnonzero((face >= 0) & (faces[face].max(axis=1) < flesh))
    where = np.einsum("nk,nki->ni", shares[hit], template.vertices[faces[face[hit]]])
    order = np.argsort(tracks.tracks[hit], kind="stable")
    hit, where = hit[order], where[order]
    keep, mark, count = _gather(tracks.tracks[hit], where, gate)
    hit, mark = hit[keep], mark[keep]
    binding = np.zeros((count, template.binding.shape[1]), np.float32)
    _mean_rows(np.ascontiguousarray(template.binding, np.float32), faces, face[hit], shares[hit], mark, binding)
    first = np.flatnonzero(np.diff(mark, prepend=-1))
    last = np.append(first[1:], len(mark))
    middle = face[hit[(first + last) // 2]]
    order = np.argsort(hit, kind="stable")  # back to the order of frames
    hit, mark = hit[order], mark[order]
    normals = face_frames(template.vertices, faces[middle])[:, :, 2]
    return SkinMarks(binding, middle, normals, tracks.frames[hit], tracks.views[hit], mark, tracks.pixels[hit])


def _gather(tracks: Ints, where: Floats, gate: float) -> tuple[Bools, Ints, int]:
    """Say which sightings (sorted by track) belong to a spot, which spot, and how many spots there are."""
    keep = np.zeros(len(tracks), bool)
    mark = np.full(len(tracks), -1, np.int64)
    starts = np.flatnonzero(np.diff(tracks, prepend=-1))
    count = 0
    for start, end in itertools.pairwise([*starts, len(tracks)]):
        middle = np.median(where[start:end], axis=0)
        near = np.linalg.norm(where[start:end] - middle, axis=1) < gate
        if near.sum() >= SHORTEST and 2 * near.sum() > end - start:
            keep[start:end] = near
            mark[start:end] = count
            count += 1
    return keep, mark, count


def match_marks(points: Floats, marks: FrameMarks, camera_rows: Floats) -> Matches:
    """Compare the spots of a frame's marks with where they were seen.

    Args:
        points: (N, 3) the spots in the present pose, mm.
        marks: the frame's marks.
        camera_rows: (C, 36) packed cameras.

    Returns:
        Two rows per mark, along the image's axes and brought to millimetres across the ray; ``weights`` are 1, and 0
        for a spot that the camera cannot see.
    """
    return match_pixels(points, marks.views, marks.pixels, camera_rows)


def match_pixels(points: Floats, views: Ints, pixels: Floats, camera_rows: Floats) -> Matches:
    """Compare points (N, 3) with the pixels (N, 2) where cameras (N,) saw them; see `match_marks`."""
    count = len(points)
    directions, residuals = np.zeros((2 * count, 3)), np.zeros(2 * count)
    weights = np.zeros(2 * count)
    _compare(np.ascontiguousarray(points, np.float64), views, pixels, camera_rows, directions, residuals, weights)
    rows = np.repeat(np.arange(count), 2)
    return Matches(np.stack([rows, rows], axis=1), directions, residuals, weights, views[rows])


def face_frames(vertices: Floats, faces: Ints) -> Floats:
    """Return (F, 3, 3) two edges and the unit normal of faces, as columns."""
    corners = vertices[faces]
    u, v = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    normal = np.cross(u, v)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-30
    return np.stack([u, v, normal], axis=2)


@compiled
def _compare(
    points: Floats, views: Ints, pixels: Floats, cameras: Floats, directions: Floats, residuals: Floats, weights: Floats
) -> None:
    by_point = np.empty((2, 3))
    scratch = np.empty((2, 16))
    for i in range(len(points)):
        u, v = project_point_with_jacobian(
            cameras[views[i]], points[i, 0], points[i, 1], points[i, 2], by_point, scratch
        )
        if not np.isfinite(u + v):
            continue
        for k in range(2):
            gx, gy, gz = by_point[k, 0], by_point[k, 1], by_point[k, 2]
            rate = np.sqrt(gx * gx + gy * gy + gz * gz)  # px per mm across the ray
            away = (u if k == 0 else v) - pixels[i, k]
            directions[2 * i + k, 0], directions[2 * i + k, 1], directions[2 * i + k, 2] = (
                gx / rate,
                gy / rate,
                gz / rate,
            )
            residuals[2 * i + k] = away / rate
            weights[2 * i + k] = 1.0


@compiled_parallel
def _cast_views(
    vertices: Floats,
    faces: Ints,
    cameras: Floats,
    centres: Floats,
    views: Ints,
    pixels: Floats,
    hits: Ints,
    shares: Floats,
) -> None:
    """Find the nearest face under each pixel, and the shares of its corners there; -1 where there is none."""
    for c in prange(len(cameras)):
        mine = np.flatnonzero(views == c)
        if len(mine) > 0:
            _cast(vertices, faces, cameras[c], centres[c], mine, pixels, hits, shares)


@compiled
def _cast(
    vertices: Floats,
    faces: Ints,
    camera: Floats,
    centre: Floats,
    mine: Ints,
    pixels: Floats,
    hits: Ints,
    shares: Floats,
) -> None:
    seen = np.empty((len(vertices), 3))
    for i in range(len(vertices)):
        seen[i, 0], seen[i, 1] = project_point(camera, vertices[i, 0], vertices[i, 1], vertices[i, 2])
        x, y, z = vertices[i, 0] - centre[0], vertices[i, 1] - centre[1], vertices[i, 2] - centre[2]
        seen[i, 2] = np.sqrt(x * x + y * y + z * z)
    nearest = np.full(len(mine), np.inf)
    for f in range(len(faces)):
        a, b, c = seen[faces[f, 0]], seen[faces[f, 1]], seen[faces[f, 2]]
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        if not area < 0.0:  # looks away, or a corner is not in front of the camera
            continue
        left, right = min(a[0], b[0], c[0]), max(a[0], b[0], c[0])
        top, bottom = min(a[1], b[1], c[1]), max(a[1], b[1], c[1])
        for k in range(len(mine)):
            x, y = pixels[mine[k], 0], pixels[mine[k], 1]
            if x < left or x > right or y < top or y > bottom:
                continue
            by_b = ((x - a[0]) * (c[1] - a[1]) - (y - a[1]) * (c[0] - a[0])) / area
            by_c = ((b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])) / area
            by_a = 1.0 - by_b - by_c
            if by_a < 0.0 or by_b < 0.0 or by_c < 0.0:
                continue
            far = by_a * a[2] + by_b * b[2] + by_c * c[2]
            if far < nearest[k]:
                nearest[k] = far
                hits[mine[k]] = f
                shares[mine[k], 0], shares[mine[k], 1], shares[mine[k], 2] = by_a, by_b, by_c


@compiled
def _mean_rows(binding: Singles, faces: Ints, hits: Ints, shares: Floats, marks: Ints, result: Singles) -> None:
    """Average the coordinates of the places where each mark was hit; hits of one mark follow each other."""
    start = 0
    while start < len(marks):
        end = start
        while end < len(marks) and marks[end] == marks[start]:
            end += 1
        row = result[marks[start]]
        for n in range(start, end):
            for k in range(3):
                share = shares[n, k] / (end - start)
                corner = binding[faces[hits[n], k]]
                for m in range(len(row)):
                    row[m] += share * corner[m]
        start = end
