"""Follow beads through a clip: predict, find candidates, decide over all views at once, refine, and doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.xray.attenuation import Polarity, attenuation_table, blind_rim, grey_image
from calibration.xray.spot_fit import window_radius
from calibration.xray.spots import Spots, fit_spots
from tracking.beads.association import NOBODY, associate
from tracking.beads.candidates import nearby_maxima, refine_group
from tracking.beads.epipolar import EpipolarGeometry, learn_geometry, unchanged
from tracking.beads.motion import PixelFilters, heavy_tailed
from tracking.beads.tracks import PointStatus

__all__ = ["BeadTracker", "BeadTrackerSettings"]

#: Gaussian radii tried at the starting points where the size of the beads is not told, px.
START_SIGMAS = (1.2, 1.7, 2.4, 3.4, 4.8, 6.8)
#: Frames after which the epipolar relation is learnt anew from the tracks, where no calibration gives it.
LEARN_AT = (6, 9, 14, 22, 35, 56, 90, 145, 230, 370)


@dataclass(frozen=True)
class BeadTrackerSettings:
    """What the tracker expects of beads and motion.

    Attributes:
        acceleration_px: typical change of velocity from frame to frame, px per frame^2.
        start_speed_px: typical speed at the first frame, px per frame.
        max_reach_px: farthest candidate from a prediction, px.
        missing_cost: price (chi square) of saying "not seen"; a match that costs more is not believed.
        contrast_ratio: a spot whose contrast changed by more than this factor is another thing.
        sigma_ratio: the same for its radius.
        mass_ratio: a spot with more attenuation over its area than this, relative to the bead's, holds something else.
        max_epipolar: in units of the geometry's sigma; a pair beyond is not one bead.
        coast_frames: frames a bead may be lost before it comes back only if another view or bone agrees.
    """

    acceleration_px: float = 1.0
    start_speed_px: float = 4.0
    max_reach_px: float = 30.0
    missing_cost: float = 16.0
    contrast_ratio: float = 2.6
    sigma_ratio: float = 1.8
    mass_ratio: float = 1.5
    max_epipolar: float = 4.5
    coast_frames: int = 4


class BeadTracker:
    """The state of the beads between two frames: a constant-velocity Kalman filter per bead and view."""

    def __init__(
        self,
        images: Sequence[NDArray[Any]],
        starts: Floats,
        *,
        polarity: Sequence[Polarity],
        speeds: Floats | None = None,
        sigma_px: float | None = None,
        geometry: EpipolarGeometry | None = None,
        settings: BeadTrackerSettings | None = None,
    ) -> None:
        """Take up the beads at (C, B, 2) starts (NaN: unknown there) in the first frame's images."""
        self.settings = settings or BeadTrackerSettings()
        self.geometry = geometry
        self.polarity = tuple(polarity)
        self.views, self.beads = starts.shape[:2]
        grey = [grey_image(image) for image in images]
        self.tables = [attenuation_table(image.dtype, kind) for image, kind in zip(grey, self.polarity, strict=True)]
        # The rim of the image intensifier stands still: the first frame shows it for all.
        self.blind = [blind_rim(image, kind) for image, kind in zip(grey, self.polarity, strict=True)]
        self.filters = PixelFilters(
            self.views,
            self.beads,
            acceleration_px=self.settings.acceleration_px,
            start_speed_px=self.settings.start_speed_px,
        )
        self.sigma = np.full((self.views, self.beads), np.nan)
        self.contrast = np.full((self.views, self.beads), np.nan)
        self.blur = np.full((self.views, self.beads), np.nan)
        self.lost = np.zeros((self.views, self.beads), dtype=np.int64)
        self.pixels = np.full((self.views, self.beads, 2), np.nan)
        self.covariance = np.full((self.views, self.beads, 2, 2), np.nan)
        self.status = np.zeros((self.views, self.beads), dtype=np.uint8)
        self._calibrated = geometry is not None
        self._history: list[Floats] = []
        self._was_lost = self.lost.copy()
        self._speeds = np.full(starts.shape, np.nan) if speeds is None else speeds
        for view, image in enumerate(grey):
            self._start_view(image, view, starts[view], sigma_px)

    def _start_view(self, image: NDArray[Any], view: int, starts: Floats, sigma_px: float | None) -> None:
        """Fit the beads of the first frame and learn how they look in this view."""
        known = np.isfinite(starts).all(axis=1)
        spots = _consistent_fit(image, starts, self.polarity[view], sigma_px, self.blind[view])
        pixels, sigma, contrast = spots.pixels, spots.sigma, spots.contrast
        with np.errstate(invalid="ignore"):
            fitted = known & np.isfinite(pixels[:, 0]) & (contrast > 0.05)
        typical = float(np.median(sigma[fitted])) if fitted.any() else sigma_px or START_SIGMAS[0]
        height = float(np.median(contrast[fitted])) if fitted.any() else 0.4
        # Beads of one session are of one size: a fit far from the others' is of something else.
        with np.errstate(invalid="ignore"):
            fitted &= (sigma < 1.7 * typical) & (sigma > typical / 1.7)
        self.sigma[view] = np.where(fitted, sigma, typical)
        self.contrast[view] = np.where(fitted, contrast, height)
        for b in np.flatnonzero(known):
            at, spread = (pixels[b], 0.3) if fitted[b] else (starts[b], 2.0)
            self.filters.start(view, int(b), at, spread, self._speeds[view, b])
            if fitted[b]:
                self.pixels[view, b] = pixels[b]
                self.covariance[view, b] = spots.covariance[b]
                self.blur[view, b] = np.trace(spots.covariance[b])
                self.status[view, b] = PointStatus.TRACKED
            else:
                self.lost[view, b] = 1

    def fix(self, given: Floats | None) -> None:
        """Put the user's points of the current frame, (C, B, 2) with NaN for none, in place of the tracked ones."""
        if given is None:
            return
        for view, b in zip(*np.nonzero(np.isfinite(given[..., 0])), strict=True):
            self._accept(int(view), int(b), given[view, b], np.eye(2) * 0.5**2, PointStatus.GIVEN)
            self.lost[view, b] = 0

    def step(self, images: Sequence[NDArray[Any]], given: Floats | None = None) -> None:
        """Advance by one frame; ``given`` (C, B, 2) are points the user fixed in it (NaN: none)."""
        grey = [grey_image(image) for image in images]
        self.filters.predict()
        self._was_lost = self.lost.copy()
        active = np.isfinite(self.filters.mean[..., 0])
        if given is None:
            given = np.full((self.views, self.beads, 2), np.nan)
        fixed = np.isfinite(given[..., 0])
        points, heights, lists = self._candidates(grey, active & ~fixed)
        choice = self._choose(points, heights, lists, given)
        self._refine(grey, points, choice, given)
        self._doubt(fixed)
        self._learn()

    def _candidates(
        self, grey: Sequence[NDArray[Any]], wanted: Bools
    ) -> tuple[list[Floats], list[Floats], list[list[list[int]]]]:
        """Collect spots near the predictions: per view (n, 2) points, (n,) contrasts, and per bead their numbers."""
        points: list[Floats] = []
        heights: list[Floats] = []
        lists: list[list[list[int]]] = [[[] for _ in range(self.views)] for _ in range(self.beads)]
        for view, image in enumerate(grey):
            found: list[Floats] = []
            tall: list[float] = []
            for b in np.flatnonzero(wanted[view]):
                reach = min(5.0 * self.filters.spread(view, int(b)) + 2.0, self.settings.max_reach_px)
                floor = self.contrast[view, b] / (1.3 * self.settings.contrast_ratio)
                near, height = nearby_maxima(
                    image, self.tables[view], self.filters.mean[view, b, :2], reach, float(self.sigma[view, b]), floor
                )
                for point, value in zip(near, height, strict=True):
                    lists[b][view].append(_number(found, tall, point, float(value)))
            self._merged(image, view, wanted[view], found, tall, lists)
            points.append(np.array(found).reshape(-1, 2))
            heights.append(np.array(tall))
        return points, heights, [[sorted(set(v)) for v in bead] for bead in lists]

    def _merged(
        self,
        image: NDArray[Any],
        view: int,
        wanted: Bools,
        found: list[Floats],
        tall: list[float],
        lists: list[list[list[int]]],
    ) -> None:
        """Add both centres of beads that are expected to overlap: one blob shows one maximum, or a shifted one."""
        beads = np.flatnonzero(wanted)
        at = self.filters.mean[view, :, :2]
        for i, a in enumerate(beads):
            for b in beads[i + 1 :]:
                gap = np.hypot(*(at[a] - at[b]))
                if gap > 2.2 * (self.sigma[view, a] + self.sigma[view, b]):
                    continue
                pair = np.array([a, b])
                fitted, _ = refine_group(
                    image,
                    self.tables[view],
                    at[pair],
                    self.sigma[view, pair],
                    self.contrast[view, pair],
                    hold=True,
                    blind=self.blind[view],
                )
                if not np.isfinite(fitted).all():
                    continue
                for k in range(2):
                    # The maximum of their common blob lies between them and is neither.
                    number = _number(found, tall, fitted[k, :2], float(fitted[k, 3]), same_px=0.1)
                    lists[a][view].append(number)
                    lists[b][view].append(number)

    def _choose(
        self, points: list[Floats], heights: list[Floats], lists: list[list[list[int]]], given: Floats
    ) -> list[tuple[int, ...]]:
        """Decide which candidate is which bead, over views and beads at once."""
        costs: list[list[Floats]] = []
        for b in range(self.beads):
            row: list[Floats] = []
            for view in range(self.views):
                index = lists[b][view]
                cost = self._distance_cost(view, b, points[view][index], 0.4)
                cost = cost + (np.log(heights[view][index] / self.contrast[view, b]) / 0.45) ** 2
                row.append(cost)
            costs.append(row)
        geometry = self.geometry

        def pair_cost(i: int, c: int, j: int, d: int) -> float:
            if geometry is None or not geometry.known(i, j):
                return 0.0
            distance = float(geometry.distance(i, points[i][c], j, points[j][d]))
            # Candidates are known to about half a pixel before the refinement.
            return min(distance**2 / (geometry.sigma_px**2 + 0.3**2), 60.0)

        return associate(costs, lists, pair_cost, missing_cost=self.settings.missing_cost)

    def _refine(
        self, grey: Sequence[NDArray[Any]], points: list[Floats], choice: list[tuple[int, ...]], given: Floats
    ) -> None:
        """Fit the chosen spots, those that overlap together, check that they look like their bead, update."""
        self.pixels[:] = np.nan
        self.covariance[:] = np.nan
        self.status[:] = PointStatus.LOST
        for view, image in enumerate(grey):
            fixed = np.isfinite(given[view, :, 0])
            for own in np.flatnonzero(fixed):
                self._accept(view, int(own), given[view, own], np.eye(2) * 0.5**2, PointStatus.GIVEN)
            chosen = [b for b in range(self.beads) if not fixed[b] and choice[b] and choice[b][view] != NOBODY]
            centres = {b: points[view][choice[b][view]] for b in chosen}
            # What the user fixed stays, but its spot is there and must not be taken for part of another.
            centres |= {int(b): given[view, b] for b in np.flatnonzero(fixed)}
            kept: dict[int, tuple[Floats, Floats, PointStatus]] = {}
            for group in _close_groups(centres, self.sigma[view]):
                present, fitted, cov = self._fit_group(image, view, group, centres, fixed)
                kind = PointStatus.OVERLAPPING if len(present) > 1 else PointStatus.TRACKED
                for k, b in enumerate(present):
                    if not fixed[b] and self._looks_like(view, b, fitted[k], centres[b]):
                        kept[b] = fitted[k], cov[k], kind
            for b, (values, cov, kind) in kept.items():
                veil = self._veil(view, b, values, cov, kept) if kind == PointStatus.TRACKED else 0.0
                if veil > 0.0:
                    cov, kind = cov + veil**2 * np.eye(2), PointStatus.OVERLAPPING
                self._accept(view, b, values[:2], cov, kind)
                if kind == PointStatus.TRACKED:
                    self._remember(view, b, values, cov)
        for view in range(self.views):
            gone = ~np.isfinite(self.pixels[view, :, 0])
            self.lost[view] = np.where(gone, self.lost[view] + 1, 0)

    def _distance_cost(self, view: int, b: int, pixels: Floats, noise_px: float) -> Floats:
        """Return the price of (..., 2) places; sudden motion is for a bead just seen, not for one that returns."""
        distance2 = self.filters.distance2(view, b, pixels, noise_px)
        return heavy_tailed(distance2) if self._was_lost[view, b] == 0 else distance2

    def _fit_group(
        self, image: NDArray[Any], view: int, group: list[int], centres: Mapping[int, Floats], fixed: Bools
    ) -> tuple[list[int], Floats, Floats]:
        """Fit beads that overlap; one that the image has no attenuation for is not there.

        Two beads in one blob leave twice the attenuation of one. A bead that gets clearly less than its own is left
        out; where there is clearly less than that of all, the one that was lost longest, or is farthest from its
        prediction.

        Returns:
            the beads that are there, (k, 4) their spots and (k, 2, 2) covariance of the centres.
        """
        present = list(group)
        while True:
            sigma, contrast = self.sigma[view, present], self.contrast[view, present]
            at = np.array([centres[b] for b in present])
            fitted, cov = refine_group(
                image, self.tables[view], at, sigma, contrast, hold=len(present) > 1, blind=self.blind[view]
            )
            if len(present) == 1:
                return present, fitted, cov
            mass = float(np.nansum(fitted[:, 3] * fitted[:, 2] ** 2) / np.sum(contrast * sigma**2))
            loose = [b for b in present if not fixed[b]]
            share = {b: float(np.nan_to_num(fitted[k, 3] / contrast[k])) for k, b in enumerate(present)}
            faint = [b for b in loose if share[b] < 0.6]
            if not loose or not (faint or mass < 1.0 - 0.5 / len(present)):
                return present, fitted, cov
            if faint:
                present.remove(min(faint, key=lambda b: share[b]))
            else:
                far = {b: float(self.filters.distance2(view, b, centres[b], 0.4)) for b in loose}
                present.remove(max(loose, key=lambda b: (self._was_lost[view, b], far[b])))

    def _veil(self, view: int, b: int, fitted: Floats, cov: Floats, kept: Mapping[int, Any]) -> float:
        """Return how far (1 sigma, px) something that was not told apart from this bead may have drawn it.

        Attenuations add: a bead's own, over its area, is the same before bone and flesh, and more of it means that
        something else is in the spot; so does a residual far beyond the usual. Or another bead should be here, and
        was not found.
        """
        size = self.sigma[view, b]
        mass = fitted[3] * fitted[2] ** 2 / (self.contrast[view, b] * size**2)
        if mass > self.settings.mass_ratio or float(np.trace(cov)) > 5.0 * self.blur[view, b]:
            return float(size)
        missing = [
            o for o in range(self.beads) if o not in kept and self._was_lost[view, o] <= self.settings.coast_frames
        ]
        if not missing:
            return 0.0
        gap = np.hypot(*(self.filters.mean[view, missing, :2] - fitted[:2]).T)
        near = gap[gap < 1.5 * (size + self.sigma[view, missing])]
        return max(0.5 * float(near.min()), 0.3) if len(near) else 0.0

    def _looks_like(self, view: int, b: int, fitted: Floats, at: Floats) -> bool:
        """Whether a fitted spot has the size, the contrast and the place of the bead."""
        if not np.isfinite(fitted).all():
            return False
        s = self.settings
        size = abs(np.log(fitted[2] / self.sigma[view, b]))
        height = abs(np.log(fitted[3] / self.contrast[view, b]))
        far = float(self._distance_cost(view, b, fitted[:2], 0.3))
        return bool(
            size < np.log(s.sigma_ratio)
            and height < np.log(s.contrast_ratio)
            and np.hypot(*(fitted[:2] - at)) < 1.5 * self.sigma[view, b] + 0.5
            and far < s.missing_cost * 1.5
        )

    def _accept(self, view: int, b: int, pixel: Floats, cov: Floats, kind: PointStatus) -> None:
        """Take a measured point into the filter and the output."""
        self.pixels[view, b] = pixel
        self.covariance[view, b] = cov
        self.status[view, b] = kind
        self.filters.update(view, b, pixel, cov)

    def _remember(self, view: int, b: int, fitted: Floats, cov: Floats, rate: float = 0.08) -> None:
        """Let size, contrast and blur follow slowly: a bead turns into thicker tissue, it does not change its size."""
        if not np.isfinite(self.blur[view, b]):
            self.blur[view, b] = np.trace(cov)
        self.blur[view, b] *= (float(np.trace(cov)) / self.blur[view, b]) ** rate
        self.sigma[view, b] *= (fitted[2] / self.sigma[view, b]) ** rate
        self.contrast[view, b] *= (fitted[3] / self.contrast[view, b]) ** rate

    def _doubt(self, fixed: Bools) -> None:
        """Drop points that contradict the other view, and returns after a long loss that nobody confirms."""
        s = self.settings
        seen = np.isfinite(self.pixels[..., 0])
        agreed = np.zeros_like(seen)
        if self.geometry is not None:
            for i in range(self.views):
                for j in range(i + 1, self.views):
                    if not self.geometry.known(i, j):
                        continue
                    both = seen[i] & seen[j]
                    distance = self.geometry.distance(i, self.pixels[i], j, self.pixels[j])
                    with np.errstate(invalid="ignore"):
                        bad = both & (distance > s.max_epipolar * self.geometry.sigma_px)
                    agreed[i] |= both & ~bad
                    agreed[j] |= both & ~bad
                    for b in np.flatnonzero(bad):
                        # The one that was lost more recently, or surprised its filter more, is the wrong one.
                        worse = i if self._surprise(i, int(b)) >= self._surprise(j, int(b)) else j
                        if fixed[worse, b]:
                            worse = j if worse == i else i
                        if not fixed[worse, b]:
                            self._drop(worse, int(b))
        returning = self._was_lost > s.coast_frames
        for view, b in zip(*np.nonzero(returning & seen & ~agreed & ~fixed), strict=True):
            self._drop(int(view), int(b))

    def _surprise(self, view: int, b: int) -> float:
        return float(self._was_lost[view, b]) + float(self.status[view, b] == PointStatus.OVERLAPPING)

    def _drop(self, view: int, b: int) -> None:
        """Take a point back: the bead counts as not seen in this view."""
        self.pixels[view, b] = np.nan
        self.covariance[view, b] = np.nan
        self.status[view, b] = PointStatus.LOST
        self.filters.undo(view, b)
        self.lost[view, b] = self._was_lost[view, b] + 1

    def _learn(self) -> None:
        """Without a calibration, learn the epipolar relation from what has been tracked so far."""
        if self._calibrated or self.views < 2:
            return
        self._history.append(self.pixels.copy())
        if len(self._history) in LEARN_AT:
            self.geometry = learn_geometry(np.stack(self._history[-400:]), [unchanged] * self.views)


def _consistent_fit(
    image: NDArray[Any], starts: Floats, polarity: Polarity, sigma_px: float | None, blind: Bytes
) -> Spots:
    """Fit the starting spots with the size that most of them turn out to have: the fit's window depends on it."""
    sigma = sigma_px
    if sigma is None:
        trials = [fit_spots(image, starts, sigma=s, polarity=polarity, blind=blind) for s in START_SIGMAS]
        # The size whose fits end nearest to where they began: neither a speck of noise nor the bone around it.
        drift = [
            float(np.nanmedian(np.abs(np.log(np.append(t.sigma, np.nan) / s))))
            if np.isfinite(t.sigma).any()
            else np.inf
            for s, t in zip(START_SIGMAS, trials, strict=True)
        ]
        lost = [float(np.isnan(t.sigma[np.isfinite(starts[:, 0])]).mean()) for t in trials]
        sigma = START_SIGMAS[int(np.argmin(np.array(drift) + 2.0 * np.array(lost)))]
    spots = fit_spots(image, starts, sigma=sigma, polarity=polarity, blind=blind)
    if sigma_px is None and np.isfinite(spots.sigma).any():
        spots = fit_spots(image, starts, sigma=float(np.nanmedian(spots.sigma)), polarity=polarity, blind=blind)
    return spots


def _number(found: list[Floats], heights: list[float], point: Floats, height: float, *, same_px: float = 0.7) -> int:
    """Return the number of a candidate, the same for points closer than ``same_px``."""
    for k, other in enumerate(found):
        if abs(other[0] - point[0]) < same_px and abs(other[1] - point[1]) < same_px:
            return k
    found.append(np.asarray(point, dtype=np.float64))
    heights.append(max(height, 1e-3))
    return len(found) - 1


def _close_groups(centres: Mapping[int, Floats], sigma: Floats) -> list[list[int]]:
    """Group beads whose fit windows overlap enough to disturb each other."""
    groups: list[list[int]] = []
    for b, at in centres.items():
        reach = 0.5 * window_radius(float(sigma[b])) + 2.0 * float(sigma[b])
        touching = [g for g in groups if any(np.hypot(*(centres[o] - at)) < reach for o in g)]
        merged = [b, *(o for g in touching for o in g)]
        groups = [g for g in groups if g not in touching]
        groups.append(sorted(merged))
    return groups
