"""Silhouette contours, the main data term: the model's outline in each view against the observed one, both ways.

For each view the deformed template is projected and filled. Edges between a face that looks at the camera and one that
looks away, with nothing of the body beyond them, make the model's outline. Each model sample is paired with the nearest
observed one of like normal, and each observed sample with the nearest model one, so that the outline neither exceeds
the silhouette nor leaves a part of it unexplained (a one-sided term lets the template shrink). A pair's residual is its
distance along the observed normal, brought to millimetres at the body's depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibration.cameras.projection import project_point_with_jacobian
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled, compiled_parallel, prange
from tracking.observations.contour_fill import MeshEdges, draw_silhouette, face_planes
from tracking.observations.contours import Observation
from tracking.observations.marks import Marks
from tracking.observations.nearest_points import nearest_alike
from tracking.observations.surface import Surface

__all__ = ["Matches", "OutlineMatcher", "PackedObservation"]


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of model and observed outline samples of all views.

    Attributes:
        pairs: (N, 2) the model sample is the middle of these two template vertices.
        directions: (N, 3) unit world direction along which the residual grows.
        residuals: (N,) model minus observed along it, mm.
        weights: (N,) share of outline each pair stands for.
        view: (N,) camera.
    """

    pairs: Ints
    directions: Floats
    residuals: Floats
    weights: Floats
    view: Ints


@dataclass(frozen=True, eq=False)
class PackedObservation:
    """One frame's views for the compiled matcher.

    Attributes:
        pixels: the masks' bounding boxes, row by row, one after the other.
        boxes: (C, 5) where in ``pixels`` each begins, its first column and row, its width and height.
        areas: (C,) covered pixels.
        targets: (C, N, 4) contour points and normals, px.
        counts: (C,) how many of them there are.
        surface: the frame's surface, or None. sightings: marked points, or None.
    """

    pixels: Bytes
    boxes: Ints
    areas: Ints
    targets: Floats
    counts: Ints
    surface: Surface | None
    sightings: Marks | None


class _Views(NamedTuple):
    """Cameras as packed rows (C, 36), and the width and height of their images (C, 2)."""

    cameras: Floats
    sizes: Ints


class _Room(NamedTuple):
    """Room for what each view makes on its way, kept: fresh memory costs as much as the work in it.

    ``canvas`` (C, H W), ``pixels`` (C, 2, V), ``toward`` (C, F) and ``contour`` (C, E) are those of `draw_silhouette`;
    ``planes`` (4, F) those of `face_planes`. ``samples`` (C, E, 5) holds position, outward normal and length of each
    sample of the outline, ``which`` (C, E) its edge; ``slopes`` (C, E, 2, 3) and ``rates`` (C, E) what `_rate` found
    there, 0 where it was not asked yet.
    """

    planes: Floats
    canvas: Bytes
    pixels: Floats
    toward: Bools
    contour: Ints
    samples: Floats
    which: Ints
    slopes: Floats
    rates: Floats


class _Seen(NamedTuple):
    """The observed masks as in `PackedObservation`."""

    pixels: Bytes
    boxes: Ints
    areas: Ints
    counts: Ints


class _Rules(NamedTuple):
    """How far apart pairs may be, mm; about how many model samples per view; which samples are paired.

    ``every`` is 1 for all observed ones, 2 for every other one, and so on, 0 for none. ``part`` (V,) are the vertices
    whose outline is paired, (0,) for all.
    """

    reach: float
    model_samples: int
    every: int
    part: Bools


class OutlineMatcher:
    """Pairs a deforming template's outlines with observed silhouettes, through one rig of cameras."""

    def __init__(self, mesh: MeshEdges, camera_rows: Floats, sizes: Sequence[tuple[int, int]]) -> None:
        """Prepare for cameras given as packed rows (C, 36) and sizes (width, height)."""
        self._mesh = mesh
        self._views = _Views(np.ascontiguousarray(camera_rows, np.float64), np.array(sizes, np.int64))
        views, area = len(sizes), max(width * height for width, height in sizes)
        self._room = _Room(
            planes=np.empty((4, len(mesh.faces))),
            canvas=np.zeros((views, area), np.uint8),
            pixels=np.empty((views, 2, int(mesh.faces.max()) + 1)),
            toward=np.empty((views, len(mesh.faces)), np.bool_),
            contour=np.empty((views, len(mesh.edges)), np.int64),
            samples=np.empty((views, len(mesh.edges), 5)),
            which=np.empty((views, len(mesh.edges)), np.int64),
            slopes=np.empty((views, len(mesh.edges), 2, 3)),
            rates=np.empty((views, len(mesh.edges))),
        )

    def pack(self, observation: Observation) -> PackedObservation:
        """Stack one frame's views for the compiled matcher."""
        views = observation.views
        counts = np.array([len(view.points) for view in views], np.int64)
        targets = np.zeros((len(views), max(int(counts.max(initial=0)), 1), 4))
        boxes = np.zeros((len(views), 5), np.int64)
        parts, start = [], 0
        for index, view in enumerate(views):
            targets[index, : counts[index], :2] = view.points
            targets[index, : counts[index], 2:] = view.normals
            left, top, width, height = view.box
            boxes[index] = start, left, top, width, height
            parts.append(view.mask.ravel())
            start += width * height
        areas = np.array([view.area for view in views], np.int64)
        return PackedObservation(
            np.concatenate(parts), boxes, areas, targets, counts, observation.surface, observation.sightings
        )

    def match(
        self,
        vertices: Floats,
        observed: PackedObservation,
        *,
        reach: float,
        model_samples: int = 160,
        every: int = 1,
        part: Bools | None = None,
    ) -> Matches:
        """Pair outlines for a deformed template.

        Args:
            vertices: (V, 3) template, mm.
            observed: silhouettes, from `pack`.
            reach: pairs further apart than this are not made, mm.
            model_samples: about how many model samples per view are paired with observed ones.
            every: 1 pairs all observed samples with model ones, 2 every other one, and so on; 0 none (for ablation).
            part: (V,) vertices of a part of the template: of all pairs, those with samples of its outline; None for
                all.
        """
        targets, counts = observed.targets, observed.counts
        rules = _Rules(float(reach), model_samples, every, np.zeros(0, np.bool_) if part is None else part)
        pairs, numbers, made = _match_views(
            np.ascontiguousarray(vertices.T, np.float64), self._mesh, self._views, targets, counts, rules, self._room
        )
        return Matches(*_put_together(pairs, numbers, made))

    def overlaps(self, vertices: Floats, observed: PackedObservation) -> Floats:
        """Return (C,) intersection over union of a deformed template's silhouettes and the observed ones.

        NaN where a camera saw nothing.
        """
        overlap = np.full(len(observed.counts), np.nan)
        seen = _Seen(observed.pixels, observed.boxes, observed.areas, observed.counts)
        _overlap_views(np.ascontiguousarray(vertices.T, np.float64), self._mesh, self._views, seen, self._room, overlap)
        return overlap


@compiled_parallel
def _overlap_views(vertices: Floats, mesh: MeshEdges, views: _Views, seen: _Seen, room: _Room, overlap: Floats) -> None:
    cameras, sizes = views
    canvas, all_pixels, all_toward, all_contour = room.canvas, room.pixels, room.toward, room.contour
    observed, boxes, areas, counts = seen
    face_planes(vertices, mesh.faces, room.planes)
    for c in prange(len(cameras)):
        if counts[c] == 0:
            continue
        image = canvas[c, : sizes[c, 0] * sizes[c, 1]].reshape(sizes[c, 1], sizes[c, 0])
        low_x, low_y, high_x, high_y, _ = draw_silhouette(
            vertices, room.planes, mesh, cameras[c], image, all_pixels[c], all_toward[c], all_contour[c]
        )
        start, left, top, width, height = boxes[c]
        first, last = max(low_x, left), min(high_x + 1, left + width)
        common, drawn = 0, 0
        for row in range(low_y, high_y + 1):
            drawn += _count(image[row, low_x : high_x + 1])
            if top <= row < top + height and first < last:
                line = start + (row - top) * width - left
                common += _count_common(image[row, first:last], observed[line + first : line + last])
        union = areas[c] + drawn - common
        overlap[c] = common / union if union > 0 else 0.0


@compiled
def _count(line: Bytes) -> int:
    total = np.uint32(0)
    for k in range(len(line)):
        total += np.uint32(line[k])
    return int(total)


@compiled
def _count_common(line: Bytes, other: Bytes) -> int:
    total = np.uint32(0)
    for k in range(len(line)):
        total += np.uint32(line[k] & other[k])
    return int(total)


@compiled_parallel
def _match_views(
    vertices: Floats, mesh: MeshEdges, views: _Views, targets: Floats, counts: Ints, rules: _Rules, room: _Room
) -> tuple[Ints, Floats, Ints]:
    """Return pairs (C, N, 2), their direction, residual and weight (C, N, 5), and how many each view has (C,)."""
    cameras, sizes = views
    planes, canvas, pixels, toward, contour, samples, which, slopes, rates = room
    face_planes(vertices, mesh.faces, planes)
    most = 3 * rules.model_samples + targets.shape[1]
    pairs, numbers = np.empty((len(counts), most, 2), np.int64), np.empty((len(counts), most, 5))
    made = np.zeros(len(counts), np.int64)
    for c in prange(len(cameras)):
        if counts[c] > 0:
            image = canvas[c, : sizes[c, 0] * sizes[c, 1]].reshape(sizes[c, 1], sizes[c, 0])
            here = _Room(planes, image, pixels[c], toward[c], contour[c], samples[c], which[c], slopes[c], rates[c])
            seen = targets[c, : counts[c]]
            made[c] = _match_view(vertices, mesh, cameras[c], seen, rules, here, pairs[c], numbers[c])
    return pairs, numbers, made


@compiled
def _put_together(pairs: Ints, numbers: Floats, made: Ints) -> tuple[Ints, Floats, Floats, Floats, Ints]:
    """Return the pairs of all views as the fields of `Matches`."""
    total = made.sum()
    flat, view = np.empty((total, 2), np.int64), np.empty(total, np.int64)
    directions, residuals, weights = np.empty((total, 3)), np.empty(total), np.empty(total)
    at = 0
    for c in range(len(made)):
        for k in range(made[c]):
            flat[at, 0], flat[at, 1], view[at] = pairs[c, k, 0], pairs[c, k, 1], c
            for i in range(3):
                directions[at, i] = numbers[c, k, i]
            residuals[at], weights[at] = numbers[c, k, 3], numbers[c, k, 4]
            at += 1
    return flat, directions, residuals, weights, view


@compiled
def _outline(vertices: Floats, mesh: MeshEdges, camera: Floats, room: _Room) -> tuple[int, float]:
    """Fill the samples of one view's outline; return how many there are and their length in all."""
    image, pixels, samples = room.canvas, room.pixels, room.samples
    height, width = image.shape
    low_x, low_y, high_x, high_y, borders = draw_silhouette(
        vertices, room.planes, mesh, camera, image, pixels, room.toward, room.contour
    )
    found = 0
    total = 0.0
    for m in range(borders):
        e = room.contour[m]
        a, b, inner = mesh.edges[e, 0], mesh.edges[e, 1], mesh.beyond[e]
        x, y = 0.5 * (pixels[0, a] + pixels[0, b]), 0.5 * (pixels[1, a] + pixels[1, b])
        if not (x > 1.5 and y > 1.5 and x < width - 2.5 and y < height - 2.5):
            continue
        nx, ny = pixels[1, b] - pixels[1, a], pixels[0, a] - pixels[0, b]
        length = np.sqrt(nx * nx + ny * ny)
        if length < 1e-6:
            continue
        nx, ny = nx / length, ny / length
        if nx * (pixels[0, inner] - x) + ny * (pixels[1, inner] - y) > 0:
            nx, ny = -nx, -ny
        # Only an edge with nothing of the body just outside bounds the silhouette.
        row, column = int(np.floor(y + 1.6 * ny + 0.5)), int(np.floor(x + 1.6 * nx + 0.5))
        within = low_x <= column <= high_x and low_y <= row <= high_y  # outside the bounds the canvas is not cleared
        if within and image[row, column] != 0:
            continue
        samples[found, 0], samples[found, 1] = x, y
        samples[found, 2], samples[found, 3], samples[found, 4] = nx, ny, length
        room.which[found], room.rates[found] = e, 0.0
        total += length
        found += 1
    return found, total


@compiled
def _match_view(
    vertices: Floats,
    mesh: MeshEdges,
    camera: Floats,
    targets: Floats,
    rules: _Rules,
    room: _Room,
    pairs: Ints,
    numbers: Floats,
) -> int:
    """Pair the outline of one view; ``room`` is that of the view alone. Return how many pairs were made."""
    edges, which, reach = mesh.edges, room.which, rules.reach
    slopes, rates = room.slopes, room.rates
    found, total = _outline(vertices, mesh, camera, room)
    if found == 0:
        return 0
    outline = room.samples[:found]
    part = rules.part
    low_x, low_y, high_x, high_y = np.inf, np.inf, -np.inf, -np.inf
    for m in range(found):
        if len(part) == 0 or part[edges[which[m], 0]]:
            low_x, high_x = min(low_x, outline[m, 0]), max(high_x, outline[m, 0])
            low_y, high_y = min(low_y, outline[m, 1]), max(high_y, outline[m, 1])
    if low_x > high_x:
        return 0  # the rest of the body covers the part
    scratch = np.empty((2, 16))
    # Model to observed, sampled evenly along the outline
    chosen, shares, limits = np.empty(found, np.int64), np.empty(found), np.empty(found)
    queries = np.empty((max(found, len(targets)), 4))
    spacing = total / rules.model_samples
    carry, furthest, asked = 0.0, 0.0, 0
    for m in range(found):
        carry += outline[m, 4]
        if carry < spacing:
            continue
        share = carry
        carry = 0.0
        edge = edges[which[m]]
        if len(part) and not part[edge[0]]:
            continue
        chosen[asked], shares[asked] = m, share
        limits[asked] = reach * _rate(vertices, edge, camera, slopes[m], rates[m : m + 1], scratch)
        furthest = max(furthest, limits[asked])
        queries[asked] = outline[m, :4]
        asked += 1
    count = 0
    nearest = nearest_alike(queries[:asked], limits[:asked], targets)
    for k in range(asked):
        m, at = chosen[k], nearest[k]
        if at >= 0 and count < len(pairs):
            edge = edges[which[m]]
            count += _store(edge, outline[m], targets[at], shares[k], reach, slopes[m], pairs[count], numbers[count])
    if rules.every == 0:
        return count
    # Observed to model
    taken, asked = np.empty(len(targets), np.int64), 0
    per_target = total / len(range(0, len(targets), rules.every))
    for t in range(0, len(targets), rules.every):
        x, y = targets[t, 0], targets[t, 1]
        if x < low_x - furthest or x > high_x + furthest or y < low_y - furthest or y > high_y + furthest:
            continue  # nothing that is paired is within reach
        taken[asked], queries[asked] = t, targets[t]
        asked += 1
    nearest = nearest_alike(queries[:asked], np.full(asked, furthest), outline)
    for k in range(asked):
        t, at = taken[k], nearest[k]
        if at >= 0 and count < len(pairs) and (len(part) == 0 or part[edges[which[at], 0]]):
            edge = edges[which[at]]
            _rate(vertices, edge, camera, slopes[at], rates[at : at + 1], scratch)
            count += _store(edge, outline[at], targets[t], per_target, reach, slopes[at], pairs[count], numbers[count])
    return count


@compiled
def _rate(vertices: Floats, edge: Ints, camera: Floats, by_point: Floats, known: Floats, scratch: Floats) -> float:
    """Fill d(u, v)/d(x, y, z) at the middle of an edge; return an upper bound of px per mm there, kept in ``known``.

    Several observed samples are nearest to one edge: it is worked out where ``known`` (1,) is 0 yet.
    """
    if known[0] == 0.0:
        a, b = edge[0], edge[1]
        x, y = 0.5 * (vertices[0, a] + vertices[0, b]), 0.5 * (vertices[1, a] + vertices[1, b])
        z = 0.5 * (vertices[2, a] + vertices[2, b])
        project_point_with_jacobian(camera, x, y, z, by_point, scratch)
        square = 0.0
        for k in range(3):
            square += by_point[0, k] * by_point[0, k] + by_point[1, k] * by_point[1, k]
        known[0] = np.sqrt(square)
    return float(known[0])


@compiled
def _store(
    edge: Ints,
    sample: Floats,
    target: Floats,
    share: float,
    reach: float,
    by_point: Floats,
    pair: Ints,
    numbers: Floats,
) -> int:
    """Write one pair; return 1, or 0 where it is out of reach."""
    gx = target[2] * by_point[0, 0] + target[3] * by_point[1, 0]
    gy = target[2] * by_point[0, 1] + target[3] * by_point[1, 1]
    gz = target[2] * by_point[0, 2] + target[3] * by_point[1, 2]
    rate = np.sqrt(gx * gx + gy * gy + gz * gz)  # px per mm across the ray
    dx, dy = sample[0] - target[0], sample[1] - target[1]
    if dx * dx + dy * dy > (reach * rate) ** 2:
        return 0
    pair[0], pair[1] = edge[0], edge[1]
    numbers[0], numbers[1], numbers[2] = gx / rate, gy / rate, gz / rate
    numbers[3] = (target[2] * dx + target[3] * dy) / rate
    numbers[4] = share / rate
    return 1
