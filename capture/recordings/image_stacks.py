"""Image stacks of X-ray machines: TIFF (one file or many), DICOM, videos, folders of images, as grey frames.

Sixteen-bit data stay sixteen-bit. Phantom .cine files have no maintained free reader for Python: convert them to TIFF
with the camera maker's program; the message says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import tifffile
from numpy.typing import NDArray

from calibration.foundation.errors import InputError
from capture.recordings.video import image_files, probe, read_frames, read_image

__all__ = ["ImageStack", "open_stack"]

TIFF = (".tif", ".tiff")
DICOM = (".dcm", ".dicom")


@dataclass(frozen=True)
class ImageStack:
    """A sequence of grey images on disk.

    Attributes:
        source: file or folder.
        kind: "tiff", "dicom", "tiff folder", "dicom folder" or "video" (also folders of ordinary images).
        frames: how many.
        size: (width, height) px.
        files: for folders, one per frame.
    """

    source: Path
    kind: str
    frames: int
    size: tuple[int, int]
    files: tuple[Path, ...] = ()

    def __len__(self) -> int:
        return self.frames

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[NDArray[Any]]:
        """Yield (H, W) uint8 or uint16 images of the frames from ``start`` up to ``stop``."""
        end = self.frames if stop is None else min(stop, self.frames)
        if self.kind == "video":
            for _, image in read_frames(self.source, start, end, gray=True):
                yield image
        elif self.kind == "tiff":
            with tifffile.TiffFile(self.source) as file:
                for k in range(start, end):
                    yield _grey(file.pages[k].asarray(), self.source)
        elif self.kind == "dicom":
            yield from _dicom_frames(self.source)[start:end]
        else:
            for path in self.files[start:end]:
                if self.kind == "dicom folder":
                    yield _dicom_frames(path)[0]
                else:
                    yield _grey(tifffile.imread(path), path)


def open_stack(source: Path | str) -> ImageStack:
    """Recognise what ``source`` is and count its frames, without reading them all."""
    place = Path(source)
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    suffix = place.suffix.lower()
    if suffix == ".cine":
        raise InputError(f"{place}: .cine is not read; export it as TIFF or AVI from the camera maker's program")
    if place.is_dir():
        return _open_folder(place)
    if suffix in TIFF:
        try:
            with tifffile.TiffFile(place) as file:
                shape = file.pages[0].shape
                return ImageStack(place, "tiff", len(file.pages), (int(shape[1]), int(shape[0])))
        except (tifffile.TiffFileError, OSError):
            raise InputError(f"{place}: damaged or not a TIFF file") from None
    if suffix in DICOM:
        frames = _dicom_frames(place)
        return ImageStack(place, "dicom", len(frames), (frames.shape[2], frames.shape[1]))
    info = probe(place)
    return ImageStack(place, "video", info.frames, info.size)


def _open_folder(place: Path) -> ImageStack:
    dicom = sorted(path for path in place.iterdir() if path.suffix.lower() in DICOM)
    if dicom:
        # Instance numbers, not names, give the order in time.
        numbers = [int(_dicom(path, pixels=False).get("InstanceNumber") or 0) for path in dicom]
        ordered = tuple(path for _, path in sorted(zip(numbers, dicom, strict=True)))
        first = _dicom_frames(ordered[0])
        return ImageStack(place, "dicom folder", len(ordered), (first.shape[2], first.shape[1]), ordered)
    files = image_files(place)
    if files and all(path.suffix.lower() in TIFF for path in files):
        shape = tifffile.imread(files[0]).shape
        return ImageStack(place, "tiff folder", len(files), (int(shape[1]), int(shape[0])), tuple(files))
    if not files:
        raise InputError(f"{place}: no image in this folder")
    first = read_image(files[0])
    return ImageStack(place, "video", len(files), (first.shape[1], first.shape[0]))


def _dicom(path: Path, *, pixels: bool) -> Any:
    try:
        return pydicom.dcmread(path, stop_before_pixels=not pixels)
    except (pydicom.errors.InvalidDicomError, OSError):
        raise InputError(f"{path}: damaged or not a DICOM file") from None


def _dicom_frames(path: Path) -> NDArray[Any]:
    """Return (T, H, W) frames of a DICOM file, MONOCHROME1 (bright = absorbing) turned to dark beads."""
    data = _dicom(path, pixels=True)
    if "PixelData" not in data:
        raise InputError(f"{path}: this DICOM file holds no image")
    values = np.asarray(data.pixel_array)
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or data.get("SamplesPerPixel", 1) != 1:
        raise InputError(f"{path}: wanted grey frames, got an array of shape {values.shape}")
    bits = int(data.get("BitsStored", 8 * values.dtype.itemsize))
    if values.dtype.kind == "i":
        values = (values.astype(np.int32) - values.min()).astype(np.uint16)
    if data.get("PhotometricInterpretation") == "MONOCHROME1":
        values = (2**bits - 1 - values.astype(np.int32)).astype(values.dtype)
    if values.dtype != np.uint8:
        # Use all of sixteen bits, so that grey values mean the same share of full scale whatever the depth.
        values = (values.astype(np.uint32) << (16 - bits)).astype(np.uint16) if bits < 16 else values.astype(np.uint16)
    return np.ascontiguousarray(values)


def _grey(image: NDArray[Any], source: Path) -> NDArray[Any]:
    if image.ndim == 3 and image.shape[2] in (3, 4):
        image = np.rint(image[..., :3].mean(axis=2)).astype(image.dtype)
    if image.ndim != 2 or image.dtype not in (np.uint8, np.uint16):
        raise InputError(f"{source}: wanted 8- or 16-bit images, got {image.dtype} of shape {image.shape}")
    return np.ascontiguousarray(image)
