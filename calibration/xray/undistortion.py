"""Undistortion of X-ray images: from a found grid to a map both ways, with its error on beads it has not seen.

"Ideal" pixels are those of the undistorted image, "raw" ones those of the image as brought.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from calibration.foundation.arrays import Floats, measured
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError, SolveError
from calibration.xray.distortion_models import (
    FitMap,
    LocalWeightedMean,
    PlaneMap,
    Polynomial,
    SplineSurface,
    cross_validate,
)
from calibration.xray.grid import GridSighting

__all__ = ["AnyMap", "DistortionMap", "MovingMap", "UndistortionReport", "fit_undistortion", "map_at"]

#: Distance of the nodes at which a map is stored, px: at this step the bicubic interpolation of a distortion of
#: 15 px is exact to 1e-4 px.
STEP_PX = 8.0
#: A map is stored this far beyond the image, px, so that points near its border have all their nodes.
MARGIN_PX = 32.0


@dataclass(frozen=True, eq=False)
class DistortionMap:
    """A distortion stored as displacements on a square net, both ways, with bicubic interpolation.

    Attributes:
        size: (width, height) of the image, px.
        step: distance of the nodes, px; the first node lies at (-margin, -margin).
        to_ideal: (rows, columns, 2) displacement from raw to ideal at raw nodes, px.
        to_raw: (rows, columns, 2) displacement from ideal to raw at ideal nodes, px.
        known: (rows, columns) bool, raw nodes within the part of the image that the grid covered.
    """

    size: tuple[int, int]
    step: float
    to_ideal: Floats
    to_raw: Floats
    known: NDArray[np.bool_]

    def __post_init__(self) -> None:
        shape = net_shape(self.size, self.step)
        for name, array in (("to_ideal", self.to_ideal), ("to_raw", self.to_raw)):
            if array.shape != (*shape, 2):
                raise InputError(f"distortion map: {name} must be {(*shape, 2)}, got {array.shape}")
            measured(array, f"distortion map: {name}")
        if self.known.shape != shape or self.known.dtype.kind not in "biu":
            raise InputError(f"distortion map: known must be {shape} of true or false, got {self.known.shape}")

    def undistort(self, pixels: Floats) -> Floats:
        """Take raw (..., 2) pixels to ideal ones; beyond the grid's coverage the nearest bend is continued."""
        return self._move(pixels, self.to_ideal)[0]

    def distort(self, pixels: Floats) -> Floats:
        """Take ideal (..., 2) pixels to raw ones."""
        return self._move(pixels, self.to_raw)[0]

    def undistort_with_jacobian(self, pixels: Floats) -> tuple[Floats, Floats]:
        """Return ideal (..., 2) pixels and the (..., 2, 2) derivative by the raw ones."""
        return self._move(pixels, self.to_ideal)

    def distort_with_jacobian(self, pixels: Floats) -> tuple[Floats, Floats]:
        """Return raw (..., 2) pixels and the (..., 2, 2) derivative by the ideal ones."""
        return self._move(pixels, self.to_raw)

    def covered(self, pixels: Floats) -> NDArray[np.bool_]:
        """Whether raw (..., 2) pixels lie in the part of the image that the grid covered."""
        at = np.nan_to_num((np.asarray(pixels) + MARGIN_PX) / self.step, nan=-1.0)
        cell = np.clip(np.rint(at), 0, np.array(self.known.shape)[::-1] - 1).astype(np.int64)
        return np.asarray(self.known[cell[..., 1], cell[..., 0]] & np.isfinite(pixels).all(axis=-1))

    def undistort_image(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the image without its distortion (bicubic); black where the raw image has nothing."""
        width, height = self.size
        if image.shape[:2] != (height, width):
            raise InputError(
                f"distortion map is for {width} x {height} px, the image has {image.shape[1]} x {image.shape[0]}"
            )
        grid = np.stack(np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float)), axis=-1)
        raw = self.distort(grid).astype(np.float32)
        return np.asarray(cv2.remap(image, raw[..., 0], raw[..., 1], cv2.INTER_CUBIC))

    def _move(self, pixels: Floats, table: Floats) -> tuple[Floats, Floats]:
        points = np.asarray(pixels, dtype=np.float64)
        flat = np.ascontiguousarray(points.reshape(-1, 2))
        moved, jacobian = displace(flat, table, self.step, MARGIN_PX)
        return moved.reshape(points.shape), jacobian.reshape(*points.shape, 2)


@compiled
def displace(points: Floats, table: Floats, step: float, margin: float) -> tuple[Floats, Floats]:
    """Move (n, 2) points by a net of displacements, Catmull-Rom in both directions, with the (n, 2, 2) derivative.

    A point outside the net takes the displacement of its nearest border point; NaN stays NaN.
    """
    n = points.shape[0]
    rows, columns = table.shape[0], table.shape[1]
    moved = np.empty((n, 2))
    jacobian = np.zeros((n, 2, 2))
    wx = np.empty(4)
    wy = np.empty(4)
    dx = np.empty(4)
    dy = np.empty(4)
    for i in range(n):
        if not (np.isfinite(points[i, 0]) and np.isfinite(points[i, 1])):
            moved[i] = np.nan
            jacobian[i] = np.nan
            continue
        gx = min(max((points[i, 0] + margin) / step, 1.0), columns - 2.000001)
        gy = min(max((points[i, 1] + margin) / step, 1.0), rows - 2.000001)
        kx, ky = int(gx), int(gy)
        _catmull(gx - kx, wx, dx)
        _catmull(gy - ky, wy, dy)
        for d in range(2):
            value, by_x, by_y = 0.0, 0.0, 0.0
            for b in range(4):
                for a in range(4):
                    t = table[ky - 1 + b, kx - 1 + a, d]
                    value += wy[b] * wx[a] * t
                    by_x += wy[b] * dx[a] * t
                    by_y += dy[b] * wx[a] * t
            moved[i, d] = points[i, d] + value
            jacobian[i, d, 0] = by_x / step
            jacobian[i, d, 1] = by_y / step
        jacobian[i, 0, 0] += 1.0
        jacobian[i, 1, 1] += 1.0
    return moved, jacobian


@compiled
def _catmull(t: float, weight: Floats, slope: Floats) -> None:
    """Write the four Catmull-Rom weights at t in [0, 1) and their derivatives."""
    weight[0] = 0.5 * (-t + 2.0 * t * t - t * t * t)
    weight[1] = 0.5 * (2.0 - 5.0 * t * t + 3.0 * t * t * t)
    weight[2] = 0.5 * (t + 4.0 * t * t - 3.0 * t * t * t)
    weight[3] = 0.5 * (-t * t + t * t * t)
    slope[0] = 0.5 * (-1.0 + 4.0 * t - 3.0 * t * t)
    slope[1] = 0.5 * (-10.0 * t + 9.0 * t * t)
    slope[2] = 0.5 * (1.0 + 8.0 * t - 9.0 * t * t)
    slope[3] = 0.5 * (-2.0 * t + 3.0 * t * t)


@dataclass(frozen=True, eq=False)
class UndistortionReport:
    """How well a grid was undistorted.

    Attributes:
        model: name of the model that was used.
        heldout_rms_px: per model tried, root mean square distance (2D) of held-out beads from their lattice place.
        heldout: (n, 2) errors of the chosen model on held-out beads, px; NaN where it says nothing, or rejected.
        rejected: beads left out because they contradict their neighbours (cut by the rim of the field, overlapped).
        largest_shift_px: largest displacement of a bead by the distortion.
        round_trip_px: largest error of raw to ideal to raw over the covered part.
    """

    model: str
    heldout_rms_px: dict[str, float]
    heldout: Floats
    rejected: int
    largest_shift_px: float
    round_trip_px: float


def candidate_models(count: int) -> dict[str, FitMap]:
    """Return the models worth trying on a grid of ``count`` beads, by name."""
    models: dict[str, FitMap] = {"local weighted mean": LocalWeightedMean.fit}
    for degree in (3, 5, 7, 9, 11):
        if count * 0.9 > (degree + 1) * (degree + 2):
            models[f"polynomial {degree}"] = partial(Polynomial.fit, degree=degree)
    for cells in (4, 7, 11):
        if count * 0.9 > (cells + 3) ** 2 * 0.5:
            models[f"B-spline {cells}"] = partial(SplineSurface.fit, cells=cells)
    return models


def fit_undistortion(sighting: GridSighting, *, model: str | None = None) -> tuple[DistortionMap, UndistortionReport]:
    """Fit the distortion of a found grid, with the model that predicts held-out beads best unless one is named."""
    models = candidate_models(len(sighting))
    if model is not None:
        if model not in models:
            raise InputError(f"unknown distortion model '{model}'; this grid allows {', '.join(models)}")
        models = {model: models[model]}
    raw, ideal = sighting.pixels, sighting.ideal
    rejected = _outliers(raw, ideal)
    raw, ideal = raw[~rejected], ideal[~rejected]
    sighting = replace(sighting, pixels=raw, ideal=ideal, nodes=sighting.nodes[~rejected])
    inner = _enclosed(raw)
    errors = {name: cross_validate(fit, raw, ideal) for name, fit in models.items()}
    # Scored on beads with neighbours all round: at the rim a held-out bead asks for extrapolation, which the map
    # is never used for.
    score = {name: _rms(error[inner]) for name, error in errors.items()}
    best = min(score, key=lambda name: score[name])
    if not np.isfinite(score[best]):
        raise SolveError("undistortion: no model could predict held-out beads; the grid is too sparse", errors)
    fit = models[best]
    distortion = _tabulate(fit(raw, ideal), fit(ideal, raw), sighting, best)
    back = distortion.distort(distortion.undistort(raw)) - raw
    shift = np.linalg.norm(raw - ideal, axis=1)
    heldout = np.full((len(rejected), 2), np.nan)
    heldout[~rejected] = errors[best]
    report = UndistortionReport(
        best,
        score,
        heldout,
        int(rejected.sum()),
        float(shift.max()),
        float(np.linalg.norm(back, axis=1).max()),
    )
    return distortion, report


@dataclass(frozen=True, eq=False)
class MovingMap:
    """The distortion of a C-arm that moves: maps at some frames of the film, linear between them, constant beyond.

    Attributes:
        frames: frame numbers, ascending.
        maps: the map at each.
    """

    frames: tuple[int, ...]
    maps: tuple[DistortionMap, ...]

    def __post_init__(self) -> None:
        if len(self.frames) != len(self.maps) or not self.maps:
            raise InputError(f"moving distortion: {len(self.frames)} frames for {len(self.maps)} maps")
        if any(b <= a for a, b in pairwise(self.frames)):
            raise InputError(f"moving distortion: frames must ascend, got {self.frames}")
        if len({one.size for one in self.maps}) > 1:
            raise InputError(f"moving distortion: grid images differ in size: {[one.size for one in self.maps]}")

    def at(self, frame: float) -> DistortionMap:
        """Return the map at a frame."""
        upper = int(np.searchsorted(self.frames, frame))
        if upper == 0 or upper == len(self.frames):
            return self.maps[min(upper, len(self.maps) - 1)]
        low, high = self.maps[upper - 1], self.maps[upper]
        t = (frame - self.frames[upper - 1]) / (self.frames[upper] - self.frames[upper - 1])
        return DistortionMap(
            low.size,
            low.step,
            (1 - t) * low.to_ideal + t * high.to_ideal,
            (1 - t) * low.to_raw + t * high.to_raw,
            low.known & high.known,
        )


#: A distortion that stands still, or one that moves with the C-arm.
AnyMap = DistortionMap | MovingMap


def map_at(one: AnyMap, frame: float) -> DistortionMap:
    """Return a distortion at a frame of the film."""
    return one.at(frame) if isinstance(one, MovingMap) else one


def net_shape(size: tuple[int, int], step: float) -> tuple[int, int]:
    """Return (rows, columns) of the net that holds the map of an image of (width, height) px."""
    width, height = size
    return int(np.ceil((height + 2 * MARGIN_PX) / step)) + 1, int(np.ceil((width + 2 * MARGIN_PX) / step)) + 1


def _tabulate(forward: PlaneMap, backward: PlaneMap, sighting: GridSighting, name: str) -> DistortionMap:
    """Store a fitted map as displacements on a net; outside the grid a polynomial of low degree continues it."""
    rows, columns = net_shape(sighting.size, STEP_PX)
    x = np.arange(columns) * STEP_PX - MARGIN_PX
    y = np.arange(rows) * STEP_PX - MARGIN_PX
    nodes = np.stack(np.meshgrid(x, y), axis=-1)
    tables: list[Floats] = []
    coverage: list[NDArray[np.bool_]] = []
    pairs = ((forward, sighting.pixels, sighting.ideal), (backward, sighting.ideal, sighting.pixels))
    for plane_map, source, target in pairs:
        inside = Delaunay(source).find_simplex(nodes) >= 0
        beyond = Polynomial.fit(source, target, degree=3)
        # Within half a spacing of the grid's rim the model still holds; farther out the cubic takes over smoothly.
        reach = cv2.distanceTransform((~inside).astype(np.uint8), cv2.DIST_L2, 5).astype(np.float64) * STEP_PX
        fade = np.clip((reach / sighting.spacing_px - 0.5) / 2.0, 0.0, 1.0)
        trust = 1.0 - fade * fade * (3.0 - 2.0 * fade)
        value = plane_map(nodes)
        trust = np.where(np.isfinite(value[..., 0]), trust, 0.0)[..., None]
        mixed = trust * np.nan_to_num(value) + (1.0 - trust) * beyond(nodes)
        tables.append(mixed - nodes)
        coverage.append(inside)
    return DistortionMap(
        sighting.size, STEP_PX, tables[0], _consistent_inverse(tables[0], tables[1], nodes), coverage[0]
    )


def _consistent_inverse(to_ideal: Floats, to_raw: Floats, nodes: Floats) -> Floats:
    """Improve the inverse table until raw -> ideal -> raw closes: Newton's method on the stored forward map."""
    target = nodes.reshape(-1, 2)
    raw = target + to_raw.reshape(-1, 2)
    for _ in range(4):
        value, jacobian = displace(np.ascontiguousarray(raw), to_ideal, STEP_PX, MARGIN_PX)
        step = np.linalg.solve(jacobian, (target - value)[..., None])[..., 0]
        # Far outside the image the continued map may fold; there the fitted inverse is kept.
        length = np.linalg.norm(step, axis=1)
        raw = np.where((length < 20.0)[:, None], raw + step, raw)
    return np.asarray((raw - target).reshape(to_raw.shape))


def _enclosed(points: Floats) -> NDArray[np.bool_]:
    """Whether each of (n, 2) points is inside the outline of the others, not on it."""
    inside = np.ones(len(points), dtype=bool)
    mesh = Delaunay(points)
    # Long thin triangles span the bays of a jagged rim: edges longer than twice the usual do not belong.
    three = mesh.simplices
    edges = np.concatenate([three[:, [0, 1]], three[:, [1, 2]], three[:, [2, 0]]])
    length = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
    usual = np.median(length)
    long_triangle = (length.reshape(3, -1) > 1.8 * usual).any(axis=0)
    kept = mesh.simplices[~long_triangle]
    sides = np.sort(np.concatenate([kept[:, [0, 1]], kept[:, [1, 2]], kept[:, [2, 0]]]), axis=1)
    unique, count = np.unique(sides, axis=0, return_counts=True)
    inside[unique[count == 1].ravel()] = False
    used = np.zeros(len(points), dtype=bool)
    used[kept.ravel()] = True
    return inside & used


def _outliers(raw: Floats, ideal: Floats) -> NDArray[np.bool_]:
    """Whether each bead lies far from where its neighbours put it (five robust sigmas, at least 0.1 px)."""
    bad = np.zeros(len(raw), dtype=bool)
    for _ in range(2):
        kept = np.flatnonzero(~bad)
        if len(kept) < 40:
            break
        error = np.linalg.norm(cross_validate(LocalWeightedMean.fit, raw[kept], ideal[kept]), axis=1)
        inner = _enclosed(raw[kept])
        usual = float(np.nanmedian(error[inner])) if inner.any() else np.inf
        # At the rim the held-out prediction extrapolates and errs by itself, three times as much.
        limit = max(5.0 * usual, 0.1) * np.where(inner, 1.0, 3.0)
        with np.errstate(invalid="ignore"):
            bad[kept[error > limit]] = True
    return bad


def _rms(errors: Floats) -> float:
    """Return the root mean square length of (n, 2) errors, infinite where a model left out more than one in ten."""
    good = np.isfinite(errors).all(axis=1)
    if not len(errors) or good.mean() < 0.9:
        return float("inf")
    return float(np.sqrt(np.mean(np.sum(errors[good] ** 2, axis=1))))
