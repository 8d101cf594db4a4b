"""Round spots in X-ray images, to a fraction of a pixel: beads, holes of a grid, markers.

Along a ray, attenuations add, so a bead is a bump *added* to whatever lies behind it in the logarithm of the
image, also across the edge of a bone; in the image itself the bump would be taller on the brighter side and
the centre would be drawn there. The noise of the logarithm is that of the photon count: variance as 1/intensity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from calibration.arrays import Bytes, Floats, Ints, Singles
from calibration.compiled import compiled
from calibration.errors import InputError

__all__ = [
    "NOTHING_BLIND",
    "Polarity",
    "Spots",
    "attenuation_table",
    "blind_rim",
    "find_spots",
    "fit_spot_group",
    "fit_spots",
    "grey_image",
]

Polarity = Literal["dark", "bright"]

#: Terms of the background under a spot: 1, u, v, u^2, uv, v^2.
BACKGROUND = 6
#: Steps of the damped least squares; spots that deserve to converge do so in five to ten.
MAX_STEPS = 25
#: The mask of an image that is exposed everywhere.
NOTHING_BLIND = np.zeros((0, 0), dtype=np.uint8)
#: Share of the brightest value below which the rim of an image counts as unexposed.
UNEXPOSED = 0.05


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


def grey_image(image: NDArray[Any]) -> NDArray[Any]:
    """Return an image as (H, W) uint8 or uint16: colour is averaged, floating point in [0, 1] is scaled."""
    if image.ndim == 3 and image.shape[2] >= 3:
        # Colour X-ray files hold three equal channels; the mean keeps the rare ones that do not symmetrical.
        mean = image[..., :3].mean(axis=2)
        image = mean if image.dtype.kind == "f" else np.rint(mean).astype(image.dtype)
    elif image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim != 2 or min(image.shape) < 16:
        raise InputError(f"an image must be (H, W) or (H, W, 3) with at least 16 pixels a side, got {image.shape}")
    if image.dtype.kind == "f":
        image = np.rint(np.clip(image, 0.0, 1.0) * 65535.0).astype(np.uint16)
    if image.dtype not in (np.uint8, np.uint16):
        raise InputError(f"an image must be uint8, uint16 or floats in [0, 1], got {image.dtype}")
    return np.ascontiguousarray(image)


def attenuation_table(dtype: np.dtype[Any] | type, polarity: Polarity = "dark") -> Singles:
    """Return attenuation (natural log, spots positive) for each grey value of an integer type, one row of values."""
    if polarity not in ("dark", "bright"):
        raise InputError(f"polarity must be 'dark' or 'bright', got '{polarity}'")
    top = int(np.iinfo(dtype).max)
    grey = np.arange(top + 1, dtype=np.float64)
    # The offset (3 of 255) is about the dark noise of such cameras: below it the logarithm shows nothing but noise.
    light = (grey if polarity == "dark" else top - grey) + 3.0 * top / 255.0
    return np.asarray(-np.log(light / light.max()), dtype=np.float32)


def blind_rim(image: NDArray[Any], polarity: Polarity = "dark", *, margin_px: int = 2) -> Bytes:
    """Return (H, W), 1 where an image is not exposed: the dark that touches its border, such as an intensifier's rim.

    The blurred edge of that region, ``margin_px`` wide, counts with it. Dense beads and bones inside do not.
    """
    light = image if polarity == "dark" else (np.iinfo(image.dtype).max - image)
    dark = (light < UNEXPOSED * float(light.max())).astype(np.uint8)
    dark = cv2.morphologyEx(dark, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (11, 11)))
    if not dark.any():
        return NOTHING_BLIND
    _, labels = cv2.connectedComponents(dark)
    border = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    rim = np.isin(labels, np.setdiff1d(border, [0])).astype(np.uint8)
    if not rim.any():
        return NOTHING_BLIND
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin_px + 1,) * 2)
    return np.asarray(cv2.dilate(rim, disc), dtype=np.uint8)


@compiled
def fit_spot_group(
    image: NDArray[Any],
    table: Singles,
    start: Floats,
    prior_weight: Floats,
    radius: float,
    max_shift: float,
    blind: Bytes,
) -> tuple[Floats, Floats, float]:
    """Fit Gaussian spots that may overlap, on one smooth background, by damped weighted least squares.

    Model of the attenuation: ``sum_k a_k exp(-|p - c_k|^2 / (2 s_k^2)) + quadratic(p)``, over the pixels within
    ``radius`` of any start. A spot that is half hidden by another is held by its own past: ``prior_weight`` adds
    ``w_s (s - s_0)^2 + w_a (a - a_0)^2``, in units of the fit's own noise.

    Args:
        image: (H, W) grey values.
        table: attenuation of each grey value.
        start: (k, 4) x, y, sigma, contrast.
        prior_weight: (k, 2) inverse variances of sigma and contrast about their start (0: free).
        radius: px.
        max_shift: px a centre may move from its start; beyond, the spot counts as failed.
        blind: (H, W) non-zero where the image is not exposed (see `blind_rim`), or `NOTHING_BLIND`: such pixels do not
            count, and a spot with one within 1.5 sigma of its centre is half hidden and counts as failed.

    Returns:
        (k, 4) fitted values (NaN: failed), (k, 2, 2) covariance of the centres, and the noise (1 sigma) of the fit.
    """
    height, width = image.shape
    count = start.shape[0]
    size = BACKGROUND + 4 * count
    failed = np.full((count, 4), np.nan)
    nowhere = np.full((count, 2, 2), np.nan)
    mid_x = start[:, 0].mean()
    mid_y = start[:, 1].mean()
    x0 = max(int(np.floor(start[:, 0].min() - radius)), 0)
    x1 = min(int(np.ceil(start[:, 0].max() + radius)), width - 1)
    y0 = max(int(np.floor(start[:, 1].min() - radius)), 0)
    y1 = min(int(np.ceil(start[:, 1].max() + radius)), height - 1)
    if x1 - x0 < 3 or y1 - y0 < 3:
        return failed, nowhere, np.nan
    most = (x1 - x0 + 1) * (y1 - y0 + 1)
    px = np.empty(most)
    py = np.empty(most)
    value = np.empty(most)
    weight = np.empty(most)
    n = 0
    masked = blind.size > 0
    for y in range(y0, y1 + 1):
        for x in range(x0, x1 + 1):
            if masked and blind[y, x] != 0:
                continue
            near = 1e30
            for k in range(count):
                d2 = (x - start[k, 0]) ** 2 + (y - start[k, 1]) ** 2
                near = min(near, d2)
            if near <= radius * radius:
                v = float(table[image[y, x]])
                px[n] = x
                py[n] = y
                value[n] = v
                # Photon noise (variance of the log is 1 / intensity), and a rim that fades so that the fit
                # does not jump as pixels enter and leave.
                weight[n] = np.exp(-v) * np.exp(-1.5 * near / (radius * radius)) + 1e-6
                n += 1
    if n < size + 4:
        return failed, nowhere, np.nan
    scale_w = n / weight[:n].sum()
    for i in range(n):
        weight[i] *= scale_w
    u = (px[:n] - mid_x) / radius
    w = (py[:n] - mid_y) / radius
    state = np.zeros(size)
    for k in range(count):
        for j in range(4):
            state[BACKGROUND + 4 * k + j] = start[k, j]
    # Start of the background: the weighted mean of what the spots leave.
    total = 0.0
    for i in range(n):
        rest = value[i]
        for k in range(count):
            d2 = (px[i] - start[k, 0]) ** 2 + (py[i] - start[k, 1]) ** 2
            rest -= start[k, 3] * np.exp(-0.5 * d2 / start[k, 2] ** 2)
        total += weight[i] * rest
    state[0] = total / n
    normal = np.zeros((size, size))
    gradient = np.zeros(size)
    row = np.zeros(size)
    damping = 1e-3
    best = np.inf
    noise2 = 1.0
    trial = state.copy()
    accepted_normal = normal.copy()
    accepted_gradient = gradient.copy()
    for _ in range(MAX_STEPS):
        normal[:] = 0.0
        gradient[:] = 0.0
        cost = 0.0
        for i in range(n):
            row[0] = 1.0
            row[1] = u[i]
            row[2] = w[i]
            row[3] = u[i] * u[i]
            row[4] = u[i] * w[i]
            row[5] = w[i] * w[i]
            model = 0.0
            for j in range(BACKGROUND):
                model += row[j] * trial[j]
            for k in range(count):
                b = BACKGROUND + 4 * k
                dx = px[i] - trial[b]
                dy = py[i] - trial[b + 1]
                s2 = trial[b + 2] * trial[b + 2]
                g = np.exp(-0.5 * (dx * dx + dy * dy) / s2)
                ag = trial[b + 3] * g
                model += ag
                row[b] = ag * dx / s2
                row[b + 1] = ag * dy / s2
                row[b + 2] = ag * (dx * dx + dy * dy) / (s2 * trial[b + 2])
                row[b + 3] = g
            r = value[i] - model
            wi = weight[i]
            cost += wi * r * r
            for j in range(size):
                wj = wi * row[j]
                gradient[j] += wj * r
                for m in range(j + 1):
                    normal[j, m] += wj * row[m]
        if best == np.inf:
            noise2 = max(cost / (n - size), 1e-12)
        for k in range(count):
            b = BACKGROUND + 4 * k
            for j in range(2):
                lam = prior_weight[k, j] * noise2
                d = trial[b + 2 + j] - start[k, 2 + j]
                cost += lam * d * d
                gradient[b + 2 + j] -= lam * d
                normal[b + 2 + j, b + 2 + j] += lam
        for j in range(size):
            for m in range(j):
                normal[m, j] = normal[j, m]
        done = False
        if cost < best:
            done = best < np.inf and best - cost < 1e-6 * best
            best = cost
            state[:] = trial
            accepted_normal[:] = normal
            accepted_gradient[:] = gradient
            damping = max(damping * 0.2, 1e-9)
        else:
            damping *= 8.0
            if damping > 1e6:
                break
        if done:
            break
        damped = accepted_normal.copy()
        for j in range(size):
            damped[j, j] += damping * (accepted_normal[j, j] + 1e-9)
        step = np.linalg.solve(damped, accepted_gradient)
        trial[:] = state + step
        for k in range(count):
            b = BACKGROUND + 4 * k
            trial[b + 2] = min(max(trial[b + 2], 0.4), 3.0 * start[k, 2])
    fitted = np.empty((count, 4))
    covariance = np.empty((count, 2, 2))
    noise2 = max(best / (n - size), 1e-12)
    for j in range(size):
        accepted_normal[j, j] += 1e-12
    inverse = np.linalg.inv(accepted_normal)
    for k in range(count):
        b = BACKGROUND + 4 * k
        shift2 = (state[b] - start[k, 0]) ** 2 + (state[b + 1] - start[k, 1]) ** 2
        ok = shift2 <= max_shift * max_shift and state[b + 3] > 0.0 and state[b + 2] < 2.9 * start[k, 2]
        if ok and masked:
            core = 1.5 * state[b + 2]
            for y in range(max(int(state[b + 1] - core), 0), min(int(state[b + 1] + core) + 2, height)):
                for x in range(max(int(state[b] - core), 0), min(int(state[b] + core) + 2, width)):
                    if blind[y, x] != 0 and (x - state[b]) ** 2 + (y - state[b + 1]) ** 2 < core * core:
                        ok = False
        for j in range(4):
            fitted[k, j] = state[b + j] if ok else np.nan
        for j in range(2):
            for m in range(2):
                covariance[k, j, m] = noise2 * inverse[b + j, b + m] if ok else np.nan
    return fitted, covariance, np.sqrt(noise2)


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
    values, covariance, noise = _fit_each(image, table, start, shift, reach, blind)
    return Spots(values[:, :2], values[:, 2], values[:, 3], covariance, values[:, 3] / np.maximum(noise, 1e-6))


@compiled
def _fit_each(
    image: NDArray[Any], table: Singles, start: Floats, max_shift: float, radius: float, blind: Bytes
) -> tuple[Floats, Floats, Floats]:
    """Run `fit_spot_group` on each row of ``start`` alone; negative ``max_shift`` or ``radius`` follow sigma."""
    n = start.shape[0]
    values = np.full((n, 4), np.nan)
    covariance = np.full((n, 2, 2), np.nan)
    noise = np.full(n, np.nan)
    free = np.zeros((1, 2))
    for i in range(n):
        shift = max_shift if max_shift >= 0.0 else 2.0 * start[i, 2]
        reach = radius if radius > 0.0 else window_radius(start[i, 2])
        fitted, cov, noise[i] = fit_spot_group(image, table, start[i : i + 1], free, reach, shift, blind)
        values[i] = fitted[0]
        covariance[i] = cov[0]
    return values, covariance, noise


@compiled
def window_radius(sigma: float) -> float:
    """Return the radius of the fit window for a spot of this sigma, px."""
    return max(3.2 * sigma, sigma + 3.5)


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
