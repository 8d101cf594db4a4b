"""A Gaussian mixture per pixel, as in HumanEva's own background code: the states that a background has.

Useful where the background has states: a screen that blinks, a door, bedding that was kicked. The mixture gives the
states, each a `Background`; how far an image is from the nearest of them is `capture.silhouettes.difference`'s matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.foundation.arrays import Bytes, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from capture.backgrounds.background import Background, NoiseCurve, steadied

__all__ = ["fit_mixture"]

#: A component that explains a smaller share of the images is noise and no state.
_LEAST_WEIGHT = 0.1
#: Values of a pixel that lie within this many standard deviations of the noise are one state.
_ONE_STATE = 6.0


def fit_mixture(
    images: Sequence[Bytes], noise: NoiseCurve | None = None, *, components: int = 3
) -> tuple[Background, ...]:
    """Fit ``components`` Gaussians per pixel to images of the empty scene by expectation-maximisation.

    Components start at the quantiles of the pixel's brightness; no sigma falls below the sensor's noise. Returns the
    states, the commonest first; a pixel with fewer states repeats its first.
    """
    if len(images) < components:
        raise InputError(f"mixture background: wanted at least {components} images, got {len(images)}")
    stack = steadied(images)
    centres = np.empty((components, *stack.shape[1:]), dtype=np.float32)
    spreads = np.empty_like(centres)
    levels = np.arange(256, dtype=np.float32)
    floor = np.full(256, 1.5, dtype=np.float32) if noise is None else noise.at(levels)
    _fit(stack, floor, np.float32(_LEAST_WEIGHT), np.float32(_ONE_STATE), centres, spreads)
    return tuple(Background(centre, spread) for centre, spread in zip(centres, spreads, strict=True))


# Over 80 lines: expectation and maximisation of one pixel in one loop, on arrays that stay in cache.
@compiled
def _fit(
    stack: Bytes, floor: Singles, least_weight: np.float32, one_state: np.float32, centres: Singles, spreads: Singles
) -> None:
    count, height, width, channels = stack.shape
    number = centres.shape[0]
    brightness = np.empty(count)
    share = np.empty((count, number))
    weights = np.empty(number)
    means = np.empty((number, channels))
    sigmas = np.empty((number, channels))
    for y in range(height):
        for x in range(width):
            # Most pixels have one state: all values within the noise of their mean.
            single = True
            for c in range(channels):
                low, high, mean = np.int64(255), np.int64(0), 0.0
                for n in range(count):
                    low, high = min(low, np.int64(stack[n, y, x, c])), max(high, np.int64(stack[n, y, x, c]))
                    mean += stack[n, y, x, c]
                mean /= count
                variance = 0.0
                for n in range(count):
                    variance += (stack[n, y, x, c] - mean) ** 2
                least = floor[min(255, int(mean))]
                single = single and high - low <= one_state * least
                for k in range(number):
                    centres[k, y, x, c] = mean
                    spreads[k, y, x, c] = max(np.sqrt(variance / count), least)
            if single:
                continue
            for n in range(count):
                brightness[n] = 0.0
                for c in range(channels):
                    brightness[n] += stack[n, y, x, c]
            order = np.argsort(brightness)
            for k in range(number):
                pick = order[min(count - 1, int((k + 0.5) * count / number))]
                weights[k] = 1.0 / number
                for c in range(channels):
                    means[k, c] = stack[pick, y, x, c]
                    sigmas[k, c] = 2.0 * floor[stack[pick, y, x, c]]
            for _ in range(6):
                for n in range(count):
                    most = -np.inf
                    for k in range(number):
                        log = np.log(max(weights[k], 1e-6))
                        for c in range(channels):
                            change = (stack[n, y, x, c] - means[k, c]) / sigmas[k, c]
                            log -= 0.5 * change * change + np.log(sigmas[k, c])
                        share[n, k] = log
                        most = max(most, log)
                    total = 0.0
                    for k in range(number):
                        share[n, k] = np.exp(share[n, k] - most)
                        total += share[n, k]
                    for k in range(number):
                        share[n, k] /= total
                for k in range(number):
                    mass = 1e-6
                    for n in range(count):
                        mass += share[n, k]
                    weights[k] = mass / (count + number * 1e-6)
                    if mass < 0.5:
                        continue
                    for c in range(channels):
                        mean = 0.0
                        for n in range(count):
                            mean += share[n, k] * stack[n, y, x, c]
                        mean /= mass
                        variance = 0.0
                        for n in range(count):
                            variance += share[n, k] * (stack[n, y, x, c] - mean) ** 2
                        least = floor[min(255, max(0, int(mean)))]
                        means[k, c] = mean
                        sigmas[k, c] = max(np.sqrt(variance / mass), least)
            ranked = np.argsort(-weights)
            for place in range(number):
                k = ranked[place] if weights[ranked[place]] >= least_weight else ranked[0]
                for c in range(channels):
                    centres[place, y, x, c] = means[k, c]
                    spreads[place, y, x, c] = sigmas[k, c]
