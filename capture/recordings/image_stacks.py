"""Image stacks of X-ray machines: TIFF (one file or many), DICOM, videos, folders of images, as grey frames.

Sixteen-bit data stay sixteen-bit. Phantom .cine files have no maintained free reader for Python: convert them to TIFF
with the camera maker's program; the message says so.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import tifffile
from numpy.typing import NDArray

from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError
from capture.recordings.video import image_files, probe, read_frames, read_image

__all__ = ["ImageStack", "open_stack"]

TIFF = (".tif", ".tiff")
DICOM = (".dcm", ".dicom")
_OF_TIFF = (tifffile.TiffFileError,)
_OF_DICOM = (pydicom.errors.InvalidDicomError, pydicom.errors.BytesLengthException)
_LARGEST_MB = 4000
_LARGEST_IMAGE_MB = 400


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
                    with reading(self.source, "a TIFF file", also=_OF_TIFF):
                        page = file.pages[k]
                        _check_size(page.nbytes, self.source)
                        image = page.asarray()
                    yield _grey(image, self.source)
        elif self.kind == "dicom":
            yield from _dicom_frames(self.source)[start:end]
        else:
            for path in self.files[start:end]:
                if self.kind == "dicom folder":
                    yield _dicom_frames(path)[0]
                else:
                    yield _grey(_tiff(path), path)


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
        require_file(place)
        with reading(place, "a TIFF file", also=_OF_TIFF), tifffile.TiffFile(place) as file:
            shape, count = file.pages[0].shape, len(file.pages)
            _check_size(file.pages[0].nbytes, place)
            return ImageStack(place, "tiff", count, (int(shape[1]), int(shape[0])))
    if suffix in DICOM:
        frames = _dicom_frames(place)
        return ImageStack(place, "dicom", len(frames), (frames.shape[2], frames.shape[1]))
    info = probe(place)
    return ImageStack(place, "video", info.frames, info.size)


def _open_folder(place: Path) -> ImageStack:
    dicom = sorted(path for path in place.iterdir() if path.suffix.lower() in DICOM)
    if dicom:
        # Instance numbers, not names, give the order in time.
        numbers = [_instance_number(path) for path in dicom]
        ordered = tuple(path for _, path in sorted(zip(numbers, dicom, strict=True)))
        first = _dicom_frames(ordered[0])
        return ImageStack(place, "dicom folder", len(ordered), (first.shape[2], first.shape[1]), ordered)
    files = image_files(place)
    if files and all(path.suffix.lower() in TIFF for path in files):
        shape = _grey(_tiff(files[0]), files[0]).shape
        return ImageStack(place, "tiff folder", len(files), (int(shape[1]), int(shape[0])), tuple(files))
    if not files:
        raise InputError(f"{place}: no image in this folder")
    first = read_image(files[0])
    return ImageStack(place, "video", len(files), (first.shape[1], first.shape[0]))


def _dicom(path: Path, *, pixels: bool) -> Any:
    require_file(path, most_mb=_LARGEST_MB)
    with reading(path, "a DICOM file", also=_OF_DICOM), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pydicom.dcmread(path, stop_before_pixels=not pixels)


def _instance_number(path: Path) -> int:
    with reading(path, "a DICOM file", also=_OF_DICOM):
        return int(_dicom(path, pixels=False).get("InstanceNumber") or 0)


def _tiff(path: Path) -> NDArray[Any]:
    require_file(path)
    with reading(path, "a TIFF file", also=_OF_TIFF), tifffile.TiffFile(path) as file:
        _check_size(file.pages[0].nbytes, path)
        return np.asarray(file.pages[0].asarray())


def _check_size(count: int, path: Path) -> None:
    """Refuse an image that declares more than any detector has; it may be a few bytes packed."""
    if count > 1e6 * _LARGEST_IMAGE_MB:
        raise InputError(
            f"{path}: an image of {count / 1e6:.0f} MB; the largest that is read has {_LARGEST_IMAGE_MB} MB"
        )


def _dicom_frames(path: Path) -> NDArray[Any]:
    """Return (T, H, W) frames of a DICOM file, MONOCHROME1 (bright = absorbing) turned to dark beads."""
    data = _dicom(path, pixels=True)
    if "PixelData" not in data:
        raise InputError(f"{path}: this DICOM file holds no image")
    with reading(path, "a DICOM file with images", also=_OF_DICOM), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        declared = int(data.Rows) * int(data.Columns) * int(data.get("NumberOfFrames") or 1)
        _check_size(declared * 2 // 64, path)  # up to 64 images of the largest size in one file
        values = np.asarray(data.pixel_array)
        bits = int(data.get("BitsStored") or 8 * values.dtype.itemsize)
        grey = int(data.get("SamplesPerPixel") or 1) == 1
    if not 1 <= bits <= 16:
        raise InputError(f"{path}: wanted up to 16 bits per pixel, got {bits}")
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or not grey or values.dtype.kind not in "iu" or not values.size:
        raise InputError(f"{path}: wanted grey frames, got an array of shape {values.shape}")
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
