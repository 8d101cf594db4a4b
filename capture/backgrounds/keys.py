"""Models without a background picture: a screen of one colour, and a threshold for infrared backlight."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from capture.backgrounds.background import SCALE

__all__ = ["AROUND_PX", "ChromaModel", "ThresholdModel", "key_colour"]

#: Evidence that is just weak, standard deviations: the default of `capture.silhouettes.cleanup.Cleaning`.
_WEAK = 4.0
#: Darkest ratio taken for a shadow on the screen.
_DARKEST = 0.42
#: Least spread of the screen's colour, grey levels: what a codec rounds away.
_LEAST_SPREAD = 2.0
#: Hues are counted in steps of this angle of the plane of chroma (Lab), three at a time.
_HUE_DEG = 4.0
#: The screen's light is looked at in about this many rows.
_ROWS = 120
#: The screen around a silhouette is looked at off its blurred rim, near by where there is enough of it, or farther, px.
_OFF_RIM_PX = 2
_NEAR_PX, AROUND_PX = 8, 32


@dataclass(frozen=True, eq=False)
class ChromaModel:
    """A green or blue screen: one colour, lit more here and less there, and shaded by the subject.

    What a screen shows in any light is a multiple of one colour. So a pixel is told by what is left of it beside that
    colour, and by the light only where there is less than any shade leaves.

    Attributes:
        colour: (3,) blue, green and red of the screen, of unit length.
        light: (H, W) how many times that colour the screen shows at each pixel.
        sigma: spread of the screen's colour beside its own direction, grey levels.
        shadow_floor: darkest ratio to its light that is taken for a shadow on the screen.
    """

    colour: Floats
    light: Singles
    sigma: float
    shadow_floor: float = _DARKEST

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) the distance from the screen's colour in units of 1 / `SCALE` standard deviations."""
        _need_colour(image)
        out = np.empty(image.shape[:2], np.uint8)
        _fill_evidence(image, self.light, self.colour.astype(np.float32), (self.sigma, self.shadow_floor), out)
        return out

    def within(self, window: tuple[slice, slice]) -> ChromaModel:
        """Return the same for a part (rows, columns) of the images."""
        return replace(self, light=self.light[window])

    def screen_around(self, image: Bytes, mask: Bools, evidence: Bytes) -> Singles:
        """Return (H, W, 3) what the screen shows around a silhouette, its shades included, and so behind its rim.

        Args:
            image: (H, W, 3).
            mask: (H, W) the silhouette in it.
            evidence: (H, W) of the image.
        """
        off = cv2.dilate(mask.view(np.uint8), np.ones((2 * _OFF_RIM_PX + 1,) * 2, np.uint8))
        free = ((off == 0) & (evidence < _WEAK * SCALE)).astype(np.float32)
        colour = self.colour.astype(np.float32)
        lit = image @ colour
        screen = self.light[:, :, None] * colour
        for reach in (AROUND_PX, _NEAR_PX):
            mean, _ = _mean_around(lit * free, free, reach)
            # A rim that is blurred more than that is a dark subject's where it is darker than the rest.
            clear = free * (lit >= mean)
            shown, known = _mean_around(image * clear[:, :, None], clear, reach)
            screen[known] = shown[known]
        return np.asarray(screen, dtype=np.float32)


def _mean_around(values: Singles, counted: Singles, reach: int) -> tuple[Singles, Bools]:
    """Return the mean of values that are 0 where not ``counted``, in squares; and where there is a line of them."""
    side = (2 * reach + 1, 2 * reach + 1)
    count = cv2.boxFilter(counted, -1, side, normalize=False, borderType=cv2.BORDER_CONSTANT)
    total = cv2.boxFilter(values, -1, side, normalize=False, borderType=cv2.BORDER_CONSTANT)
    each = np.maximum(count, np.float32(1.0))
    return np.asarray(total / (each if values.ndim == 2 else each[:, :, None])), np.asarray(count > 2 * reach)


def _need_colour(image: Bytes) -> None:
    if image.ndim < 3 or image.shape[-1] != 3:
        raise InputError("chroma key: wanted colour images; take the threshold or plate model for grey ones")


@compiled
def _fill_evidence(image: Bytes, light: Singles, colour: Singles, limits: tuple[float, float], out: Bytes) -> None:
    """Fill ``out`` with the evidence of `ChromaModel`."""
    sigma, floor = np.float32(limits[0]), np.float32(limits[1])
    blue, green, red = colour[0], colour[1], colour[2]
    unit, most = np.float32(SCALE) / sigma, np.float32(255.0)
    for y in range(image.shape[0]):
        for x in range(image.shape[1]):
            b, g, r = np.float32(image[y, x, 0]), np.float32(image[y, x, 1]), np.float32(image[y, x, 2])
            along = b * blue + g * green + r * red
            b, g, r = b - along * blue, g - along * green, r - along * red
            dark = max(np.float32(0.0), floor * light[y, x] - along)
            out[y, x] = np.uint8(min(most, np.sqrt(b * b + g * g + r * r + dark * dark) * unit))


def key_colour(images: Bytes, shadow_floor: float = _DARKEST) -> ChromaModel:
    """Find the screen in images (H, W, 3) or (n, H, W, 3) of a camera: the commonest hue, its light and spread."""
    _need_colour(images)
    stack = images if images.ndim == 4 else images[None]
    height, width = stack.shape[1:3]
    step = max(1, round(min(height, width) / _ROWS))
    some = np.ascontiguousarray(stack[:, ::step, ::step])
    shown = some.astype(np.float32)
    commonest = shown[_commonest(some)]
    screen = np.zeros(shown.shape[:3], dtype=bool)
    for near in (commonest, None):  # the colour of one light finds that of all
        colour, sigma = _colour_and_spread(shown[screen] if near is None else near)
        along = shown @ colour
        away = np.linalg.norm(shown - along[..., None] * colour, axis=-1)
        # What is as dark as no shade is may be a dark subject, which has the hue of nothing.
        screen = (away < _WEAK * sigma) & (along > _DARKEST * np.median(commonest @ colour))
    light = _filled_in(np.where(screen, along, np.float32(np.nan)))
    light = cv2.resize(light, (width, height), interpolation=cv2.INTER_LINEAR)
    return ChromaModel(colour.astype(float), light, sigma, shadow_floor)


def _commonest(images: Bytes) -> Bools:
    """Return (n, h, w) the vivid pixels of the commonest hue; grey has none, whatever its light."""
    lab = np.stack([cv2.cvtColor(image, cv2.COLOR_BGR2LAB)[:, :, 1:] for image in images]).astype(np.float32) - 128
    hue = np.floor(np.degrees(np.arctan2(lab[..., 1], lab[..., 0])) % 360 / _HUE_DEG).astype(int)
    vivid = np.linalg.norm(lab, axis=-1)
    votes = np.bincount(hue.ravel(), weights=vivid.ravel(), minlength=round(360 / _HUE_DEG))
    bins = len(votes)
    peak = int((votes + np.roll(votes, 1) + np.roll(votes, -1)).argmax())
    near = (hue - peak + 1) % bins <= 2
    return np.asarray(near & (vivid >= np.median(vivid[near])))


def _colour_and_spread(pixels: Singles) -> tuple[Singles, float]:
    """Return (3,) the direction of pixels (n, 3) of the screen, and how far they stray beside it, grey levels."""
    colour = pixels.sum(axis=0, dtype=np.float64)
    colour /= np.linalg.norm(colour)
    beside = pixels - (pixels @ colour)[:, None] * colour
    return colour.astype(np.float32), max(_LEAST_SPREAD, float(np.sqrt((beside**2).sum() / (2 * len(pixels)))))


def _filled_in(light: Singles) -> Singles:
    """Return (h, w) the median of a light (n, h, w), NaN where no screen is seen; from around where it never is."""
    seen = np.isfinite(light)
    count = seen.sum(axis=0)
    ranked = np.sort(light, axis=0)  # NaN last
    middle = np.take_along_axis(ranked, (np.maximum(count - 1, 0) // 2)[None], axis=0)[0]
    known = (count > 0).astype(np.float32)
    value = np.where(count > 0, middle, np.float32(0.0)).astype(np.float32)
    out, missing, reach = value.copy(), count == 0, 2.0
    while missing.any():
        weight = cv2.GaussianBlur(known, (0, 0), reach)
        reached = missing & (weight > 1e-3)
        out[reached] = (cv2.GaussianBlur(value, (0, 0), reach)[reached]) / weight[reached]
        missing &= ~reached
        reach *= 2.0
    return out


@dataclass(frozen=True)
class ThresholdModel:
    """Brightness threshold for infrared backlight (dark subject) or a bright subject on black.

    Attributes:
        level: grey level between subject and rest; None: half-way between the two sides of Otsu's, found in each frame.
        dark: whether the subject is the darker side.
    """

    level: float | None = None
    dark: bool = True

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) high evidence beyond the level, rising over ten grey levels around it."""
        grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        level = self.level
        if level is None:
            split = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)[0]
            low, high = grey[grey <= split], grey[grey > split]
            level = (float(low.mean()) + float(high.mean())) / 2 if len(low) and len(high) else float(split)
        beyond = (level - grey.astype(np.float32)) * (1.0 if self.dark else -1.0)
        # At the level the evidence is the default of weak evidence, so that the silhouette's edge lies there.
        return np.asarray(np.clip(SCALE * (_WEAK + beyond), 0.0, 255.0), dtype=np.uint8)
