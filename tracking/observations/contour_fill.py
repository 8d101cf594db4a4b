"""The silhouette of a closed mesh from its contour edges alone.

The faces that look at the camera cover the silhouette: a ray that enters a closed mesh must meet one. How many of them
lie over a pixel is the winding number of their common border, the edges between a face that looks at the camera and one
that looks away. So a few hundred edges are drawn, each as steps up or down at its left side, and summed along the rows,
instead of thousands of triangles.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from calibration.cameras.projection import project_into
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError

__all__ = ["MeshEdges", "draw_silhouette", "fill_silhouette"]


class MeshEdges(NamedTuple):
    """The edges of a closed mesh.

    Attributes:
        faces: (F, 3) triangles.
        edges: (E, 2) vertices of each edge.
        sides: (E, 2) the two faces at it: the first goes along the edge from vertex 0 to 1, the second back.
        beyond: (E,) the vertex of the first face that is not on the edge.
    """

    faces: Ints
    edges: Ints
    sides: Ints
    beyond: Ints

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
    return MeshEdges(faces, edges, order // 3, opposite[order[:, 0]])


@compiled
def draw_silhouette(
    vertices: Floats,
    faces: Ints,
    edges: Ints,
    sides: Ints,
    camera: Floats,
    image: Bytes,
    pixels: Floats,
    toward: Bools,
    contour: Ints,
) -> tuple[int, int, int, int, int]:
    """Project and fill one view.

    Args:
        vertices: (V, 3) mm. faces, edges, sides: of `MeshEdges`.
        camera: packed row.
        image: (H, W) set to 1 and 0 within the bounds returned, left as it is outside.
        pixels: (V, 2) filled with the projections. toward: (F,) with whether a face looks at the camera.
        contour: (E,) filled with the edges between a face that does and one that does not.

    Returns:
        The first and last column and row drawn, and how many contour edges there are.
    """
    project_into(camera, vertices, pixels)
    return fill_silhouette(pixels, faces, edges, sides, image, toward, contour)


@compiled
def fill_silhouette(
    pixels: Floats, faces: Ints, edges: Ints, sides: Ints, image: Bytes, toward: Bools, contour: Ints
) -> tuple[int, int, int, int, int]:
    """Fill one view of a mesh whose vertices are projected; see `draw_silhouette`."""
    height, width = image.shape
    low_x, low_y, high_x, high_y = _bounds(pixels, width, height)
    for f in range(len(faces)):
        a, b, d = faces[f, 0], faces[f, 1], faces[f, 2]
        ax, ay = pixels[a, 0], pixels[a, 1]
        # A face with a corner behind the camera (NaN) does not look at it.
        toward[f] = (pixels[b, 0] - ax) * (pixels[d, 1] - ay) - (pixels[b, 1] - ay) * (pixels[d, 0] - ax) < 0
    count = 0
    for e in range(len(edges)):
        if toward[sides[e, 0]] != toward[sides[e, 1]]:
            contour[count] = e
            count += 1
    image[low_y : high_y + 1, low_x : high_x + 1] = 0
    for m in range(count):
        e = contour[m]
        # In the order in which the face that looks at the camera has them, its inner side lies to the right going down.
        first, second = (0, 1) if toward[sides[e, 0]] else (1, 0)
        a, b, step = edges[e, first], edges[e, second], 1
        if pixels[a, 1] > pixels[b, 1]:
            a, b, step = b, a, -1
        x, y = pixels[a, 0], pixels[a, 1]
        # Bounded before they become whole numbers: a point far outside has none, and would index anywhere.
        top = max(int(np.ceil(min(max(y, -1.0), height + 1.0))), low_y)
        bottom = min(int(np.ceil(min(max(pixels[b, 1], -1.0), height + 1.0))) - 1, high_y)
        if top > bottom or not np.isfinite(x + y + pixels[b, 0] + pixels[b, 1]):
            continue
        slope = (pixels[b, 0] - x) / (pixels[b, 1] - y)
        for row in range(top, bottom + 1):
            column = max(int(np.ceil(min(max(x + (row - y) * slope, -1.0), width + 1.0))), low_x)
            if column <= high_x:
                image[row, column] += step
    for row in range(low_y, high_y + 1):
        _sum_up(image[row, low_x : high_x + 1])
    return low_x, low_y, high_x, high_y, count


@compiled
def _sum_up(line: Bytes) -> None:
    """Replace the steps of a row by whether their sum so far is more than 0."""
    over = 0
    whole = len(line) // 8 * 8
    words = line[:whole].view(np.uint64)
    for k in range(len(words)):
        if words[k] == 0:  # most pixels lie between two edges: eight at a time
            words[k] = 0x0101010101010101 if over > 0 else 0
            continue
        for column in range(8 * k, 8 * k + 8):
            over = (over + line[column]) & 255  # a step down is stored as 255
            line[column] = over > 0
    for column in range(whole, len(line)):
        over = (over + line[column]) & 255
        line[column] = over > 0


@compiled
def _bounds(pixels: Floats, width: int, height: int) -> tuple[int, int, int, int]:
    """Pixels within the image that hold all finite points: first and last column and row."""
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for i in range(len(pixels)):
        x, y = pixels[i, 0], pixels[i, 1]
        if np.isfinite(x + y):
            low_x, high_x = min(low_x, x), max(high_x, x)
            low_y, high_y = min(low_y, y), max(high_y, y)
    if not np.isfinite(low_x + low_y + high_x + high_y):
        return 0, 0, -1, -1
    return (
        int(min(max(np.floor(low_x), 0.0), float(width))),
        int(min(max(np.floor(low_y), 0.0), float(height))),
        int(max(min(np.ceil(high_x), width - 1.0), -1.0)),
        int(max(min(np.ceil(high_y), height - 1.0), -1.0)),
    )
