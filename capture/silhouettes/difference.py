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

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from capture.backgrounds.adaptive import FollowedScene, SurmisedScene
from capture.backgrounds.appearance import disc
from capture.backgrounds.background import SCALE, Background, light_gain, three_axes
from capture.backgrounds.lost_texture import give_back_what_hides_marks
from capture.silhouettes.cleanup import Cleaning
from capture.silhouettes.lively_places import evidence_around, lively_places

__all__ = ["HUE_LIMIT", "FollowingModel", "PlateModel", "matched_channels"]

#: How far from the background's hue a shadow may be where the scene does not tell, standard deviations.
HUE_LIMIT = 3.0
#: Standard deviations from which on shade is asked whether it keeps the marks of the ground.
_DIFFERS = 4.0
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
    """

    background: Background
    shadow_floor: float = 0.5
    highlight: float = 1.15
    hue_limit: float = HUE_LIMIT
    states: tuple[Background, ...] = ()
    rank: int = 1

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
        total = (np.square(frame - expected) * weight).sum(axis=2)
        own = (np.square(expected) * weight).sum(axis=2) + np.float32(1e-6)
        ratio = (frame * expected * weight).sum(axis=2) / own
        across = np.maximum(total - np.square(1.0 - ratio) * own, 0.0)
        channels = frame.shape[2]
        return np.sqrt(total / channels), ratio, np.sqrt(across / max(1, channels - 1))

    def evidence_in(self, image: Bytes, window: tuple[slice, slice] | None, gain: Floats) -> Bytes:
        """Return the evidence in a window (rows, columns) of the image, under the given light (C,)."""
        whole = matched_channels(image, self.background)
        part = (slice(None), slice(None)) if window is None else window
        nearest, _ = self._distance(whole[part], self.background, part, gain)
        following = nearest if self.rank == 1 else np.full_like(nearest, 255)
        for state in self.states:
            found, _ = self._distance(whole[part], state, part, gain)
            if self.rank > 1:
                np.minimum(following, np.maximum(nearest, found), out=following)
            np.minimum(nearest, found, out=nearest)
        return nearest if self.rank == 1 else following

    def both_in(self, image: Bytes, window: tuple[slice, slice], gain: Floats) -> tuple[Bytes, Bytes]:
        """Return the evidence in a window of the image, and what it would be if there were no shade."""
        whole = matched_channels(image, self.background)
        shaded, plain = self._distance(whole[window], self.background, window, gain, plain=True)
        if self.states:
            plain = replace(self, shadow_floor=1.0, highlight=1.0).evidence_in(whole, window, gain)
        return shaded, plain

    def evidence_of(self, image: Bytes, gain: Floats, cleaning: Cleaning) -> Bytes:
        """Return (H, W) the evidence of all parts of an image that `cleaning` may keep, 0 elsewhere."""
        if self.states:
            return self.evidence_in(image, None, gain)
        frame = np.ascontiguousarray(matched_channels(image, self.background))
        places = lively_places(frame, self.background, gain, min(cleaning.high, 254.0 / SCALE))
        low = min(255.0, cleaning.low * SCALE)
        return evidence_around(places, frame.shape[:2], low, lambda window: self.evidence_in(frame, window, gain))

    def _distance(
        self, frame: Bytes, background: Background, part: tuple[slice, slice], gain: Floats, *, plain: bool = False
    ) -> tuple[Bytes, Bytes]:
        """Return the evidence of a window of an image against one look of the background, and ``plain`` the same."""
        centre, spread = background.centre[part], background.spread[part]
        shape, shades = frame.shape[:2], self.shadow_floor < 1.0
        plain = plain or shades
        out, bare = np.empty(shape, np.uint8), np.empty(shape if plain else (0, 0), np.uint8)
        rule = (np.float32(self.shadow_floor), np.float32(self.highlight))
        if frame.shape[2] == 1:
            images = frame[:, :, 0], centre[:, :, 0], spread[:, :, 0]
            _grey_evidence(*images, np.float32(gain[0]), *rule, out)
            if plain:
                _grey_evidence(*images, np.float32(gain[0]), np.float32(1.0), np.float32(1.0), bare)
        else:
            _evidence(frame, centre, spread, gain.astype(np.float32), *rule, np.float32(self.hue_limit), out, bare)
        if shades:
            longer = max(background.centre.shape[:2])
            give_back_what_hides_marks(frame, centre, spread, gain, out, bare, round(_DIFFERS * SCALE), longer)
        return out, bare


class FollowingModel:
    """Difference from a background that follows slow changes. Holds a state: images must come in order."""

    def __init__(self, scene: FollowedScene, *, shadow_floor: float) -> None:
        self._scene = scene
        self._surmised = SurmisedScene(scene.states[0].centre)
        self.shadow_floor = shadow_floor

    def now(self) -> PlateModel:
        """Return the difference from the background as it is now."""
        first, *others = self._scene.states
        return PlateModel(first, shadow_floor=self.shadow_floor, states=tuple(others), rank=self._scene.rank)

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


@compiled
def _grey_evidence(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: np.float32,
    floor: np.float32,
    highlight: np.float32,
    out: Bytes,
) -> None:
    height, width = frame.shape
    scale = np.float32(SCALE)
    most = np.float32(255.0)
    for y in range(height):
        for x in range(width):
            expected = centre[y, x] * gain
            value = np.float32(frame[y, x])
            sigmas = scale * abs(value - expected) / spread[y, x]
            shaded = (value >= floor * expected) & (value <= highlight * expected) & (floor < np.float32(1.0))
            out[y, x] = np.uint8(0) if shaded else np.uint8(min(sigmas, most))


@compiled
def _evidence(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: Singles,
    floor: np.float32,
    highlight: np.float32,
    hue_limit: np.float32,
    out: Bytes,
    plain: Bytes,
) -> None:
    """Fill (H, W) the evidence, and what it would be if there were no shade (``plain``, or (0, 0) if not wanted)."""
    height, width, channels = frame.shape
    one, zero, most = np.float32(1.0), np.float32(0.0), np.float32(255.0)
    share = np.float32(channels)
    most_hue = hue_limit * hue_limit * np.float32(channels - 1)
    totals = np.empty(width, np.float32)
    for y in range(height):
        for x in range(width):
            total = zero
            for c in range(channels):
                change = np.float32(frame[y, x, c]) - centre[y, x, c] * gain[c]
                total += change * change / (spread[y, x, c] * spread[y, x, c])
            totals[x] = total
        if plain.shape[0] > 0:
            for x in range(width):
                plain[y, x] = np.uint8(min(most, np.float32(SCALE) * np.sqrt(totals[x] / share)))
        if floor < one:
            for x in range(width):
                # A pixel within two sigma is background whatever its hue; most pixels end here.
                if totals[x] > np.float32(4.0) * channels:
                    cross, own = zero, np.float32(1e-6)
                    for c in range(channels):
                        expected = centre[y, x, c] * gain[c]
                        weight = one / (spread[y, x, c] * spread[y, x, c])
                        cross += np.float32(frame[y, x, c]) * expected * weight
                        own += expected * expected * weight
                    ratio = cross / own
                    # The squared distance falls into that along the background's colour and that across it, its hue.
                    across = totals[x] - (one - ratio) * (one - ratio) * own
                    if ratio >= floor and ratio <= highlight and across < most_hue:
                        totals[x] = zero
        for x in range(width):
            out[y, x] = np.uint8(min(most, np.float32(SCALE) * np.sqrt(totals[x] / share)))
