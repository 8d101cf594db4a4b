"""How far the pixels of one image are from the background, measured rectangle by rectangle, each pixel once.

Most of an image is never looked at; what is, is asked twice: for the silhouette, and for what may be missing from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from calibration.foundation.arrays import Bytes, Floats, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import SCALE, Background
from capture.backgrounds.lost_texture import ShadeCells

__all__ = ["Evidence", "ShadeRule", "Window"]

Window = tuple[slice, slice]


@dataclass(frozen=True)
class ShadeRule:
    """What is shade: ratios of brightness from ``floor`` (1: none is) to ``highlight``, and how far in hue."""

    floor: float
    highlight: float
    hue_limit: float


@dataclass(frozen=True, eq=False)
class Evidence:
    """The distance of an image from one look of the background, in units of 1 / `SCALE` standard deviations.

    Attributes:
        frame: (H, W, C) the image.
        background: the look.
        gain: (C,) light of the image.
        rule: what is shade.
        shaded: (H, W) the distance where it was measured, 0 in shade.
        plain: (H, W) what it would be if there were no shade.
    """

    frame: Bytes
    background: Background
    gain: Floats
    rule: ShadeRule
    shaded: Bytes
    plain: Bytes
    _cells: ShadeCells
    _done: list[Window] = field(default_factory=list)
    _new: list[Window] = field(default_factory=list)

    @classmethod
    def of(cls, frame: Bytes, background: Background, gain: Floats, rule: ShadeRule) -> Evidence:
        """Begin with an image of which nothing is measured."""
        height, width, _ = frame.shape
        shaded, plain = np.zeros((height, width), np.uint8), np.zeros((height, width), np.uint8)
        cells = ShadeCells.of((height, width))
        return cls(np.ascontiguousarray(frame), background, gain, rule, shaded, plain, cells)

    def measure(self, window: Window) -> None:
        """Measure what is not known yet of a rectangle (rows, columns)."""
        for part in _rest_of(window, self._done):
            self._measure(part)
            self._done.append(part)
            self._new.append(part)

    def look_for_marks(self) -> None:
        """Take what was measured since the last look and hides marks of the ground for no shade."""
        if self._new and self.rule.floor < 1.0:
            self._cells.give_back(self.shaded, self.plain, _around(self._new))
        self._new.clear()

    def rectangle(self) -> Window:
        """Return the smallest rectangle that holds all that is known, empty if nothing is."""
        return _around(self._done) if self._done else (slice(0, 0), slice(0, 0))

    def measured_px(self) -> int:
        """Return how many pixels are known."""
        return sum((rows.stop - rows.start) * (columns.stop - columns.start) for rows, columns in self._done)

    def _measure(self, window: Window) -> None:
        height, width, channels = self.frame.shape
        flat, rule = (height, width * channels), self.rule
        centre, spread = (np.ascontiguousarray(one) for one in (self.background.centre, self.background.spread))
        images = (self.frame.reshape(flat), centre.reshape(flat), spread.reshape(flat), self.gain.astype(np.float32))
        limits = (np.float32(rule.floor), np.float32(rule.highlight), np.float32(rule.hue_limit))
        place = (window[0].start, window[0].stop, window[1].start, window[1].stop)
        (_grey if channels == 1 else _coloured)(*images, limits, place, self.shaded, self.plain)
        if rule.floor < 1.0:
            self._cells.add(images, self.shaded, self.plain, place)


def _around(windows: list[Window]) -> Window:
    """Return the smallest rectangle that holds some others."""
    rows, columns = zip(*windows, strict=True)
    return (
        slice(min(one.start for one in rows), max(one.stop for one in rows)),
        slice(min(one.start for one in columns), max(one.stop for one in columns)),
    )


def _rest_of(window: Window, known: list[Window]) -> list[Window]:
    """Return the parts of a rectangle that lie in none of the known ones."""
    rest = [window]
    for rows, columns in known:
        top, bottom, left, right = rows.start, rows.stop, columns.start, columns.stop
        parts: list[Window] = []
        for part in rest:
            high, low, first, last = part[0].start, part[0].stop, part[1].start, part[1].stop
            if high >= bottom or low <= top or first >= right or last <= left:  # asked often: most lie apart
                parts.append(part)
                continue
            middle = slice(max(high, top), min(low, bottom))
            if high < top:
                parts.append((slice(high, top), part[1]))
            if low > bottom:
                parts.append((slice(bottom, low), part[1]))
            if first < left:
                parts.append((middle, slice(first, left)))
            if last > right:
                parts.append((middle, slice(right, last)))
        rest = parts
        if not rest:
            break
    return rest


@compiled
def _grey(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: Singles,
    limits: tuple[np.float32, np.float32, np.float32],
    place: tuple[int, int, int, int],
    shaded: Bytes,
    plain: Bytes,
) -> None:
    """Fill evidence (H, W) between two rows and columns; of grey images the ratio alone tells shade."""
    top, bottom, left, right = place
    floor, highlight, _ = limits
    shades = floor < np.float32(1.0)
    for y in range(top, bottom):
        # Rows of their own, indices from 0, one result a loop: each then takes several values at a time.
        now, then, sigma = frame[y, left:right], centre[y, left:right], spread[y, left:right]
        bare, out = plain[y, left:right], shaded[y, left:right]
        for x in range(right - left):
            away = abs(np.float32(now[x]) - then[x] * gain[0])
            bare[x] = np.uint8(min(np.float32(SCALE) * away / sigma[x], np.float32(255.0)))
        for x in range(right - left):
            expected, value = then[x] * gain[0], np.float32(now[x])
            shade = shades & (value >= floor * expected) & (value <= highlight * expected)
            out[x] = np.uint8(0) if shade else bare[x]


@compiled
def _coloured(
    frame: Bytes,
    centre: Singles,
    spread: Singles,
    gain: Singles,
    limits: tuple[np.float32, np.float32, np.float32],
    place: tuple[int, int, int, int],
    shaded: Bytes,
    plain: Bytes,
) -> None:
    """Fill evidence (H, W) between two rows and columns of images (H, 3 W)."""
    top, bottom, left, right = place
    floor, highlight, hue_limit = limits
    one, most = np.float32(1.0), np.float32(255.0)
    most_hue = hue_limit * hue_limit * np.float32(2.0)
    count = right - left
    gains, totals = np.empty(3 * count, np.float32), np.empty(3 * count, np.float32)
    owns, crosses = np.empty(3 * count, np.float32), np.empty(3 * count, np.float32)
    for n in range(3 * count):
        gains[n] = gain[n % 3]
    for y in range(top, bottom):
        # Rows of their own, indices from 0, no branches: each loop takes several values at a time.
        here = slice(3 * left, 3 * right)
        now, then, sigma = frame[y, here], centre[y, here], spread[y, here]
        bare, out = plain[y, left:right], shaded[y, left:right]
        for n in range(3 * count):
            expected, value = then[n] * gains[n], np.float32(now[n])
            weight = one / (sigma[n] * sigma[n])
            totals[n] = (value - expected) * (value - expected) * weight
            owns[n] = expected * expected * weight
            crosses[n] = value * expected * weight
        for x in range(count):
            total = totals[3 * x] + totals[3 * x + 1] + totals[3 * x + 2]
            own = np.float32(1e-6) + owns[3 * x] + owns[3 * x + 1] + owns[3 * x + 2]
            ratio = (crosses[3 * x] + crosses[3 * x + 1] + crosses[3 * x + 2]) / own
            # The squared distance falls into that along the background's colour and that across it, its hue.
            across = total - (one - ratio) * (one - ratio) * own
            away = np.uint8(min(most, np.float32(SCALE) * np.sqrt(total / np.float32(3.0))))
            shade = (ratio >= floor) & (ratio <= highlight) & (across < most_hue) & (floor < one)
            bare[x] = away
            # A pixel within two sigma is background whatever its hue.
            out[x] = np.uint8(0) if shade & (total > np.float32(12.0)) else away
