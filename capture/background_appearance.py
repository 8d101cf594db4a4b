"""A subject that hardly leaves its place: no empty picture of what is behind it exists, so its own looks must do.

An animal that sits, breathes and turns its head betrays its region by small changes. Inside the region the model
learns how the subject looks, around it how the rest looks: brightness, brightness of the evenest window nearby, and
how even that window is (bedding is rough, fur is smooth); beside that brightness with its plain surroundings, which
thin bright parts such as a tail stand out by. The evidence is the log-likelihood ratio of the two looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from calibration.arrays import Bools, Bytes, Singles
from capture.background import SCALE

__all__ = ["AppearanceModel", "learn_appearance", "subject_region"]

_WINDOW = 7
_BINS = 16


@dataclass(frozen=True, eq=False)
class AppearanceModel:
    """Log-likelihood ratios of looks, within a window of the image.

    Attributes:
        tables: (2, 4096) log-likelihood ratio per look: even surfaces, plain surroundings.
        prior: (h, w) log odds by place, in the window.
        corner: (row, column) of the window in the image.
    """

    tables: Singles
    prior: Singles
    corner: tuple[int, int]

    def evidence(self, image: Bytes) -> Bytes:
        """Return (H, W) evidence; even odds come out as weak evidence, 20 to 1 as strong."""
        grey = _grey(image)
        out = np.zeros(grey.shape, dtype=np.uint8)
        row, column = self.corner
        height, width = self.prior.shape
        window = (slice(row, row + height), slice(column, column + width))
        odds = self.odds(grey[window])
        out[window] = np.clip(SCALE * (4.0 + 5.0 / 3.0 * odds), 0.0, 255.0).astype(np.uint8)
        return out

    def odds(self, grey: Bytes) -> Singles:
        """Return (h, w) the log odds of an image of the window."""
        even, plain = looks(grey)
        ratio = np.maximum(self.tables[0][even], self.tables[1][plain]) + self.prior
        return np.asarray(cv2.blur(ratio, (3, 3)))


def _grey(image: Bytes) -> Bytes:
    return image if image.ndim == 2 else np.asarray(image[:, :, 1])


def looks(grey: Bytes) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return two (h, w) codes below 4096: with the evenest of nine windows around, and with plain surroundings."""
    level = grey.astype(np.float32)
    mean = cv2.blur(level, (_WINDOW, _WINDOW))
    variance = cv2.blur(level * level, (_WINDOW, _WINDOW)) - mean * mean
    least, chosen = variance.copy(), mean.copy()
    reach = _WINDOW // 2
    for down in (-reach, 0, reach):
        for right in (-reach, 0, reach):
            moved = np.roll(variance, (down, right), (0, 1))
            better = moved < least
            least[better] = moved[better]
            chosen[better] = np.roll(mean, (down, right), (0, 1))[better]
    first = (grey >> 4).astype(np.int32) * (_BINS * _BINS)
    evenness = np.minimum(np.sqrt(np.maximum(least, 0.0)) / 1.25, _BINS - 1).astype(np.int32)
    even = first + (chosen / 16).astype(np.int32) * _BINS + evenness
    around = (cv2.GaussianBlur(level, (0, 0), 2.0) / 16).astype(np.int32)
    contrast = np.minimum(np.sqrt(np.maximum(variance, 0.0)) / 2.0, _BINS - 1).astype(np.int32)
    return even, first + around * _BINS + contrast


def _disc(size: int) -> Bytes:
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)))


def subject_region(images: Sequence[Bytes]) -> Bools:
    """Return (H, W) the region of the liveliest small changes, closed and filled."""
    stack = np.stack([_grey(image) for image in images])
    stack.sort(axis=0)
    skip = max(0, len(stack) // 16)
    change = cv2.blur((stack[-1 - skip] - stack[skip]).astype(np.float32), (3, 3))
    lively = change > max(6.0 * float(np.median(change)), 8.0)
    size = 2 * round(0.01 * max(change.shape)) + 1
    closed = cv2.morphologyEx(lively.view(np.uint8), cv2.MORPH_CLOSE, _disc(size))
    filled = closed.copy()
    outlines, _ = cv2.findContours(closed, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(filled, outlines, -1, 1, cv2.FILLED)
    count, labels = cv2.connectedComponents(filled)
    weight = np.bincount(labels.ravel(), weights=(change * lively).ravel(), minlength=count)
    weight[0] = 0.0
    return np.asarray(labels == weight.argmax()) if count > 1 else np.zeros(change.shape, bool)


def _table(codes: Sequence[NDArray[np.int32]], inside: Sequence[Bools], outside: Sequence[Bools]) -> Singles:
    counts = []
    for chosen in (inside, outside):
        total = sum(np.bincount(c[m], minlength=_BINS**3) for c, m in zip(codes, chosen, strict=True))
        smooth = gaussian_filter(np.asarray(total, dtype=float).reshape(_BINS, _BINS, _BINS), 0.8).ravel()
        counts.append(smooth / max(smooth.sum(), 1.0) + 1e-5)
    return np.asarray(np.log(counts[0] / counts[1]), dtype=np.float32)


def learn_appearance(images: Sequence[Bytes], region: Bools) -> AppearanceModel:
    """Learn the looks of the subject in ``region`` (H, W) and of what is around it, in three rounds.

    The first round takes the region's core for the subject; the next ones what the model itself found, so that thin
    parts that never moved (a tail) are learnt too.
    """
    extent = max(cv2.boundingRect(region.view(np.uint8))[2:])
    wide = cv2.dilate(region.view(np.uint8), _disc(2 * extent // 2 * 2 + 1))
    x, y, w, h = cv2.boundingRect(wide)
    window = (slice(y, y + h), slice(x, x + w))
    here = region[window].view(np.uint8)
    core = cv2.erode(here, _disc(9)).view(np.bool_)
    margin = cv2.dilate(here, _disc(31)).view(np.bool_)
    around = wide[window].view(np.bool_)
    prior = np.where(cv2.dilate(here, _disc(5)) > 0, 2.0, -0.5).astype(np.float32)
    prior = cv2.GaussianBlur(prior, (0, 0), 3.0)
    prior[~around] = -20.0
    greys = [np.ascontiguousarray(_grey(image)[window]) for image in images]
    both = [looks(grey) for grey in greys]
    inside, outside = [core] * len(greys), [around & ~margin] * len(greys)
    for turn in range(3):
        tables = np.stack([_table([pair[kind] for pair in both], inside, outside) for kind in (0, 1)])
        model = AppearanceModel(tables, np.asarray(prior), (y, x))
        if turn == 2:
            break
        found = [_main_part(model.odds(grey) > 1.0, core) for grey in greys]
        inside = found
        outside = [around & ~cv2.dilate(mask.view(np.uint8), _disc(9)).view(np.bool_) for mask in found]
    return model


def _main_part(mask: Bools, core: Bools) -> Bools:
    count, labels = cv2.connectedComponents(mask.view(np.uint8))
    hits = np.bincount(labels[core], minlength=count)
    hits[0] = 0
    return np.asarray(labels == hits.argmax()) if hits.any() else core
