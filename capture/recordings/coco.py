"""Masks in COCO files, as segmentation networks and labelling programs write them: run lengths or polygons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from calibration.foundation.arrays import Bools
from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text

__all__ = ["coco_images", "coco_masks", "decode_rle", "encode_rle"]

_LARGEST_IMAGE = 1 << 28
_FARTHEST_PX = 1e6


def encode_rle(mask: Bools) -> dict[str, Any]:
    """Return a mask as COCO run lengths: column by column, zeros first, ``counts`` as a list."""
    flat = mask.T.reshape(-1).view(np.uint8)
    change = np.flatnonzero(np.diff(flat)) + 1
    ends = np.concatenate([[0], change, [len(flat)]])
    counts = np.diff(ends).tolist()
    if len(flat) and flat[0]:
        counts = [0, *counts]
    return {"size": [mask.shape[0], mask.shape[1]], "counts": counts}


def decode_rle(rle: Mapping[str, Any], where: str = "COCO run lengths") -> Bools:
    """Return the mask (H, W) of COCO run lengths, plain (list) or compressed (text)."""
    try:
        height, width = (int(side) for side in rle["size"])
        counts = rle["counts"]
        runs = _unpacked_counts(counts) if isinstance(counts, str | bytes) else [int(count) for count in counts]
        if min(height, width) < 1 or height * width > _LARGEST_IMAGE:
            raise ValueError(f"an image of {width} x {height} px")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{where}: wanted 'size' [height, width] and 'counts' ({error})") from None
    if any(run < 0 for run in runs) or sum(runs) != height * width:
        raise InputError(f"{where}: run lengths sum to {sum(runs)}, the image has {height} x {width} pixels")
    values = np.arange(len(runs)) % 2 == 1
    return np.ascontiguousarray(np.repeat(values, runs).reshape(width, height).T)


def _unpacked_counts(text: str | bytes) -> list[int]:
    """Undo COCO's compression: 5 bits per character from '0' on, bit 6 says more follow; differences to two back."""
    data = text.encode("ascii") if isinstance(text, str) else text
    counts: list[int] = []
    position = 0
    while position < len(data):
        value, shift, more = 0, 0, True
        while more:
            if position == len(data):
                raise ValueError("compressed counts end in the middle of a number")
            character = data[position] - 48
            value |= (character & 0x1F) << shift
            more = bool(character & 0x20)
            position += 1
            shift += 5
            if not more and character & 0x10:
                value |= -1 << shift
        if len(counts) > 2:
            value += counts[-2]
        counts.append(value)
    return counts


def coco_images(place: Path) -> tuple[int, tuple[int, int]]:
    """Return how many images a COCO file names, and the size (width, height) of the first, px."""
    images, _ = _content(place)
    if not images:
        raise InputError(f"{place}: no image in this COCO file")
    return len(images), (int(images[0]["width"]), int(images[0]["height"]))


def coco_masks(place: Path) -> Iterator[Bools]:
    """Yield the mask (H, W) of each image of a COCO file in the order of their ids, its annotations united."""
    images, annotations = _content(place)
    of_image: dict[Any, list[Any]] = {}
    with reading(place, "a COCO file"):
        for annotation in annotations:
            of_image.setdefault(annotation.get("image_id"), []).append(annotation.get("segmentation"))
    for image in images:
        mask = np.zeros((int(image["height"]), int(image["width"])), dtype=bool)
        for segmentation in of_image.get(image["id"], []):
            if isinstance(segmentation, Mapping):
                runs = decode_rle(segmentation, f"{place}: image {image['id']}")
                if runs.shape != mask.shape:
                    raise InputError(f"{place}: image {image['id']}: run lengths of another size than the image")
                mask |= runs
            elif isinstance(segmentation, list):
                mask |= _filled(segmentation, mask.shape, f"{place}: image {image['id']}")
            else:
                raise InputError(f"{place}: image {image['id']}: segmentation must be run lengths or polygons")
        yield mask


def _content(place: Path) -> tuple[list[Any], list[Any]]:
    """Return the images, by their ids, and the annotations of a COCO file."""
    try:
        content = json.loads(read_text(place))
        images = sorted(content["images"], key=lambda image: image["id"])
        for image in images:
            width, height = int(image["width"]), int(image["height"])
            if min(width, height) < 1 or width * height > _LARGEST_IMAGE:
                raise InputError(f"{place}: image {image['id']} has no size of an image")
        return images, list(content["annotations"])
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{place}: not a COCO file with 'images' and 'annotations' ({error})") from None


def _filled(polygons: Sequence[Sequence[float]], shape: tuple[int, ...], where: str) -> Bools:
    canvas = np.zeros(shape, dtype=np.uint8)
    for polygon in polygons:
        try:
            corners = np.asarray(polygon, dtype=np.float64).reshape(-1, 2)
        except (TypeError, ValueError, OverflowError):
            corners = np.full((1, 2), np.nan)
        if not len(corners) or not (np.abs(corners) < _FARTHEST_PX).all():
            raise InputError(f"{where}: a polygon must be numbers x, y, x, y, ... in pixels")
        # COCO's coordinates have the corner of the top-left pixel at (0, 0); ours its centre. 4 fractional bits.
        points = np.round((corners - 0.5) * 16).astype(np.int32)
        cv2.fillPoly(canvas, [points], 1, shift=4)
    return canvas.view(np.bool_)
