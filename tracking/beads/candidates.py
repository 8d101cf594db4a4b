"""Spots near where beads are expected, in one view of one frame, and their joint refinement."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from calibration.xray.attenuation import NOTHING_BLIND
from calibration.xray.spot_fit import fit_spot_group, window_radius

__all__ = ["nearby_maxima", "refine_group"]

#: Response of the difference of Gaussians (0.8 and 1.6 sigma) to a Gaussian spot of height 1 and the same sigma:
#: 1 / (1 + 0.64) - 1 / (1 + 2.56).
UNIT_RESPONSE = 1.0 / 1.64 - 1.0 / 3.56


def nearby_maxima(
    image: NDArray[Any],
    table: Singles,
    centre: Floats,
    reach: float,
    sigma: float,
    floor: float,
    *,
    most: int = 5,
) -> tuple[Floats, Floats]:
    """Find maxima of the spot response within ``reach`` of a predicted centre.

    Args:
        image: (H, W) grey values; table: their attenuation.
        centre: (2,) px.
        floor: least contrast (attenuation) that counts.

    Returns:
        (n, 2) px to about a quarter of a pixel and (n,) contrast as the response tells it, strongest first.
    """
    margin = int(np.ceil(reach + 4.0 * sigma)) + 1
    x0 = max(int(centre[0]) - margin, 0)
    y0 = max(int(centre[1]) - margin, 0)
    x1 = min(int(centre[0]) + margin + 1, image.shape[1])
    y1 = min(int(centre[1]) + margin + 1, image.shape[0])
    if x1 - x0 < 7 or y1 - y0 < 7:
        return np.empty((0, 2)), np.empty(0)
    values = table[image[y0:y1, x0:x1]]
    response = cv2.GaussianBlur(values, (0, 0), 0.8 * sigma, borderType=cv2.BORDER_REPLICATE)
    response -= cv2.GaussianBlur(values, (0, 0), 1.6 * sigma, borderType=cv2.BORDER_REPLICATE)
    return _peaks(response, x0, y0, centre[0], centre[1], reach, floor * UNIT_RESPONSE, most)


@compiled
def _peaks(
    response: Singles, x0: int, y0: int, cx: float, cy: float, reach: float, floor: float, most: int
) -> tuple[Floats, Floats]:
    """Return the strongest local maxima of a patch within a circle, with parabolic interpolation."""
    h, w = response.shape
    points = np.empty((most, 2))
    heights = np.full(most, -1.0)
    n = 0
    for y in range(1, h - 1):
        dy = y + y0 - cy
        for x in range(1, w - 1):
            r = response[y, x]
            if r <= floor or (n == most and r <= heights[most - 1]):
                continue
            dx = x + x0 - cx
            if dx * dx + dy * dy > reach * reach:
                continue
            peak = True
            for j in range(-1, 2):
                for i in range(-1, 2):
                    other = response[y + j, x + i]
                    # On a plateau the first pixel in reading order counts.
                    if other > r or (other == r and (j < 0 or (j == 0 and i < 0))):
                        peak = False
            if not peak:
                continue
            bend_x = response[y, x - 1] - 2.0 * r + response[y, x + 1]
            bend_y = response[y - 1, x] - 2.0 * r + response[y + 1, x]
            sub_x = 0.5 * (response[y, x - 1] - response[y, x + 1]) / bend_x if bend_x < 0.0 else 0.0
            sub_y = 0.5 * (response[y - 1, x] - response[y + 1, x]) / bend_y if bend_y < 0.0 else 0.0
            n = min(n + 1, most)
            k = n - 1
            while k > 0 and heights[k - 1] < r:
                heights[k] = heights[k - 1]
                points[k] = points[k - 1]
                k -= 1
            heights[k] = r
            points[k, 0] = x + x0 + sub_x
            points[k, 1] = y + y0 + sub_y
    return points[:n].copy(), heights[:n] / UNIT_RESPONSE


def refine_group(
    image: NDArray[Any],
    table: Singles,
    centres: Floats,
    sigma: Floats,
    contrast: Floats,
    *,
    hold: bool,
    blind: Bytes = NOTHING_BLIND,
) -> tuple[Floats, Floats]:
    """Fit one spot, or several that overlap, from (k, 2) centres and what is known of their size and contrast.

    With ``hold`` the size and contrast are kept near what they were (15 % and 20 %): two spots merged into one
    blob do not tell them.

    Returns:
        (k, 4) x, y, sigma, contrast (NaN: failed) and (k, 2, 2) covariance of the centre, px^2.
    """
    start = np.column_stack([centres, sigma, contrast])
    weights = np.zeros((len(centres), 2))
    if hold:
        weights[:, 0] = 1.0 / (0.15 * sigma) ** 2
        weights[:, 1] = 1.0 / (0.2 * contrast) ** 2
    size = float(np.max(sigma))
    fitted, covariance, _ = fit_spot_group(image, table, start, weights, window_radius(size), 2.0 * size + 1.0, blind)
    return fitted, covariance
