"""Silhouettes put together from parts: copied packed as they are, or through their pixels, the same comes out."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.hdf5_files import copy_chunks
from calibration.foundation.spans import Span
from capture.recordings.mask_copying import copy_masks
from capture.recordings.masks import create_masks, edge_band


def part(path: Path, masks: np.ndarray, rng: np.random.Generator) -> None:
    """Write masks (n, H, W) of one camera with mattes and outlines."""
    count, height, width = masks.shape
    with create_masks(path, ["a"], [(width, height)], count, {}, matte=True) as writer:
        agreement = rng.random(count).astype(np.float32)
        mattes = [rng.integers(0, 255, np.count_nonzero(edge_band(mask))).astype(np.uint8) for mask in masks]
        writer.write("a", 0, np.packbits(masks, axis=-1), agreement, np.arange(count, dtype=np.uint16), mattes)
        writer.write_outlines("a", 0, [rng.integers(0, 9, (k % 3, 2)).astype(float) for k in range(count)])


def content(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {key: value[()] for key, value in file["cameras/a"].items()}


def test_parts_are_copied_as_they_are(tmp_path: Path, rng: np.random.Generator) -> None:
    masks = [rng.random((count, 12, 21)) > 0.5 for count in (3, 20)]
    for index, some in enumerate(masks):
        part(tmp_path / f"{index}.h5", some, rng)
    pieces = [(tmp_path / "0.h5", Span(0, 3)), (tmp_path / "1.h5", Span(2, 19))]
    area = copy_masks(pieces, tmp_path / "packed.h5", {})
    again = copy_masks(pieces, tmp_path / "pixels.h5", {}, change=lambda _, __, mask: mask)
    packed, pixels = content(tmp_path / "packed.h5"), content(tmp_path / "pixels.h5")
    assert packed.keys() == pixels.keys() >= {"masks", "area", "matte", "outline", "outline_start"}
    for key, values in packed.items():
        np.testing.assert_array_equal(values, pixels[key])
    whole = np.concatenate([masks[0], masks[1][2:19]])
    np.testing.assert_array_equal(area[:, 0], whole.sum(axis=(1, 2)))
    np.testing.assert_array_equal(area, again)
    np.testing.assert_array_equal(packed["area"], area[:, 0])


def test_chunks_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        one = file.create_dataset("one", (8, 3), "f4", chunks=(4, 3), compression="gzip")
        other = file.create_dataset("other", (8, 3), "f4", chunks=(4, 3))
        with pytest.raises(ValueError, match="do not fit"):
            copy_chunks(one, 0, other, 0, 8)
        with pytest.raises(ValueError, match="do not fit"):
            copy_chunks(one, 2, one, 4, 4)
