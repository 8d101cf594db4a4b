"""Pictures for eyes: silhouettes drawn over the images, as a sheet of frames or a video."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes
from capture.recordings.masks import mask_cameras, read_masks
from capture.recordings.recording import Recording
from capture.recordings.video import read_frames

__all__ = ["contact_sheet", "overlay"]


def overlay(image: Bytes, mask: Bools) -> Bytes:
    """Return the image with the silhouette tinted and its outline drawn, (H, W, 3) BGR."""
    picture = cv2.cvtColor(image, cv2.COLOR_GRAY2BGR) if image.ndim == 2 else image.copy()
    picture[mask] = (0.65 * picture[mask] + np.array([90.0, 0.0, 0.0])).astype(np.uint8)
    contours, _ = cv2.findContours(mask.view(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(picture, contours, -1, (0, 200, 255), 1)
    return np.asarray(picture)


def contact_sheet(
    recording: Recording, path: Path | str, frames: Sequence[int] | None = None, *, width: int = 320
) -> list[int]:
    """Write a PNG or JPEG with one row per camera and one column per frame; return the frames shown."""
    silhouettes = recording.results / "silhouettes.h5"
    names, count = mask_cameras(silhouettes)
    shown = sorted({round(f) for f in np.linspace(0, count - 1, min(6, count))}) if frames is None else list(frames)
    rows = []
    for footage in (f for f in recording.footage if f.name in names):
        masks = read_masks(silhouettes, footage.name, shown)
        tiles = []
        for frame, mask in zip(shown, masks, strict=True):
            index = frame + round(footage.offset_frames)
            image = next((image for _, image in read_frames(footage.source, index, index + 1)), None)
            if image is None:
                image = np.zeros(mask.shape, dtype=np.uint8)
            height = round(width * mask.shape[0] / mask.shape[1])
            tile = cv2.resize(overlay(image, mask), (width, height), interpolation=cv2.INTER_AREA)
            cv2.putText(
                tile,
                f"{footage.name} {frame}",
                (6, 16),
                cv2.FONT_HERSHEY_SIMPLEX,
                0.45,
                (255, 255, 255),
                1,
                cv2.LINE_AA,
            )
            tiles.append(tile)
        rows.append(np.hstack(tiles))
    widest = max(row.shape[1] for row in rows)
    sheet = np.vstack([np.pad(row, ((0, 2), (0, widest - row.shape[1]), (0, 0))) for row in rows])
    done, data = cv2.imencode(Path(path).suffix or ".png", sheet)
    if not done:
        raise InputError(f"{path}: cannot write a picture with this suffix; take .png or .jpg")
    write_bytes(path, data.tobytes())
    return shown
