"""The background of a recording that has no plate, put together from what the subject uncovers.

Which images show the ground of a place is found in cells (`capture.backgrounds.ground_labels`, and
`capture.backgrounds.followed_inwards` for a subject that stays); each pixel's centre and
spread are the median and the robust deviation over those images. What no image ever showed is filled in from its
surroundings, with the spread that the ground has over that distance.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import MOST_SPREAD, Background, NoiseCurve
from capture.backgrounds.medians import median_and_spread

__all__ = ["Ground", "filled", "ground_over", "near_unknown", "spread_at", "variation_of"]

#: The ground of a pixel is known if it was free in as many images at least.
_LEAST = 2
#: Distances over which the ground's own variation is measured, px.
_SCALES_PX = (4, 8, 16, 32, 64)
#: Around what is not known the ground's variation is measured, share of the image's longer side.
_NEAR = 0.04
#: Of images that are larger every second pixel along both axes tells as much of what is smooth.
_LARGE_PX = 800


@dataclass(frozen=True, eq=False)
class Ground:
    """A background put together from what a subject uncovers.

    Attributes:
        background: the empty scene.
        seen: (H, W) where it was seen; elsewhere it was filled in.
    """

    background: Background
    seen: Bools


def ground_over(stack: Bytes, free: Bools, noise: NoiseCurve) -> Ground:
    """Return the ground in images (n, H, W, C) spread over a recording, under one light.

    ``free`` (n, h, w) says in which cells each of them shows it.
    """
    # A cell next to one that is not free may hold some of what hides that.
    clear = np.stack([cv2.erode(one.view(np.uint8), np.ones((3, 3), np.uint8)) for one in free]).view(np.bool_)
    enough = np.count_nonzero(clear, axis=0) >= _LEAST
    free = np.where(enough, clear, free)
    centre, spread, known = median_and_spread(stack, free, least=_LEAST)
    _limit(spread, noise.at(centre))
    if known.all() or not known.any():
        return Ground(Background(centre, spread), known)
    return _completed(centre, spread, known, noise)


def _limit(spread: Singles, floor: Singles) -> None:
    """Limit the spread to what noise lets a ground have, in place: another array of a large image would be held."""
    np.clip(spread, floor, np.float32(MOST_SPREAD) * floor, out=spread)


def filled(values: Singles, known: Bools) -> Singles:
    """Return (H, W, C) the values with what is not known interpolated: averaged coarser and coarser until known."""
    weight = known.astype(np.float32)
    levels = [(np.where(known[:, :, None], values, np.float32(0.0)), weight)]
    while min(levels[-1][1].shape) > 1 and not (levels[-1][1] > 0).all():
        total, weight = levels[-1]
        half = (max(1, -(-weight.shape[1] // 2)), max(1, -(-weight.shape[0] // 2)))
        smaller = cv2.resize(total, half, interpolation=cv2.INTER_AREA).reshape(half[1], half[0], -1)
        levels.append((smaller, cv2.resize(weight, half, interpolation=cv2.INTER_AREA)))
    total, weight = levels[-1]
    coarse = total / np.maximum(weight, np.float32(1e-6))[:, :, None]
    for total, weight in reversed(levels[:-1]):
        size = (weight.shape[1], weight.shape[0])
        grown = cv2.resize(coarse, size, interpolation=cv2.INTER_LINEAR).reshape(total.shape)
        grown *= (np.float32(1.0) - weight)[:, :, None]
        grown += total
        coarse = grown
    return np.asarray(coarse, dtype=np.float32)


def variation_of(values: Singles, known: Bools, around: Bools, step: int = 1, enough: int | None = None) -> Singles:
    """Return (scales, C) how far the known ground is from its mean over each of `_SCALES_PX`, near the region.

    ``step``: how many pixels of the image are between those given. ``enough``: how many of them suffice, about.
    """
    ring = known & around
    at = np.flatnonzero(ring if np.count_nonzero(ring) > 100 else known)
    at = at if enough is None else at[:: max(1, len(at) // enough)]
    # squares with the standard deviation of a Gaussian of these scales
    reaches = np.array([round(1.7 * scale / step) for scale in _SCALES_PX])
    weight, most = known.astype(np.float32), int(reaches[-1])
    sums = [
        cv2.integral(cv2.copyMakeBorder(one, most, most, most, most, cv2.BORDER_REFLECT_101))
        for one in (values * weight[:, :, None], weight)
    ]
    found = _from_means(np.ascontiguousarray(values), at, reaches, sums[0].reshape(*sums[1].shape, -1), sums[1])
    half = (len(at) - 1) // 2, len(at) // 2
    middle = np.partition(found, half)
    spread = np.float32(0.5 * 1.4826) * (middle[..., half[0]] + middle[..., half[1]])
    return np.maximum.accumulate(spread, axis=0)


@compiled
def _from_means(values: Singles, at: NDArray[np.intp], reaches: Ints, sums: Floats, counts: Floats) -> Singles:
    """Return (scales, C, n) how far values (H, W, C) ``at`` some pixels are from the mean of those known around each.

    That is within so many pixels along both axes, for each scale. ``sums`` (h, w, C), ``counts`` (h, w): of all that is
    known above and to the left, from as many pixels beyond the image on as the largest scale reaches.
    """
    _, width, channels = values.shape
    out, most = np.empty((len(reaches), channels, len(at)), np.float32), reaches[-1]
    for n in range(len(at)):
        row, column = at[n] // width, at[n] % width
        for k in range(len(reaches)):
            reach = reaches[k]
            a, b, c, d = row + most - reach, row + most + reach + 1, column + most - reach, column + most + reach + 1
            side = 2 * reach + 1
            count = max(counts[b, d] - counts[a, d] - counts[b, c] + counts[a, c], 1e-3 * side * side)
            for one in range(channels):
                total = sums[b, d, one] - sums[a, d, one] - sums[b, c, one] + sums[a, c, one]
                out[k, one, n] = np.float32(abs(values[row, column, one] - total / count))
    return out


def near_unknown(known: Bools) -> Bools:
    """Return (H, W) what lies near pixels that are not known."""
    away = cv2.distanceTransform(known.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(away <= max(2, round(_NEAR * max(known.shape))))


def spread_at(distance: Singles, variation: Singles) -> Singles:
    """Return (H, W, C) the ground's variation over each pixel's distance from known ground."""
    flat = [np.interp(distance, _SCALES_PX, column) for column in variation.T]
    return np.stack(flat, axis=-1).astype(np.float32)


def _completed(centre: Singles, spread: Singles, known: Bools, noise: NoiseCurve) -> Ground:
    """Return the background with what is not known filled in and spread accordingly, in place."""
    step = 2 if max(known.shape) > _LARGE_PX else 1
    some = (slice(None, None, step), slice(None, None, step))
    variation = variation_of(centre[some], known[some], near_unknown(known)[some], step)
    full = filled(centre, known)
    distance = cv2.distanceTransform((~known).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    hidden = ~known
    spread[hidden] = np.hypot(noise.at(full[hidden]), spread_at(distance[hidden], variation))
    return Ground(Background(full, spread), known)
