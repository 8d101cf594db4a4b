"""How bare skin is told from the ground and its shade, by colours of one camera that were learnt from the recording.

A pixel is described by its colour, by that colour over the ground's (shade keeps the hue), and by the latter against
what is around (light that lies over a whole place). A ridge logistic regression on these and their squares gives the
odds.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.compiled import compiled

__all__ = ["FEATURES", "Colours", "described", "learnt"]

FEATURES = 9
"""Numbers that describe a pixel."""
_DARK = 8.0
"""Grey levels that are added before logarithms are taken: noise of dark pixels."""
_SMOOTH_PX = 0.8
_WIDE_PX = 4.0
"""Width of a blur from which on it is made of a smaller image."""
_RIDGE = 1e-2
_STEPS = 12
_LEAST_SPREAD = 1e-3
"""Spread of a feature that says nothing (grey images have no hue)."""


def described(image: Bytes, ground: Singles, outside: Bools, around_px: float) -> Singles:
    """Return (h, w, `FEATURES`) what the pixels of an image (h, w, 3) look like.

    Args:
        image: of the camera, or a window of it.
        ground: (h, w, 3) the same window of the empty scene, under the image's light.
        outside: (h, w) pixels that are not of the subject.
        around_px: how far around a pixel the light is looked at.
    """
    now, then = (
        np.log(cv2.GaussianBlur(one.astype(np.float32), (0, 0), _SMOOTH_PX) + np.float32(_DARK))
        for one in (image, ground)
    )
    height, width = outside.shape
    rows = np.empty((height, width, FEATURES), np.float32)
    weighted = np.empty((height, width, 4), np.float32)
    _over_ground(now, then, outside, rows, weighted)
    # What is around hardly differs from pixel to pixel: a few of them to the blur's width tell it.
    step = max(1, int(around_px / _WIDE_PX))
    small = cv2.resize(weighted, (-(-width // step), -(-height // step)), interpolation=cv2.INTER_AREA)
    usual = cv2.GaussianBlur(small, (0, 0), around_px / step)
    _against_usual(cv2.resize(usual, (width, height), interpolation=cv2.INTER_LINEAR), rows)
    return rows


@compiled
def _over_ground(now: Singles, then: Singles, outside: Bools, rows: Singles, weighted: Singles) -> None:
    """Write light and hue over the ground's (the first three), and the pixel's own (the next three).

    Light is the mean of logarithms (h, w, 3) of blue, green and red, hue is red over green and blue over green. What
    lies outside the subject is written once more (h, w, 4), with a one behind it.
    """
    for y in range(rows.shape[0]):
        for x in range(rows.shape[1]):
            row, logs = rows[y, x], now[y, x]
            row[3] = (logs[0] + logs[1] + logs[2]) / np.float32(3.0)
            row[4], row[5] = logs[2] - logs[1], logs[0] - logs[1]
            under = then[y, x]
            row[0] = row[3] - (under[0] + under[1] + under[2]) / np.float32(3.0)
            row[1], row[2] = row[4] - (under[2] - under[1]), row[5] - (under[0] - under[1])
            for k in range(3):
                weighted[y, x, k] = row[k] if outside[y, x] else np.float32(0.0)
            weighted[y, x, 3] = np.float32(1.0) if outside[y, x] else np.float32(0.0)


@compiled
def _against_usual(usual: Singles, rows: Singles) -> None:
    """Write light and hue over the ground's against what is around (the last three)."""
    for y in range(rows.shape[0]):
        for x in range(rows.shape[1]):
            near = usual[y, x, 3] + np.float32(1e-3)
            for k in range(3):
                rows[y, x, 6 + k] = rows[y, x, k] - usual[y, x, k] / near


@dataclass(frozen=True, eq=False)
class Colours:
    """Odds of skin against ground: means and spreads of the terms, and their weights; the last weight is the offset."""

    mean: Floats
    spread: Floats
    weights: Floats

    def odds(self, rows: Singles) -> Singles:
        """Return (n,) log odds of pixels (n, `FEATURES`)."""
        # What `learnt` weighs standardised, weighed as it comes: images have many pixels.
        slopes = (self.weights[:-1] / self.spread).astype(np.float32)
        offset = np.float32(self.weights[-1] - self.weights[:-1] @ (self.mean / self.spread))
        return np.asarray(rows @ slopes[:FEATURES] + np.square(rows) @ slopes[FEATURES:] + offset, np.float32)


def learnt(skin: Singles, ground: Singles) -> Colours:
    """Learn the odds from pixels (n, `FEATURES`) where skin should be and where it should not; both count alike."""
    rows = _terms(np.concatenate([skin, ground]))
    is_skin = np.r_[np.ones(len(skin)), np.zeros(len(ground))]
    say = np.where(is_skin > 0, 0.5 / len(skin), 0.5 / len(ground))
    mean = say @ rows
    spread = np.sqrt(say @ np.square(rows - mean)) + _LEAST_SPREAD
    terms = _standard(rows, mean, spread)
    ridge = np.full(terms.shape[1], _RIDGE)
    ridge[-1] = 0.0
    weights = np.zeros(terms.shape[1])
    for _ in range(_STEPS):
        likely = 1.0 / (1.0 + np.exp(-np.clip(terms @ weights, -30.0, 30.0)))
        slope = terms.T @ (say * (is_skin - likely)) - ridge * weights
        curve = (terms * (say * likely * (1.0 - likely))[:, None]).T @ terms + np.diag(ridge + 1e-9)
        weights = weights + np.linalg.solve(curve, slope)
    return Colours(mean, spread, weights)


def _terms(rows: Singles) -> Floats:
    wide = rows.astype(np.float64)
    return np.concatenate([wide, np.square(wide)], axis=1)


def _standard(terms: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.concatenate([(terms - mean) / spread, np.ones((len(terms), 1))], axis=1)
