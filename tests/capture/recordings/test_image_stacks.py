"""Image stacks: the same frames whatever the container."""

from __future__ import annotations

import cv2
import numpy as np
import pydicom
import pytest
import tifffile
from pydicom.dataset import FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

from calibration.foundation.errors import InputError
from capture.recordings.image_stacks import open_stack
from capture.recordings.video import write_video


@pytest.fixture
def frames():
    return np.random.default_rng(0).integers(0, 256, (4, 48, 64)).astype(np.uint8)


def write_dicom(path, frames, bits, photometric="MONOCHROME2", number=1):
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["test"])
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    data.Rows, data.Columns = frames.shape[1:]
    data.NumberOfFrames = len(frames)
    data.SamplesPerPixel, data.PixelRepresentation = 1, 0
    data.BitsAllocated, data.BitsStored, data.HighBit = 8 * frames.dtype.itemsize, bits, bits - 1
    data.PhotometricInterpretation = photometric
    data.InstanceNumber = number
    data.PixelData = frames.tobytes()
    pydicom.dcmwrite(path, data, enforce_file_format=True)


def test_tiff_dicom_video_and_folders_agree(tmp_path, frames):
    tifffile.imwrite(tmp_path / "stack.tif", frames, photometric="minisblack")
    write_video(tmp_path / "film.avi", list(frames), 100.0, codec="ffv1")
    write_dicom(tmp_path / "film.dcm", frames, 8)
    (tmp_path / "png").mkdir()
    (tmp_path / "tif").mkdir()
    for k, frame in enumerate(frames):
        cv2.imwrite(str(tmp_path / "png" / f"f{k}.png"), frame)
        tifffile.imwrite(tmp_path / "tif" / f"f{k}.tif", frame)
    for name in ("stack.tif", "film.avi", "film.dcm", "png", "tif"):
        stack = open_stack(tmp_path / name)
        assert len(stack) == 4 and stack.size == (64, 48), name
        assert np.array_equal(np.stack(list(stack.read())), frames), name
        assert np.array_equal(next(stack.read(2, 3)), frames[2]), name


def test_sixteen_bits_stay_and_twelve_are_scaled(tmp_path):
    deep = np.random.default_rng(1).integers(0, 4096, (2, 32, 32)).astype(np.uint16)
    tifffile.imwrite(tmp_path / "deep.tif", deep, photometric="minisblack")
    assert np.array_equal(next(open_stack(tmp_path / "deep.tif").read()), deep[0])
    write_dicom(tmp_path / "deep.dcm", deep, 12)
    assert np.array_equal(next(open_stack(tmp_path / "deep.dcm").read()), deep[0] << 4)


def test_monochrome1_is_turned_and_folders_follow_instance_numbers(tmp_path, frames):
    write_dicom(tmp_path / "b.dcm", 255 - frames[:1], 8, "MONOCHROME1", number=1)
    write_dicom(tmp_path / "a.dcm", frames[1:2], 8, number=2)
    stack = open_stack(tmp_path)
    assert np.array_equal(np.stack(list(stack.read())), frames[:2])


def test_bad_files_are_said(tmp_path):
    with pytest.raises(InputError, match="no such"):
        open_stack(tmp_path / "none.tif")
    (tmp_path / "x.cine").write_bytes(b"CI")
    with pytest.raises(InputError, match="export it as TIFF"):
        open_stack(tmp_path / "x.cine")
    (tmp_path / "x.dcm").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a DICOM"):
        open_stack(tmp_path / "x.dcm")
    (tmp_path / "x.tif").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a TIFF"):
        open_stack(tmp_path / "x.tif")
