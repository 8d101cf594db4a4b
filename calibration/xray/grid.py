"""Find the bead or hole grid of an X-ray undistortion image: which spot is which node of the lattice.

The grid may be hexagonal or square, turned by any angle, seen in part, and bent by the image intensifier; the
spots may be dark (beads) or bright (holes). Nothing about it need be known beforehand.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Bytes, Floats, Ints
from calibration.foundation.errors import SolveError
from calibration.xray.attenuation import Polarity, grey_image
from calibration.xray.spot_fit import window_radius
from calibration.xray.spots import Spots, fit_spots, local_maxima, nearest_neighbours, roundness, spot_response

__all__ = ["GridSighting", "LatticeKind", "draw_grid", "find_grid", "index_lattice"]

LatticeKind = Literal["hexagonal", "square"]

#: Gaussian radii tried where the size of the beads is not told, px.
SIGMAS = (2.7, 1.8, 4.0, 1.2, 6.0)
#: Fewer nodes than this do not tell a lattice and its distortion.
MIN_NODES = 30


@dataclass(frozen=True, eq=False)
class GridSighting:
    """A grid as found in one image.

    Attributes:
        kind: "hexagonal" or "square".
        size: (width, height) of the image, px.
        pixels: (n, 2) spots as seen, px.
        nodes: (n, 2) whole-number lattice coordinates.
        ideal: (n, 2) where an undistorted image would show them, px: the lattice, placed over the spots by a
            similarity, so that the undistorted image has the scale and direction of the seen one.
        covariance: (n, 2, 2) of the spots, px^2.
        spacing_px: distance of neighbouring nodes in the ideal image.
        polarity: of the spots.
        sigma_px: median Gaussian radius of the spots.
        unused: (m, 2) spots that fit no node, px.
    """

    kind: LatticeKind
    size: tuple[int, int]
    pixels: Floats
    nodes: Ints
    ideal: Floats
    covariance: Floats
    spacing_px: float
    polarity: Polarity
    sigma_px: float
    unused: Floats

    def __len__(self) -> int:
        return len(self.pixels)


def find_grid(
    image: NDArray[Any],
    *,
    polarity: Polarity | None = None,
    sigma_px: float | None = None,
    kind: LatticeKind | None = None,
    who: str = "grid",
) -> GridSighting:
    """Find the grid in an image; polarity, size and kind are tried out unless given.

    Raises:
        SolveError: no lattice of at least 30 nodes; its report is the (n, 2) spots that were found, for a picture.
    """
    grey = grey_image(image)
    best: tuple[float, Floats, _Lattice, Polarity, float] | None = None
    most: Floats = np.empty((0, 2))
    polarities: tuple[Polarity, ...] = ("dark", "bright") if polarity is None else (polarity,)
    for sigma in SIGMAS if sigma_px is None else (sigma_px,):
        for side in polarities:
            if best is not None and len(best[2].members) > max(4 * MIN_NODES, 0.85 * len(best[1])):
                break
            peaks = _peaks(grey, sigma, side)
            if len(peaks) > len(most):
                most = peaks
            lattice = index_lattice(peaks, kind=kind) if len(peaks) >= MIN_NODES else None
            if lattice is None:
                continue
            # More nodes are better, and a size at which neighbours do not disturb each other.
            quality = len(lattice.members) * (1.0 - min(10.0 * _roughness(peaks, lattice), 0.5))
            if best is None or quality > best[0]:
                best = quality, peaks, lattice, side, sigma
    # Some of any crowd of points lie on a lattice by chance; a grid image shows hardly anything else.
    if best is None or len(best[2].members) < max(MIN_NODES, 0.3 * len(best[1])):
        found = 0 if best is None else len(best[2].members)
        raise SolveError(
            f"{who}: no grid found: {len(most)} spots, of which {found} lie on a lattice (wanted {MIN_NODES} or"
            " more); check that this is the grid image, or give the polarity and the size of its beads",
            most,
        )
    _, peaks, lattice, side, sigma = best
    spots, keep = _refined(grey, peaks[lattice.members], side, sigma)
    chosen = spots.take(keep)
    lattice = _Lattice(lattice.kind, lattice.members[keep], lattice.nodes[keep])
    plane = _plane(lattice.nodes, lattice.kind)
    ideal, spacing = _place(plane, chosen.pixels)
    outside = np.ones(len(peaks), dtype=bool)
    outside[lattice.members] = False
    return GridSighting(
        lattice.kind,
        (grey.shape[1], grey.shape[0]),
        chosen.pixels,
        lattice.nodes,
        ideal,
        chosen.covariance,
        spacing,
        side,
        float(np.median(chosen.sigma)),
        peaks[outside],
    )


def _peaks(grey: NDArray[Any], sigma: float, polarity: Polarity) -> Floats:
    """Return (n, 2) places of spots of about one size, to half a pixel: enough to number a lattice."""
    response = spot_response(grey, sigma, polarity)
    power = cv2.blur(response * response, (2 * int(8.0 * sigma) + 1,) * 2)
    floor = np.maximum(0.8 * np.sqrt(np.maximum(power, 0.0)), 0.015)
    peaks = local_maxima(response, np.asarray(floor, dtype=np.float32), 1.5 * sigma)
    if len(peaks):
        # The rim of the field is an edge, not a row of spots.
        peaks = peaks[roundness(response, peaks, max(round(0.7 * sigma), 1)) > 0.3]
    width, height = grey.shape[1], grey.shape[0]
    edge = 1.5 * sigma
    height_at = response[peaks[:, 1].astype(np.int64), peaks[:, 0].astype(np.int64)]
    # In the logarithm all beads of a plate have about one contrast, whatever the light: lesser peaks are noise.
    strong = height_at > 0.4 * np.percentile(height_at, 90.0) if len(peaks) else np.zeros(0, dtype=bool)
    inside = strong & (peaks > edge).all(axis=1) & (peaks[:, 0] < width - 1 - edge) & (peaks[:, 1] < height - 1 - edge)
    return np.asarray(peaks[inside][:6000])


def _roughness(peaks: Floats, lattice: _Lattice) -> float:
    """Return how far nodes lie from the middle of opposite neighbours, in spacings (median)."""
    points = peaks[lattice.members]
    where = {(int(a), int(b)): k for k, (a, b) in enumerate(lattice.nodes)}
    errors: list[float] = []
    for (a, b), k in where.items():
        for da, db in ((1, 0), (0, 1)):
            one, two = where.get((a + da, b + db)), where.get((a - da, b - db))
            if one is not None and two is not None:
                middle = 0.5 * (points[one] + points[two]) - points[k]
                errors.append(float(np.hypot(*middle) / np.hypot(*(points[one] - points[k]))))
    return float(np.median(errors)) if errors else 1.0


def _refined(grey: NDArray[Any], points: Floats, polarity: Polarity, sigma: float) -> tuple[Spots, Ints]:
    """Fit the spots of a lattice, in windows that its neighbours do not enter; return those and which are good."""
    spacing = float(np.median(nearest_neighbours(points, points, 2)[0][:, 1]))
    # The window must show the rim of the spot but not its neighbours; its size follows the spots found, from a
    # start that may be too small. A disc that fills its cell counts as a spot of 0.22 spacings at most.
    start = sigma
    for _ in range(3):
        start = min(start, 0.22 * spacing)
        radius = min(window_radius(start), 0.7 * spacing)
        spots = fit_spots(grey, points, sigma=start, polarity=polarity, max_shift=0.3 * spacing, radius=radius)
        if not np.isfinite(spots.sigma).any():
            return spots, np.empty(0, dtype=np.int64)
        start = float(np.nanmedian(spots.sigma))
    size, usual = float(np.nanmedian(spots.sigma)), float(np.nanmedian(spots.contrast))
    with np.errstate(invalid="ignore"):
        alike = (np.abs(np.log(spots.sigma / size)) < 0.4) & (np.abs(np.log(spots.contrast / usual)) < 0.8)
    return spots, np.flatnonzero(np.isfinite(spots.pixels[:, 0]) & alike)


@dataclass(frozen=True, eq=False)
class _Lattice:
    """Spots on a lattice: ``members`` (n,) their numbers, ``nodes`` (n, 2) their whole-number coordinates."""

    kind: LatticeKind
    members: Ints
    nodes: Ints


def index_lattice(pixels: Floats, *, kind: LatticeKind | None = None) -> _Lattice | None:
    """Give each of (n, 2) points its lattice coordinates, growing from the most regular place outward.

    The step from node to node is learnt locally, so the lattice may bend by any amount over its width as long as
    neighbouring cells look alike. Returns None where the points show no lattice.
    """
    if len(pixels) < 8:
        return None
    tree = cKDTree(pixels)
    kinds: tuple[LatticeKind, ...] = ("hexagonal", "square") if kind is None else (kind,)
    best: _Lattice | None = None
    for name in kinds:
        for seed, basis in _seeds(pixels, name):
            members, nodes = _grow(pixels, tree, seed, basis, name)
            if best is None or len(members) > len(best.members):
                best = _Lattice(name, members, nodes)
            if len(members) > 0.8 * len(pixels):
                break
    return best


def _neighbours(kind: LatticeKind) -> Ints:
    """Return the lattice steps to the nearest neighbours; hexagonal with basis vectors 60 degrees apart."""
    square = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    return np.array([*square, (1, -1), (-1, 1)] if kind == "hexagonal" else square)


def _seeds(pixels: Floats, kind: LatticeKind, most: int = 6) -> list[tuple[int, Floats]]:
    """Return the points whose neighbours form the best regular hexagon or square, with the (2, 2) basis rows."""
    count = 6 if kind == "hexagonal" else 4
    distance, index = nearest_neighbours(pixels, pixels, min(count + 2, len(pixels)))
    spread = np.std(distance[:, 1 : count + 1], axis=1) / np.mean(distance[:, 1 : count + 1], axis=1)
    typical = np.median(distance[:, 1])
    # A hexagon's seventh neighbour is 1.73 steps away, a square's fifth 1.41: a clear gap tells them apart.
    gap = distance[:, count + 1] / np.maximum(distance[:, count], 1e-9)
    score = spread + np.abs(np.log(distance[:, 1] / typical)) * 0.3 + np.maximum(1.3 - gap, 0.0)
    seeds: list[tuple[int, Floats]] = []
    for i in np.argsort(score, kind="stable")[: 40 * most]:
        steps = pixels[index[i, 1 : count + 1]] - pixels[i]
        angle = np.arctan2(steps[:, 1], steps[:, 0])
        order = np.argsort(angle)
        turns = np.diff(np.concatenate([angle[order], angle[order][:1] + 2.0 * np.pi]))
        if np.abs(turns - 2.0 * np.pi / count).max() > 0.3 or spread[i] > 0.15:
            continue
        seeds.append((int(i), np.stack([steps[order[0]], steps[order[1]]])))
        if len(seeds) == most:
            break
    return seeds


def _grow(pixels: Floats, tree: cKDTree, seed: int, basis: Floats, kind: LatticeKind) -> tuple[Ints, Ints]:
    """Number the points from a seed outward; each step is predicted by the nearest numbered cell's own shape."""
    steps = _neighbours(kind)
    number: dict[int, tuple[int, int]] = {seed: (0, 0)}
    owner: dict[tuple[int, int], int] = {(0, 0): seed}
    shape: dict[int, Floats] = {seed: basis}
    queue = deque([seed])
    while queue:
        i = queue.popleft()
        node = number[i]
        local = _local_basis(pixels, node, owner, shape[i])
        shape[i] = local
        reach = 0.28 * float(np.linalg.norm(local, axis=1).mean())
        for step in steps:
            target = (node[0] + int(step[0]), node[1] + int(step[1]))
            if target in owner:
                continue
            guess = pixels[i] + step @ local
            # Where the cell on the other side is known, its step tells the bend: p(+1) = 2 p(0) - p(-1) to second
            # order would amplify noise, so half of each.
            opposite = owner.get((node[0] - int(step[0]), node[1] - int(step[1])))
            if opposite is not None:
                guess = 0.5 * guess + 0.5 * (2.0 * pixels[i] - pixels[opposite])
            distance, j = tree.query(guess)
            if distance > reach or int(j) in number:
                continue
            number[int(j)] = target
            owner[target] = int(j)
            shape[int(j)] = local
            queue.append(int(j))
    members = np.array(sorted(number), dtype=np.int64)
    nodes = np.array([number[int(i)] for i in members], dtype=np.int64).reshape(-1, 2)
    keep = _consistent(pixels[members], nodes, kind)
    return members[keep], nodes[keep]


def _local_basis(pixels: Floats, node: tuple[int, int], owner: dict[tuple[int, int], int], fallback: Floats) -> Floats:
    """Return the (2, 2) basis rows at a node, by least squares over its numbered surroundings."""
    rows: list[tuple[int, int]] = []
    places: list[Floats] = []
    for a in range(-2, 3):
        for b in range(-2, 3):
            j = owner.get((node[0] + a, node[1] + b))
            if j is not None:
                rows.append((a, b))
                places.append(pixels[j])
    if len(rows) < 5:
        return fallback
    design = np.column_stack([np.ones(len(rows)), np.array(rows)])
    if np.linalg.matrix_rank(design) < 3:
        return fallback
    solution, *_ = np.linalg.lstsq(design, np.array(places), rcond=None)
    return np.asarray(solution[1:])


def _consistent(pixels: Floats, nodes: Ints, kind: LatticeKind) -> Ints:
    """Return the members whose place agrees with the mean of opposite neighbours (a stray spot does not)."""
    if len(nodes) < 8:
        return np.arange(len(nodes))
    where = {(int(a), int(b)): k for k, (a, b) in enumerate(nodes)}
    spacing = float(np.median(nearest_neighbours(pixels, pixels, 2)[0][:, 1]))
    kept: list[int] = []
    for k, (a, b) in enumerate(nodes):
        errors: list[float] = []
        for da, db in _neighbours(kind)[: 3 if kind == "hexagonal" else 2]:
            one, two = where.get((int(a + da), int(b + db))), where.get((int(a - da), int(b - db)))
            if one is not None and two is not None:
                errors.append(float(np.hypot(*(0.5 * (pixels[one] + pixels[two]) - pixels[k]))))
        if not errors or min(errors) < 0.12 * spacing:
            kept.append(k)
    return np.array(kept, dtype=np.int64)


def _plane(nodes: Ints, kind: LatticeKind) -> Floats:
    """Return (n, 2) places of the nodes on the undistorted plate, in steps of the lattice."""
    a, b = nodes[:, 0].astype(np.float64), nodes[:, 1].astype(np.float64)
    if kind == "square":
        return np.stack([a, b], axis=1)
    return np.stack([a + 0.5 * b, np.sqrt(0.75) * b], axis=1)


def _place(plane: Floats, pixels: Floats) -> tuple[Floats, float]:
    """Lay the plate over the seen spots by the best similarity; return (n, 2) ideal pixels and the spacing, px."""
    # As complex numbers, q = s p + t with one complex s: rotation and scale at once.
    p = plane[:, 0] + 1j * plane[:, 1]
    q = pixels[:, 0] + 1j * pixels[:, 1]
    pc, qc = p - p.mean(), q - q.mean()
    s = np.vdot(pc, qc) / np.vdot(pc, pc)
    mirrored = np.vdot(pc.conj(), qc) / np.vdot(pc, pc)
    if abs(mirrored) > abs(s):
        # The numbering ran the other way round; a lattice is its own mirror image, so turn the numbers instead.
        pc, s = pc.conj(), mirrored
    placed = s * pc + q.mean()
    return np.stack([placed.real, placed.imag], axis=1), float(abs(s))


def draw_grid(image: NDArray[Any], sighting: GridSighting, residual: Floats | None = None) -> Bytes:
    """Return a BGR picture: the lattice found (green), spots outside it (red), residuals (yellow, 100 times)."""
    grey = grey_image(image)
    top = float(max(int(grey.max()), 1))
    picture = cv2.cvtColor(np.asarray(grey * (255.0 / top), dtype=np.uint8), cv2.COLOR_GRAY2BGR)
    where = {(int(a), int(b)): k for k, (a, b) in enumerate(sighting.nodes)}
    for (a, b), k in where.items():
        for da, db in _neighbours(sighting.kind):
            other = where.get((a + int(da), b + int(db)))
            if other is not None and other > k:
                _line(picture, sighting.pixels[k], sighting.pixels[other], (90, 160, 0))
    for pixel in sighting.pixels:
        cv2.circle(picture, _whole(pixel), max(int(2 * sighting.sigma_px), 2), (0, 255, 0), 1, cv2.LINE_AA)
    for pixel in sighting.unused:
        cv2.circle(picture, _whole(pixel), max(int(3 * sighting.sigma_px), 3), (0, 0, 255), 1, cv2.LINE_AA)
    if residual is not None:
        for pixel, error in zip(sighting.pixels, residual, strict=True):
            if np.isfinite(error).all():
                _line(picture, pixel, pixel + 100.0 * error, (0, 255, 255))
    return np.asarray(picture, dtype=np.uint8)


def _whole(pixel: Floats) -> tuple[int, int]:
    return round(float(pixel[0])), round(float(pixel[1]))


def _line(picture: NDArray[Any], start: Floats, end: Floats, colour: tuple[int, int, int]) -> None:
    cv2.line(picture, _whole(start), _whole(end), colour, 1, cv2.LINE_AA)
