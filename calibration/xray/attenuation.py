"""X-ray images as attenuation: grey values, their logarithm, and where the image is not exposed."""

from __future__ import annotations

from typing import Any, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bytes, Singles
from calibration.foundation.errors import InputError

__all__ = ["NOTHING_BLIND", "Polarity", "attenuation_table", "blind_rim", "grey_image"]

Polarity = Literal["dark", "bright"]

#: The mask of an image that is exposed everywhere.
NOTHING_BLIND = np.zeros((0, 0), dtype=np.uint8)
#: Share of the brightest value below which the rim of an image counts as unexposed.
UNEXPOSED = 0.05


def grey_image(image: NDArray[Any]) -> NDArray[Any]:
    """Return an image as (H, W) uint8 or uint16: colour is averaged, floating point in [0, 1] is scaled."""
    if image.ndim == 3 and image.shape[2] >= 3:
        # Colour X-ray files hold three equal channels; the mean keeps the rare ones that do not symmetrical.
        mean = image[..., :3].mean(axis=2)
        image = mean if image.dtype.kind == "f" else np.rint(mean).astype(image.dtype)
    elif image.ndim == 3 and image.shape[2] == 1:
        image = image[..., 0]
    if image.ndim != 2 or min(image.shape) < 16:
        raise InputError(f"an image must be (H, W) or (H, W, 3) with at least 16 pixels a side, got {image.shape}")
    if image.dtype.kind == "f":
        image = np.rint(np.clip(image, 0.0, 1.0) * 65535.0).astype(np.uint16)
    if image.dtype not in (np.uint8, np.uint16):
        raise InputError(f"an image must be uint8, uint16 or floats in [0, 1], got {image.dtype}")
    return np.ascontiguousarray(image)


def attenuation_table(dtype: np.dtype[Any] | type, polarity: Polarity = "dark") -> Singles:
    """Return attenuation (natural log, spots positive) for each grey value of an integer type, one row of values."""
    if polarity not in ("dark", "bright"):
        raise InputError(f"polarity must be 'dark' or 'bright', got '{polarity}'")
    top = int(np.iinfo(dtype).max)
    grey = np.arange(top + 1, dtype=np.float64)
    # The offset (3 of 255) is about the dark noise of such cameras: below it the logarithm shows nothing but noise.
    light = (grey if polarity == "dark" else top - grey) + 3.0 * top / 255.0
    return np.asarray(-np.log(light / light.max()), dtype=np.float32)


def blind_rim(image: NDArray[Any], polarity: Polarity = "dark", *, margin_px: int = 2) -> Bytes:
    """Return (H, W), 1 where an image is not exposed: the dark that touches its border, such as an intensifier's rim.

    The blurred edge of that region, ``margin_px`` wide, counts with it. Dense beads and bones inside do not.
    """
    light = image if polarity == "dark" else (np.iinfo(image.dtype).max - image)
    dark = (light < UNEXPOSED * float(light.max())).astype(np.uint8)
    dark = cv2.morphologyEx(dark, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (11, 11)))
    if not dark.any():
        return NOTHING_BLIND
    _, labels = cv2.connectedComponents(dark)
    border = np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]])
    rim = np.isin(labels, np.setdiff1d(border, [0])).astype(np.uint8)
    if not rim.any():
        return NOTHING_BLIND
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * margin_px + 1,) * 2)
    return np.asarray(cv2.dilate(rim, disc), dtype=np.uint8)
