"""A Gaussian mixture per pixel, as HumanEva's own background code: a few diagonal components against a uniform subject.

    -log p(colour | background) - log 256^C > risk      means: subject

Useful where the background has states: a screen that blinks, a door, bedding that was kicked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.arrays import Bytes, Floats, Singles
from calibration.compiled import compiled
from calibration.errors import InputError
from capture.background import SCALE, NoiseCurve, light_gain, three_axes

__all__ = ["MixtureModel", "fit_mixture"]


@dataclass(frozen=True, eq=False)
class MixtureModel:
    """Per-pixel mixture of diagonal Gaussians.

    Attributes:
        weights: (H, W, K), summing to 1.
        means: (H, W, K, C), grey levels.
        sigmas: (H, W, K, C), grey levels.
    """

    weights: Singles
    means: Singles
    sigmas: Singles

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) the distance from the nearest component in units of 1 / `SCALE` standard deviations.

        It is the Mahalanobis distance that would have the same likelihood under a component of full weight.
        """
        frame = three_axes(image)
        strongest = self.weights.argmax(axis=2)
        centre = np.take_along_axis(self.means, strongest[:, :, None, None], axis=2)[:, :, 0]
        out = np.empty(frame.shape[:2], dtype=np.uint8)
        _mixture_evidence(frame, self.weights, self.means, self.sigmas, light_gain(frame, centre), out)
        return out


@compiled
def _mixture_evidence(
    frame: Bytes, weights: Singles, means: Singles, sigmas: Singles, gain: Floats, out: Bytes
) -> None:
    height, width, channels = frame.shape
    for y in range(height):
        for x in range(width):
            best = np.inf
            for k in range(weights.shape[2]):
                weight = weights[y, x, k]
                if weight < 0.02:
                    continue
                square = -2.0 * np.log(weight)
                for c in range(channels):
                    change = (frame[y, x, c] - means[y, x, k, c] * gain[c]) / sigmas[y, x, k, c]
                    square += change * change
                best = min(best, square)
            out[y, x] = np.uint8(min(255.0, SCALE * np.sqrt(max(best, 0.0) / channels)))


def fit_mixture(images: Sequence[Bytes], noise: NoiseCurve | None = None, *, components: int = 3) -> MixtureModel:
    """Fit ``components`` Gaussians per pixel to images of the empty scene by expectation-maximisation.

    Components start at the quantiles of the pixel's brightness; no sigma falls below the sensor's noise.
    """
    if len(images) < components:
        raise InputError(f"mixture background: wanted at least {components} images, got {len(images)}")
    stack = np.stack([three_axes(image) for image in images])
    shape = (*stack.shape[1:3], components)
    weights = np.empty(shape, dtype=np.float32)
    means = np.empty((*shape, stack.shape[3]), dtype=np.float32)
    sigmas = np.empty_like(means)
    levels = np.arange(256, dtype=np.float32)
    floor = np.full(256, 1.5, dtype=np.float32) if noise is None else noise.at(levels)
    _fit(stack, floor, weights, means, sigmas)
    return MixtureModel(weights, means, sigmas)


@compiled
def _fit(stack: Bytes, floor: Singles, weights: Singles, means: Singles, sigmas: Singles) -> None:
    count, height, width, channels = stack.shape
    number = weights.shape[2]
    brightness = np.empty(count)
    share = np.empty((count, number))
    for y in range(height):
        for x in range(width):
            for n in range(count):
                brightness[n] = 0.0
                for c in range(channels):
                    brightness[n] += stack[n, y, x, c]
            order = np.argsort(brightness)
            for k in range(number):
                pick = order[min(count - 1, int((k + 0.5) * count / number))]
                weights[y, x, k] = 1.0 / number
                for c in range(channels):
                    means[y, x, k, c] = stack[pick, y, x, c]
                    sigmas[y, x, k, c] = 2.0 * floor[stack[pick, y, x, c]]
            for _ in range(6):
                for n in range(count):
                    most = -np.inf
                    for k in range(number):
                        log = np.log(max(weights[y, x, k], 1e-6))
                        for c in range(channels):
                            change = (stack[n, y, x, c] - means[y, x, k, c]) / sigmas[y, x, k, c]
                            log -= 0.5 * change * change + np.log(sigmas[y, x, k, c])
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
                    weights[y, x, k] = mass / (count + number * 1e-6)
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
                        means[y, x, k, c] = mean
                        sigmas[y, x, k, c] = max(np.sqrt(variance / mass), least)
