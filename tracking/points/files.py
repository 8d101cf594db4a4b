"""Files of 2D points, one per camera: DeepLabCut and Lightning Pose (.csv, .h5), SLEAP (.h5), COCO keypoints (.json).

Anipose keeps the points of its cameras in DeepLabCut's form (``pose-2d``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, measured
from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text
from skeleton.motion_files import MarkerSeries, format_of, read_motion

__all__ = ["ImagePoints", "read_image_points"]

FORMATS = "DeepLabCut or Lightning Pose .csv or .h5, SLEAP analysis .h5, COCO keypoints .json"
_LARGEST_MB = 2000
_MOST_FRAMES = 10_000_000


@dataclass(frozen=True, eq=False)
class ImagePoints:
    """Points marked in the images of one camera.

    Attributes:
        names: (P,) as the file has them.
        pixels: (T, P, 2) px; NaN where a point was not seen.
        confidence: (T, P) 0 to 1; 1 where the file says nothing.
    """

    names: tuple[str, ...]
    pixels: Floats
    confidence: Floats


def read_image_points(path: Path | str, *, rate_hz: float) -> ImagePoints:
    """Read one camera's points; row k is frame k of its video.

    Args:
        path: file of one of the known formats, told from its content.
        rate_hz: frames per second of the video, which no such file holds.
    """
    source = Path(path)
    if source.suffix.lower() == ".json":
        return _read_coco(source)
    motion = read_motion(source, rate_hz=rate_hz) if format_of(source) in ("deeplabcut", "sleap") else None
    if not isinstance(motion, MarkerSeries):
        raise InputError(f"{source}: holds no 2D points of images; wanted {FORMATS}")
    confidence = np.ones(motion.positions.shape[:2])
    if motion.confidence is not None:
        # Some networks score above 1 (SLEAP's peaks do).
        confidence = np.clip(np.nan_to_num(np.asarray(motion.confidence, float), nan=0.0), 0.0, 1.0)
    return ImagePoints(tuple(motion.names), np.asarray(motion.positions, float), confidence)


def _read_coco(source: Path) -> ImagePoints:
    """Read keypoints of one subject; where an image has several, the largest is taken."""
    require_file(source, most_mb=_LARGEST_MB)
    with reading(source, "a COCO keypoints file"):
        content = json.loads(read_text(source))
        if not isinstance(content, dict):
            raise InputError(f"{source}: wanted a COCO object with images, categories and annotations")
        names = _keypoint_names(content, source)
        order = {image["id"]: index for index, image in enumerate(_images(content))}
        if len(order) > _MOST_FRAMES:
            raise InputError(f"{source}: {len(order)} images; wanted at most {_MOST_FRAMES}")
        pixels = np.full((len(order), len(names), 2), np.nan)
        confidence = np.zeros((len(order), len(names)))
        size = np.full(len(order), -1.0)
        for one in content.get("annotations", []):
            row = order.get(one.get("image_id"))
            marks = measured(np.asarray(one.get("keypoints", ()), float), f"{source}: keypoints")
            if row is None or marks.size == 0:
                continue
            if marks.shape != (3 * len(names),):
                raise InputError(f"{source}: an annotation has {marks.size} numbers for {len(names)} keypoints")
            area = float(one.get("area", 0.0) or 0.0)
            if area <= size[row]:
                continue
            size[row] = area
            x, y, seen = marks.reshape(-1, 3).T
            scores = np.asarray(one.get("keypoint_scores", np.where(seen > 1, 1.0, 0.5)), float)
            if scores.shape != seen.shape:
                raise InputError(f"{source}: an annotation has {scores.size} scores for {len(names)} keypoints")
            known = seen > 0
            pixels[row] = np.where(known[:, None], np.stack([x, y], axis=1), np.nan)
            confidence[row] = np.where(known, np.clip(np.nan_to_num(scores), 0.0, 1.0), 0.0)
    return ImagePoints(names, pixels, confidence)


def _keypoint_names(content: dict[str, Any], source: Path) -> tuple[str, ...]:
    for category in content.get("categories", []):
        if category.get("keypoints"):
            return tuple(str(name) for name in category["keypoints"])
    raise InputError(f"{source}: no category names its keypoints; not a COCO keypoints file")


def _images(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Images in the order of the video: by frame number if they have one, else by file name."""
    images = list(content.get("images", []))
    if all("frame_id" in image for image in images):
        return sorted(images, key=lambda image: int(image["frame_id"]))
    return sorted(images, key=lambda image: str(image.get("file_name", "")))
