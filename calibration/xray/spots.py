"""Round spots found in X-ray images, to a fraction of a pixel: beads, holes of a grid, markers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from calibration.foundation.arrays import Bytes, Floats, Ints, Singles
from calibration.xray.attenuation import NOTHING_BLIND, Polarity, attenuation_table
from calibration.xray.spot_fit import fit_each_spot

__all__ = ["Spots", "find_spots", "fit_spots", "local_maxima", "nearest_neighbours", "roundness", "spot_response"]


@dataclass(frozen=True, eq=False)
class Spots:
    """Fitted spots of one image.

    Attributes:
        pixels: (n, 2) centres, px.
        sigma: (n,) Gaussian radius, px; a disc of radius r has about r / 2 to r / 1.5.
        contrast: (n,) height in units of attenuation (natural logarithm of intensity).
        covariance: (n, 2, 2) of the centre, px^2, from the residual of the fit.
        score: (n,) contrast over the noise of its surroundings.
    """

    pixels: Floats
    sigma: Floats
    contrast: Floats
    covariance: Floats
    score: Floats

    def __len__(self) -> int:
        return len(self.pixels)

    def take(self, which: NDArray[Any]) -> Spots:
        """Return the spots that an index or boolean array selects, in its order."""
        return Spots(
            self.pixels[which],
            self.sigma[which],
            self.contrast[which],
            self.covariance[which],
            self.score[which],
        )


def fit_spots(
    image: NDArray[Any],
    starts: Floats,
    *,
    sigma: float | Floats,
    polarity: Polarity = "dark",
    contrast: float | Floats = 0.3,
    max_shift: float | None = None,
    radius: float | None = None,
    blind: Bytes = NOTHING_BLIND,
) -> Spots:
    """Fit one spot at each start, each on its own; those that fail are NaN.

    Args:
        image: (H, W) as `grey_image` returns it.
        starts: (n, 2) px.
        sigma: expected Gaussian radius, px, one or one each.
        polarity: dark spots (absorbing) or bright ones.
        contrast: expected height, attenuation.
        max_shift: px from the start; twice sigma unless given.
        radius: of the window, px; three times sigma or so unless given. Less where neighbours are near.
        blind: (H, W) where the image is not exposed.
    """
    table = attenuation_table(image.dtype, polarity)
    n = len(starts)
    sigmas = np.broadcast_to(np.asarray(sigma, dtype=np.float64), (n,))
    contrasts = np.broadcast_to(np.asarray(contrast, dtype=np.float64), (n,))
    start = np.column_stack([np.asarray(starts, dtype=np.float64).reshape(n, 2), sigmas, contrasts])
    shift = -1.0 if max_shift is None else max_shift
    reach = -1.0 if radius is None else radius
    values, covariance, noise = fit_each_spot(image, table, start, shift, reach, blind)
    return Spots(values[:, :2], values[:, 2], values[:, 3], covariance, values[:, 3] / np.maximum(noise, 1e-6))


def spot_response(image: NDArray[Any], sigma: float, polarity: Polarity = "dark") -> Singles:
    """Return the difference of Gaussians of the attenuation: large where a spot of this sigma stands out."""
    values = attenuation_table(image.dtype, polarity)[image]
    # Attenuation near the dark floor is noise of the logarithm: smoothing in proportion to the light would cost
    # a second filter; the local noise of `find_spots` takes care of it.
    inner = cv2.GaussianBlur(values, (0, 0), 0.8 * sigma, borderType=cv2.BORDER_REPLICATE)
    outer = cv2.GaussianBlur(values, (0, 0), 1.6 * sigma, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(inner - outer, dtype=np.float32)


def local_maxima(response: Singles, threshold: float | Singles, spacing: float) -> Floats:
    """Return (n, 2) px of pixels that exceed the threshold and all others within ``spacing``, strongest first."""
    reach = max(round(spacing), 1)
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    peak = (response >= cv2.dilate(response, disc)) & (response > threshold)
    ys, xs = np.nonzero(peak)
    order = np.argsort(-response[ys, xs], kind="stable")
    return np.stack([xs, ys], axis=1).astype(np.float64)[order]


def find_spots(
    image: NDArray[Any],
    *,
    sigma: float,
    polarity: Polarity = "dark",
    min_score: float = 5.0,
    min_contrast: float = 0.1,
    max_count: int = 2000,
    sigma_range: tuple[float, float] = (0.5, 1.8),
) -> Spots:
    """Find and fit the spots of about one size in an image, strongest first.

    A candidate is a maximum of the difference of Gaussians that stands out from the noise around it and is round
    (both curvatures alike, so that edges of bones do not count); it stays if its fit converges near it with a
    sigma within ``sigma_range`` times the expected one.
    """
    response = spot_response(image, sigma, polarity)
    # The box filter sums with carries, which can leave a tiny negative where the image is flat.
    power = cv2.blur(response * response, (2 * int(8.0 * sigma) + 1,) * 2)
    noise = np.sqrt(np.maximum(power, 0.0)) + 1e-4
    # A spot of contrast a and just this sigma answers with 0.33 a; half of that leaves room for other sigmas.
    floor = np.maximum(1.2 * noise, 0.17 * min_contrast)
    starts = local_maxima(response, np.asarray(floor, dtype=np.float32), sigma)
    edge = int(np.ceil(2.0 * sigma))
    h, w = image.shape
    inside = (starts[:, 0] >= edge) & (starts[:, 0] < w - edge) & (starts[:, 1] >= edge) & (starts[:, 1] < h - edge)
    starts = starts[inside]
    if len(starts):
        starts = starts[roundness(response, starts, max(round(0.7 * sigma), 1)) > 0.12][: 4 * max_count]
    spots = fit_spots(image, starts, sigma=sigma, polarity=polarity, max_shift=1.5 * sigma)
    with np.errstate(invalid="ignore"):
        good = (
            (spots.score > min_score)
            & (spots.contrast > min_contrast)
            & (spots.sigma > sigma_range[0] * sigma)
            & (spots.sigma < sigma_range[1] * sigma)
        )
    spots = spots.take(np.flatnonzero(good))
    spots = _without_doubles(spots, sigma)
    return spots.take(np.arange(min(max_count, len(spots))))


def roundness(response: Singles, starts: Floats, step: int) -> Floats:
    """Return the ratio of the smaller to the larger curvature at each start; negative for a saddle."""
    x = starts[:, 0].astype(np.int64)
    y = starts[:, 1].astype(np.int64)
    h, w = response.shape
    left, right = np.maximum(x - step, 0), np.minimum(x + step, w - 1)
    up, down = np.maximum(y - step, 0), np.minimum(y + step, h - 1)
    here = response[y, x].astype(np.float64)
    xx = 2.0 * here - response[y, left] - response[y, right]
    yy = 2.0 * here - response[up, x] - response[down, x]
    xy = 0.25 * (
        response[down, right].astype(np.float64) + response[up, left] - response[up, right] - response[down, left]
    )
    mean = 0.5 * (xx + yy)
    spread = np.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
    return np.asarray((mean - spread) / np.maximum(mean + spread, 1e-12))


def nearest_neighbours(points: Floats, queries: Floats, count: int) -> tuple[Floats, Ints]:
    """Return (q, count) distances and numbers of the points nearest to each of (q, 2) queries, nearest first."""
    distance, index = cKDTree(points).query(queries, k=np.arange(1, count + 1))
    return np.asarray(distance, dtype=np.float64), np.asarray(index, dtype=np.int64)


def _without_doubles(spots: Spots, sigma: float) -> Spots:
    """Return the spots, best score first, without those that fell onto a better one."""
    if len(spots) == 0:
        return spots
    order = np.argsort(-spots.score, kind="stable")
    kept = np.ones(len(spots), dtype=bool)
    rank = np.empty(len(spots), dtype=np.int64)
    rank[order] = np.arange(len(spots))
    close = np.array(sorted(cKDTree(spots.pixels).query_pairs(0.7 * sigma)), dtype=np.int64).reshape(-1, 2)
    pairs = rank[close]
    for better, worse in sorted(zip(pairs.min(axis=1).tolist(), pairs.max(axis=1).tolist(), strict=True)):
        if kept[better]:
            kept[worse] = False
    return spots.take(order[kept])
