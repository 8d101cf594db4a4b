"""Backgrounds that follow slow changes of the scene: an adaptive mixture per pixel, and nearest neighbours.

Both see the recording in order and learn from each image where the subject is *not*: a subject that sits is never
learnt away, however long. Behind it the scene is taken to change as it does around (`SurmisedScene`). Images come under
the light of the background (flicker taken out). Both give the states (`Background`) that the scene may have now;
no randomness, so the same images give the same states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import Background, NoiseCurve, steadied

__all__ = ["FollowedScene", "NearestSamples", "RunningMixture", "SurmisedScene"]

#: Frames over which a change of the scene is learnt.
HISTORY = 200
_COMPONENTS = 4
#: Least rate at which a component's mean and variance follow the values that belong to it.
_LEAST_STEP = 0.05
#: An adaptive component is background once it explains this share of the history (OpenCV's MOG2: 0.1, too).
_LEAST_WEIGHT = 0.1
#: A value belongs to a component within this many standard deviations (MOG2's ``varThresholdGen`` is 9).
_BELONGS = 3.0
_SAMPLES = 9
#: Changes of the light from image to image beyond this share are no drift.
_DRIFT = 0.12
#: The drift is looked at in cells of this size; the scene's noise is smoothed by this rate.
_CELL_PX = 8
_LATEST = 0.1


class FollowedScene(Protocol):
    """A background that is shown the images in order."""

    @property
    def states(self) -> tuple[Background, ...]:
        """What the empty scene may look like now."""
        ...

    @property
    def rank(self) -> int:
        """How many states a pixel must resemble to be background."""
        ...

    def follow(self, scene: Singles) -> None:
        """Learn from the empty scene (H, W, C) as it is now, under the background's light."""
        ...

    def noisier(self, times: float) -> None:
        """Believe in so many times the noise from now on."""
        ...


class SurmisedScene:
    """The empty scene as it is now: seen where it is free, and behind the subject changed as it is around it.

    Without it the light that drifts would make the ground behind and next to a sitting subject differ, and that
    difference would grow.
    """

    def __init__(self, first: Singles) -> None:
        self._latest = first.copy()

    def now(self, frame: Singles, free: Bools) -> Singles:
        """Return (H, W, C) the scene of an image (H, W, C), where ``free`` (H, W) of the subject as it shows."""
        change = frame.sum(axis=2) / np.maximum(self._latest.sum(axis=2), np.float32(1.0))
        # A shadow that comes is no drift.
        usable = (free & (np.abs(change - np.float32(1.0)) < np.float32(_DRIFT))).astype(np.float32)
        size = (max(1, usable.shape[1] // _CELL_PX), max(1, usable.shape[0] // _CELL_PX))
        then, now = (
            _near_and_far(cv2.resize(usable * some.sum(axis=2), size, interpolation=cv2.INTER_AREA))
            for some in (self._latest, frame)
        )
        ratio = (now + np.float32(1e-6)) / (then + np.float32(1e-6))
        local = cv2.resize(ratio, (usable.shape[1], usable.shape[0]), interpolation=cv2.INTER_LINEAR)
        scene = np.where(free[:, :, None], frame, self._latest * local[:, :, None])
        self._latest += np.float32(_LATEST) * (scene - self._latest)
        return scene


def _near_and_far(cells: Singles) -> Singles:
    """Return sums of what is near, and of what is far where nothing is near."""
    return np.asarray(cv2.GaussianBlur(cells, (0, 0), 2.0) + np.float32(1e-3) * cv2.GaussianBlur(cells, (0, 0), 10.0))


class RunningMixture:
    """The adaptive mixture of Zivkovic (2004), `cv2.BackgroundSubtractorMOG2`'s, without the subject's pixels.

    A component that a value belongs to moves towards it; a value that belongs to none founds a new component, which
    counts as background once it has lasted. Starts from images of the empty scene.
    """

    rank = 1

    def __init__(self, images: Sequence[Bytes], noise: NoiseCurve, *, history: int = HISTORY) -> None:
        stack = steadied(images)
        self._rate = np.float32(1.0 / history)
        self._floor = noise.at(np.arange(256, dtype=np.float32))
        shape = (_COMPONENTS, *stack.shape[1:])
        self._weights = np.zeros(shape[:3], dtype=np.float32)
        self._weights[0] = 1.0
        self._means = np.repeat(stack[:1].astype(np.float32), _COMPONENTS, axis=0)
        self._variances = np.square(self._floor[stack[:1]].repeat(_COMPONENTS, axis=0))
        self._centres = np.empty(shape, dtype=np.float32)
        self._spreads = np.empty(shape, dtype=np.float32)
        for number, image in enumerate(stack, start=1):
            self._learn(image.astype(np.float32), max(np.float32(1.0 / number), self._rate))

    @property
    def states(self) -> tuple[Background, ...]:
        """The components that count as background, the commonest first."""
        return tuple(Background(*state) for state in zip(self._centres, self._spreads, strict=True))

    def follow(self, scene: Singles) -> None:
        """Learn from the empty scene (H, W, C) as it is now, under the background's light."""
        self._learn(scene, self._rate)

    def noisier(self, times: float) -> None:
        """Believe in so many times the noise from now on."""
        self._floor *= np.float32(times)
        self._spreads *= np.float32(times)
        self._variances *= np.float32(times) ** 2

    def _learn(self, scene: Singles, rate: np.float32) -> None:
        known = (self._weights, self._means, self._variances)
        _update(scene, rate, self._floor, *known, self._centres, self._spreads)


@compiled
def _update(
    scene: Singles,
    rate: np.float32,
    floor: Singles,
    weights: Singles,
    means: Singles,
    variances: Singles,
    centres: Singles,
    spreads: Singles,
) -> None:
    number, height, width, channels = means.shape
    for y in range(height):
        for x in range(width):
            match = -1
            for k in range(number):
                if weights[k, y, x] <= 0:
                    continue
                square = np.float32(0.0)
                for c in range(channels):
                    change = scene[y, x, c] - means[k, y, x, c]
                    square += change * change / variances[k, y, x, c]
                if square < np.float32(_BELONGS * _BELONGS) * channels:
                    match = k
                    break
            found = match < 0
            if found:
                match = number - 1
                weights[match, y, x] = 0.0
                for c in range(channels):
                    value = scene[y, x, c]
                    sigma = floor[min(255, int(value))]
                    means[match, y, x, c] = value
                    variances[match, y, x, c] = sigma * sigma
            total = np.float32(0.0)
            for k in range(number):
                weights[k, y, x] -= rate * weights[k, y, x]
            weights[match, y, x] += rate
            for k in range(number):
                total += weights[k, y, x]
            for k in range(number):
                weights[k, y, x] /= total
            if not found:
                # The component's own rate: it has seen weight / rate values. The subject is not among them, so that
                # the ground may be followed closely.
                step = min(np.float32(1.0), max(rate / weights[match, y, x], np.float32(_LEAST_STEP)))
                for c in range(channels):
                    change = scene[y, x, c] - means[match, y, x, c]
                    means[match, y, x, c] += step * change
                    sigma = floor[min(255, max(0, int(means[match, y, x, c])))]
                    variance = variances[match, y, x, c] + step * (change * change - variances[match, y, x, c])
                    variances[match, y, x, c] = max(sigma * sigma, min(variance, np.float32(4.0) * sigma * sigma))
            while match > 0 and weights[match, y, x] > weights[match - 1, y, x]:
                other = match - 1
                weights[match, y, x], weights[other, y, x] = weights[other, y, x], weights[match, y, x]
                for c in range(channels):
                    means[match, y, x, c], means[other, y, x, c] = means[other, y, x, c], means[match, y, x, c]
                    one, two = variances[match, y, x, c], variances[other, y, x, c]
                    variances[match, y, x, c], variances[other, y, x, c] = two, one
                match = other
            for place in range(number):
                k = place if weights[place, y, x] >= np.float32(_LEAST_WEIGHT) else 0
                for c in range(channels):
                    centres[place, y, x, c] = means[k, y, x, c]
                    spreads[place, y, x, c] = np.sqrt(variances[k, y, x, c])


class NearestSamples:
    """Past values of each pixel; background is what resembles two of them, as in `cv2.BackgroundSubtractorKNN`.

    The oldest sample is replaced at regular intervals.
    """

    rank = 2

    def __init__(self, images: Sequence[Bytes], noise: NoiseCurve, *, history: int = HISTORY) -> None:
        stack = steadied(images)
        chosen = np.linspace(0, len(stack) - 1, _SAMPLES).round().astype(int)
        self._samples = stack[chosen].astype(np.float32)
        self._spread = noise.at(np.median(self._samples, axis=0))
        self._interval = max(1, history // _SAMPLES)
        self._seen = 0

    @property
    def states(self) -> tuple[Background, ...]:
        """The samples."""
        return tuple(Background(sample, self._spread) for sample in self._samples)

    def follow(self, scene: Singles) -> None:
        """Learn from the empty scene (H, W, C) as it is now, under the background's light."""
        self._seen += 1
        if self._seen % self._interval == 0:
            self._samples[(self._seen // self._interval) % _SAMPLES] = scene

    def noisier(self, times: float) -> None:
        """Believe in so many times the noise from now on."""
        self._spread *= np.float32(times)
