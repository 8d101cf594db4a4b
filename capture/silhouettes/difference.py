"""How far each pixel is from the background, in standard deviations, with light changes taken out.

A cast shadow (or a highlight) multiplies a surface's colour and keeps its hue. The difference is split into
brightness and chromaticity (Horprasert et al. 1999): where the brightness ratio is that of a shadow and the hue is as
near to the background's as shadows of this scene keep it (`capture.silhouettes.shade` measures that), the pixel is no
subject. A grey image has no hue, so there the ratio alone decides.

The light of the whole scene (exposure, mains flicker) is one gain per channel and frame, measured on the
background pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.errors import InputError
from capture.backgrounds.adaptive import FollowedScene, SurmisedScene
from capture.backgrounds.background import SCALE, Background, light_gain, three_axes
from capture.backgrounds.evidence import Evidence, ShadeRule, Window
from capture.backgrounds.nearest_look import nearest_look
from capture.discs import disc
from capture.silhouettes.cleanup import Cleaning
from capture.silhouettes.edges.hats import blurred
from capture.silhouettes.lively_places import lively_places, measure_around

__all__ = ["HUE_LIMIT", "FollowingModel", "PlateModel", "matched_channels"]

#: How far from the background's hue a shadow may be where the scene does not tell, standard deviations.
HUE_LIMIT = 3.0
#: Pixels around a silhouette that a background does not learn from.
_CLEAR_PX = 4


@dataclass(frozen=True, eq=False)
class PlateModel:
    """Difference from a background, or from the nearest of the states that it may have.

    Attributes:
        background: the empty scene.
        states: other looks of it (mixture, adaptive models).
        rank: how many of all looks a pixel must resemble to be background: 1 or 2.
        shadow_floor: darkest brightness ratio that is still taken for a shadow; 1 switches suppression off.
        highlight: brightest ratio that is still taken for a reflection of light.
        hue_limit: how far from the background's hue a shadow may be, standard deviations.
        noise_times: how many times its noise the spread is beside what moves (`capture.silhouettes.noise_beside`).
    """

    background: Background
    shadow_floor: float = 0.5
    highlight: float = 1.15
    hue_limit: float = HUE_LIMIT
    states: tuple[Background, ...] = ()
    rank: int = 1
    noise_times: float = 1.0

    @cached_property
    def smooth(self) -> Singles:
        """(H, W, C) the background a little blurred, for thin parts: all frames ask for it."""
        return blurred(self.background.centre)

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) the distance from the background in units of 1 / `SCALE` standard deviations."""
        return self.evidence_in(image, None, self.light(image))

    def light(self, image: Bytes) -> Floats:
        """Return (C,) the gain of the scene's light in an image."""
        return light_gain(matched_channels(image, self.background), self.background.centre)

    def shade_measures(self, image: Bytes, step: int) -> tuple[Singles, Singles, Singles]:
        """Return distance from the background, brightness ratio and distance of hue, sigma, of every step-th pixel."""
        gain = self.light(image).astype(np.float32)
        frame = matched_channels(image, self.background)[::step, ::step].astype(np.float32)
        expected = self.background.centre[::step, ::step] * gain
        weight = 1.0 / np.square(self.background.spread[::step, ::step])
        total = np.einsum("hwc,hwc->hw", np.square(frame - expected), weight)
        weight *= expected
        own = np.einsum("hwc,hwc->hw", weight, expected) + np.float32(1e-6)
        ratio = np.einsum("hwc,hwc->hw", weight, frame) / own
        across = np.maximum(total - np.square(1.0 - ratio) * own, 0.0)
        channels = frame.shape[2]
        return np.sqrt(total / channels), ratio, np.sqrt(across / max(1, channels - 1))

    def measuring(self, image: Bytes, gain: Floats) -> Evidence:
        """Return the evidence of an image under the given light (C,), to be measured; of several looks it is."""
        frame = matched_channels(image, self.background)
        rule = ShadeRule(self.shadow_floor, self.highlight, self.hue_limit)
        if self.states:
            return nearest_look(frame, (self.background, *self.states), gain, rule, self.rank)
        return Evidence.of(frame, self.background, gain, rule)

    def noisier(self, times: float) -> PlateModel:
        """Return the model with so many times its usual noise; itself where that is once."""
        if times == 1.0:
            return self
        looks = [look.noisier(times) for look in (self.background, *self.states)]
        return replace(self, background=looks[0], states=tuple(looks[1:]), noise_times=times * self.noise_times)

    def as_seen(self, known: Evidence) -> PlateModel:
        """Return the model with the one look that the background has in an image of known evidence."""
        return replace(self, background=known.background, states=(), rank=1) if self.states else self

    def evidence_in(self, image: Bytes, window: Window | None, gain: Floats) -> Bytes:
        """Return the evidence in a window (rows, columns) of the image, under the given light (C,)."""
        found = self.measuring(image, gain)
        height, width = found.shaded.shape
        part = (slice(0, height), slice(0, width)) if window is None else window
        found.measure(part)
        found.look_for_marks()
        return found.shaded[part]

    def both_in(self, image: Bytes, window: Window, gain: Floats, known: Evidence | None = None) -> tuple[Bytes, Bytes]:
        """Return the evidence in a window of the image, and what it would be if there were no shade.

        ``known``: what was measured of it before.
        """
        found = self.measured(image, window, gain, known)
        return found.shaded[window], found.plain[window]

    def measured(self, image: Bytes, window: Window, gain: Floats, known: Evidence | None = None) -> Evidence:
        """Return the evidence of an image with a window of it measured, beside what is ``known``."""
        found = self.measuring(image, gain) if known is None else known
        found.measure(window)
        found.look_for_marks()
        return found

    def evidence_of(self, image: Bytes, gain: Floats, cleaning: Cleaning) -> Evidence:
        """Return the evidence of an image, measured in all parts that `cleaning` may keep, 0 elsewhere."""
        found = self.measuring(image, gain)
        if not self.states:
            places = lively_places(found.frame, self.background, gain, min(cleaning.high, 254.0 / SCALE))
            measure_around(places, min(255.0, cleaning.low * SCALE), found)
        return found


class FollowingModel:
    """Difference from a background that follows slow changes. Holds a state: images must come in order."""

    def __init__(self, scene: FollowedScene, *, shadow_floor: float, filmed: bool = False) -> None:
        """Begin with a scene; ``filmed``: whether it was filmed empty."""
        self._scene = scene
        self._surmised = SurmisedScene(scene.states[0].centre)
        self.shadow_floor = shadow_floor
        self.hue_limit = HUE_LIMIT
        self.noise_times = 1.0
        self.filmed = filmed

    def believe(self, noise_times: float, hue_limit: float) -> None:
        """Go on with so many times the noise, and a limit to how far shade strays from the hue of the ground."""
        self._scene.noisier(noise_times)
        self.noise_times *= noise_times
        self.hue_limit = hue_limit

    def now(self) -> PlateModel:
        """Return the difference from the background as it is now."""
        first, *others = self._scene.states
        shade = {"shadow_floor": self.shadow_floor, "hue_limit": self.hue_limit}
        return PlateModel(first, **shade, states=tuple(others), rank=self._scene.rank)

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) the distance from the background as it is now."""
        return self.now().evidence(image)

    def follow(self, image: Bytes, mask: Bools, light: Floats) -> None:
        """Learn from an image under the given light (C,), outside the silhouette ``mask`` (H, W) and its edge."""
        frame = matched_channels(image, self._scene.states[0])
        free = cv2.dilate(mask.view(np.uint8), disc(_CLEAR_PX)) == 0
        steady: Singles = (frame / light).astype(np.float32)
        self._scene.follow(self._surmised.now(steady, free))


def matched_channels(image: Bytes, background: Background) -> Bytes:
    """Return the image as (H, W, C) with as many channels as the background has."""
    frame = three_axes(image)
    if frame.shape[:2] != background.centre.shape[:2]:
        width, height = background.size
        raise InputError(f"background is {width} x {height} px, the image {frame.shape[1]} x {frame.shape[0]}")
    if frame.shape[2] == background.centre.shape[2]:
        return frame
    if background.centre.shape[2] == 1:
        return three_axes(np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY)))
    return np.repeat(frame, background.centre.shape[2], axis=2)
