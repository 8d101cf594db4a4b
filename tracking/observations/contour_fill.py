"""The silhouette of a closed mesh from its contour edges alone.

The faces that look at the camera cover the silhouette: a ray that enters a closed mesh must meet one. How many of them
lie over a pixel is the winding number of their common border, the edges between a face that looks at the camera and one
that looks away. So a few hundred edges are drawn, each as steps up or down at its upper side, and summed down the
columns, instead of thousands of triangles.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera_row import CENTRE_X, CENTRE_Y, CENTRE_Z
from calibration.cameras.projection import project_columns
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError

__all__ = ["MeshEdges", "draw_silhouette", "face_planes", "fill_silhouette"]

Places = NDArray[np.uint32]
"""Rows of other arrays. Without a sign: of others compiled code asks at each use whether they count from the end."""


class MeshEdges(NamedTuple):
    """The edges of a closed mesh.

    Attributes:
        faces: (F, 3) triangles.
        edges: (E, 2) vertices of each edge.
        sides: (E, 2) the two faces at it: the first goes along the edge from vertex 0 to 1, the second back.
        beyond: (E,) the vertex of the first face that is not on the edge.
    """

    faces: Places
    edges: Places
    sides: Places
    beyond: Places

    @classmethod
    def of(cls, faces: Ints) -> MeshEdges:
        """Collect the edges of a closed mesh.

        Raises:
            InputError: an edge does not have two faces, or both go along it the same way.
        """
        faces = np.ascontiguousarray(faces, np.int64)
        return _edges_of(faces.tobytes(), len(faces))


@lru_cache(maxsize=8)  # a body in many sizes and shapes keeps its faces
def _edges_of(content: bytes, count: int) -> MeshEdges:
    faces = np.frombuffer(content, np.int64).reshape(count, 3).copy()
    half = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    edges, inverse, sides = np.unique(np.sort(half, axis=1), axis=0, return_inverse=True, return_counts=True)
    if (sides != 2).any():
        raise InputError(
            f"the template is not closed: {int((sides != 2).sum())} edges do not have two faces; "
            f"fill its holes and join double vertices"
        )
    back = half[:, 0] > half[:, 1]
    order = np.lexsort((back, inverse.ravel())).reshape(-1, 2)
    alike = back[order[:, 0]] == back[order[:, 1]]
    if alike.any():
        raise InputError(
            f"the template's faces are not turned alike: at {int(alike.sum())} edges one looks out, the other in; "
            f"make its normals consistent"
        )
    opposite = faces[:, [2, 0, 1]].ravel()
    parts = (faces, edges, order // 3, opposite[order[:, 0]])
    return MeshEdges(*(np.ascontiguousarray(part, np.uint32) for part in parts))


@compiled
def face_planes(vertices: Floats, faces: Places, planes: Floats) -> None:
    """Fill the planes (4, F) of a mesh's faces: normal (not of length 1) and its product with a point of the face.

    They tell which faces look at a camera, whichever it is: made once for all views. ``vertices`` are (3, V), mm.
    """
    xs, ys, zs = vertices[0], vertices[1], vertices[2]
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ux, uy, uz = xs[b] - xs[a], ys[b] - ys[a], zs[b] - zs[a]
        vx, vy, vz = xs[c] - xs[a], ys[c] - ys[a], zs[c] - zs[a]
        x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        planes[0, f], planes[1, f], planes[2, f] = x, y, z
        planes[3, f] = x * xs[a] + y * ys[a] + z * zs[a]


@compiled
def draw_silhouette(
    vertices: Floats,
    planes: Floats,
    mesh: MeshEdges,
    camera: Floats,
    image: Bytes,
    pixels: Floats,
    toward: Bools,
    contour: Ints,
) -> tuple[int, int, int, int, int]:
    """Project and fill one view.

    Args:
        vertices: (3, V) mm. planes: of its faces, see `face_planes`.
        mesh: what hangs together.
        camera: packed row.
        image: (H, W) set to 1 and 0 within the bounds returned, left as it is outside.
        pixels: (2, V) filled with the projections. toward: (F,) with whether a face looks at the camera.
        contour: (E,) filled with the edges between a face that does and one that does not.

    Returns:
        The first and last column and row drawn, and how many contour edges there are.
    """
    project_columns(camera, vertices, pixels)
    return fill_silhouette(pixels, planes, mesh, camera, image, toward, contour)


@compiled
def fill_silhouette(
    pixels: Floats, planes: Floats, mesh: MeshEdges, camera: Floats, image: Bytes, toward: Bools, contour: Ints
) -> tuple[int, int, int, int, int]:
    """Fill one view of a mesh whose vertices are projected; see `draw_silhouette`."""
    height, width = image.shape
    low_x, low_y, high_x, high_y, unseen = _bounds(pixels, width, height)
    x, y, z = camera[CENTRE_X], camera[CENTRE_Y], camera[CENTRE_Z]
    for f in range(len(toward)):
        toward[f] = planes[0, f] * x + planes[1, f] * y + planes[2, f] * z > planes[3, f]
    if unseen:
        for f in range(len(toward)):
            for k in range(3):
                if np.isnan(pixels[0, mesh.faces[f, k]]):  # a corner is behind the camera
                    toward[f] = False
    count = 0
    for e in range(len(mesh.sides)):
        contour[count] = e  # written over where it is none: a branch would be guessed wrong too often
        count += toward[mesh.sides[e, 0]] != toward[mesh.sides[e, 1]]
    image[low_y : high_y + 1, low_x : high_x + 1] = 0
    for m in range(count):
        e = contour[m]
        a, b = mesh.edges[e, 0], mesh.edges[e, 1]
        # Going right in the order of the face that looks at the camera, its inner side lies below or above.
        step = 1 if toward[mesh.sides[e, 0]] else -1
        if pixels[0, a] > pixels[0, b]:
            a, b, step = b, a, -step
        x, y, end_x, end_y = pixels[0, a], pixels[1, a], pixels[0, b], pixels[1, b]
        # Bounded before they become whole numbers: a point far outside has none, and would index anywhere.
        left = max(int(np.ceil(min(max(x, -1.0), width + 1.0))), low_x)
        right = min(int(np.ceil(min(max(end_x, -1.0), width + 1.0))) - 1, high_x)
        if left > right or not np.isfinite(x + y + end_x + end_y):
            continue
        slope = (end_y - y) / (end_x - x)
        for column in range(left, right + 1):
            row = max(int(np.ceil(min(max(y + (column - x) * slope, -1.0), height + 1.0))), low_y)
            if row <= high_y:
                image[row, column] += step
    # Down the columns, not along the rows: so many of them are summed by one instruction.
    over = np.zeros(max(high_x + 1 - low_x, 0), np.uint8)
    for row in range(low_y, high_y + 1):
        _sum_up(over, image[row, low_x : high_x + 1])
    return low_x, low_y, high_x, high_y, count


@compiled
def _sum_up(over: Bytes, line: Bytes) -> None:
    """Add the steps of a row to the sums of the columns, and replace them by whether these are not 0."""
    for column in range(len(line)):
        over[column] += line[column]  # a step down is stored as 255
        line[column] = over[column] != 0


@compiled
def _bounds(pixels: Floats, width: int, height: int) -> tuple[int, int, int, int, int]:
    """Pixels within the image that hold all points but NaN: first and last column and row; and how many are NaN."""
    low_x, low_y, high_x, high_y, unseen = np.inf, np.inf, -np.inf, -np.inf, 0
    for i in range(pixels.shape[1]):  # what is compared with NaN is not less, nor more
        x, y = pixels[0, i], pixels[1, i]
        low_x, high_x = x if x < low_x else low_x, x if x > high_x else high_x
        low_y, high_y = y if y < low_y else low_y, y if y > high_y else high_y
        unseen += np.isnan(x)
    if not (low_x <= high_x and low_y <= high_y):
        return 0, 0, -1, -1, unseen
    return (
        int(min(max(np.floor(low_x), 0.0), float(width))),
        int(min(max(np.floor(low_y), 0.0), float(height))),
        int(max(min(np.ceil(high_x), width - 1.0), -1.0)),
        int(max(min(np.ceil(high_y), height - 1.0), -1.0)),
        unseen,
    )
