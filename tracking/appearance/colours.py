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

__all__ = ["FEATURES", "Colours", "described", "learnt"]

FEATURES = 9
"""Numbers that describe a pixel."""
_DARK = 8.0
"""Grey levels that are added before logarithms are taken: noise of dark pixels."""
_SMOOTH_PX = 0.8
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
    ratio, own = _light_and_hue(now - then), _light_and_hue(now)
    weight = outside.astype(np.float32)
    near = cv2.GaussianBlur(weight, (0, 0), around_px) + np.float32(1e-3)
    usual = cv2.GaussianBlur(ratio * weight[:, :, None], (0, 0), around_px) / near[:, :, None]
    return np.concatenate([ratio, own, ratio - usual], axis=2)


def _light_and_hue(logs: Singles) -> Singles:
    """(h, w, 3) mean, red over green and blue over green of logarithms (h, w, 3) of blue, green, red."""
    blue, green, red = (logs[:, :, k] for k in range(3))
    return np.stack([logs.mean(axis=2), red - green, blue - green], axis=2)


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
