"""Bit-packed storage and masks that users bring."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import h5py
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from capture.recordings.coco import decode_rle, encode_rle
from capture.recordings.masks import (
    LikeliestMasks,
    MaskFlag,
    _areas,
    create_masks,
    mask_cameras,
    read_agreement,
    read_flags,
    read_masks,
    user_masks,
)


def write(path: Path, masks: dict[str, np.ndarray]) -> None:
    sizes = [(mask.shape[2], mask.shape[1]) for mask in masks.values()]
    count = len(next(iter(masks.values())))
    with create_masks(path, list(masks), sizes, count, {"model": "plate"}) as writer:
        for start in range(0, count, 3):
            for name, mask in masks.items():
                part = mask[start : start + 3]
                flags = np.full(len(part), MaskFlag.EMPTY, dtype=np.uint16)
                agreement = np.full(len(part), 0.5, dtype=np.float32)
                writer.write(name, start, np.packbits(part, axis=-1), agreement, flags)


def test_the_likeliest_mask_is_without_the_programs_own_margin(tmp_path: Path) -> None:
    bare = np.zeros((40, 50), dtype=np.uint8)
    bare[10:25, 12:30] = 1
    bare[0:10, 20:23] = 1  # runs out of the picture, where nothing is taken off
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (9, 9))
    grown = cv2.dilate(bare, disc)[None].astype(bool)
    for margin in ({}, {"own_margin_px": 4}):
        path = tmp_path / f"{len(margin)}.h5"
        with create_masks(path, ["a"], [(50, 40)], 1, {"cameras": {"a": margin}}) as writer:
            writer.write("a", 0, np.packbits(grown, axis=-1), np.ones(1, np.float32), np.zeros(1, np.uint16))
        with h5py.File(path) as file:
            found = LikeliestMasks(file)("a", 0)
        wanted = cv2.erode(grown[0].view(np.uint8), disc).astype(bool) if margin else grown[0]
        assert (found == wanted).all() and found[0, 20:23].all() and (found | ~bare.astype(bool)).all()


def test_numbers_of_masks_lie_at_their_frames_in_whatever_order_these_come(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    masks, file = rng.random((7, 6, 16)) > 0.5, tmp_path / "silhouettes.h5"
    agreement, flags = rng.random(7).astype(np.float32), np.arange(7, dtype=np.uint16)
    with create_masks(file, ["a"], [(16, 6)], 7, {}) as writer:
        for start, stop in ((4, 6), (0, 2), (2, 3), (6, 7)):
            here, told = slice(start, stop), flags[start:stop].copy()
            writer.write("a", start, np.packbits(masks[here], axis=-1), agreement[here], told)
            told[:] = 99  # what was written does not change with what it was read from
    assert (read_masks(file, "a")[[0, 1, 2, 4, 5, 6]] == masks[[0, 1, 2, 4, 5, 6]]).all()
    assert read_flags(file)[:, 0].tolist() == [0, 1, 2, 0, 4, 5, 6]
    wanted = np.where(np.arange(7) == 3, np.nan, agreement)
    np.testing.assert_array_equal(read_agreement(file)[:, 0], wanted.astype(np.float32))


def test_saved_masks_load_in_any_order(tmp_path: Path, rng: np.random.Generator) -> None:
    # Widths that are no multiple of eight, and camera names that a string sort would reorder.
    masks = {"cam10": rng.random((7, 5, 13)) > 0.5, "cam2": rng.random((7, 6, 16)) > 0.5}
    file = tmp_path / "silhouettes.h5"
    write(file, masks)
    assert mask_cameras(file) == (["cam10", "cam2"], 7)
    for name, mask in masks.items():
        assert (read_masks(file, name) == mask).all()
        assert (read_masks(file, name, [6, 0, 3]) == mask[[6, 0, 3]]).all()
        assert (read_masks(file, name, slice(2, 5)) == mask[2:5]).all()
        assert read_masks(file, name, 4).shape == (1, *mask.shape[1:])
    assert read_agreement(file).shape == (7, 2) and (read_flags(file) == MaskFlag.EMPTY).all()


def test_same_masks_same_bytes(tmp_path: Path, rng: np.random.Generator) -> None:
    masks = {"left": rng.random((4, 9, 11)) > 0.5}
    write(tmp_path / "a.h5", masks)
    write(tmp_path / "b.h5", masks)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_wrong_camera_and_frame_say_what_there_is(tmp_path: Path, rng: np.random.Generator) -> None:
    file = tmp_path / "silhouettes.h5"
    write(file, {"left": rng.random((4, 9, 11)) > 0.5})
    with pytest.raises(InputError, match="no camera 'lfet'; did you mean 'left'"):
        read_masks(file, "lfet")
    with pytest.raises(InputError, match=r"frame 4 is outside 0\.\.3"):
        read_masks(file, "left", [4])
    with pytest.raises(InputError, match="run `vivarig silhouettes` first"):
        read_masks(tmp_path / "none.h5", "left")


def test_run_lengths_round_trip(rng: np.random.Generator) -> None:
    for mask in (rng.random((9, 7)) > 0.5, np.zeros((3, 4), bool), np.ones((3, 4), bool)):
        assert (decode_rle(encode_rle(mask)) == mask).all()


def test_compressed_run_lengths() -> None:
    # COCO's example of the form: counts [3, 2, 4, 1, 2] of a 4 x 3 image, 5 bits per character from '0' on;
    # from the fourth number on differences to the number two back: 3 2 4 (1 - 2 = -1) (2 - 4 = -2).
    text = "324" + chr(48 + 0x1F) + chr(48 + 0x1E)
    plain = decode_rle({"size": [4, 3], "counts": [3, 2, 4, 1, 2]})
    assert (decode_rle({"size": [4, 3], "counts": text}) == plain).all()


def test_bad_run_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="sum to 5, the image has 2 x 2"):
        decode_rle({"size": [2, 2], "counts": [5]})
    with pytest.raises(InputError, match="wanted 'size'"):
        decode_rle({"counts": [4]})


def test_user_masks_from_pictures_and_coco(tmp_path: Path, rng: np.random.Generator) -> None:
    masks = [np.zeros((12, 16), bool) for _ in range(11)]
    for index, mask in enumerate(masks):
        mask[2 : 6 + index % 3, 3:9] = True
    folder = tmp_path / "pictures"
    folder.mkdir()
    for index, mask in enumerate(masks):  # names that sort wrongly as text: 10 before 2
        cv2.imwrite(str(folder / f"mask_{index}.png"), mask.astype(np.uint8) * (1 if index % 2 else 255))
    assert all((a == b).all() for a, b in zip(user_masks(folder, 11, (16, 12)), masks, strict=True))
    images = [{"id": index, "height": 12, "width": 16} for index in range(11)]
    notes = [{"image_id": index, "segmentation": encode_rle(mask)} for index, mask in enumerate(masks)]
    coco = tmp_path / "masks.json"
    coco.write_text(json.dumps({"images": images, "annotations": notes}))
    assert all((a == b).all() for a, b in zip(user_masks(coco, 11, (16, 12)), masks, strict=True))
    # A polygon in COCO's coordinates: corners of pixels.
    notes = [{"image_id": 0, "segmentation": [[3, 2, 9, 2, 9, 6, 3, 6]]}]
    coco.write_text(json.dumps({"images": images[:1], "annotations": notes}))
    polygon = next(user_masks(coco, 1, (16, 12)))
    assert polygon[2:6, 3:9].all() and polygon.sum() <= 5 * 7
    with pytest.raises(InputError, match="11 masks, the recording has 12 frames"):
        list(user_masks(folder, 12, (16, 12)))
    with pytest.raises(InputError, match="mask 0 is 16 x 12 px, the camera 20 x 12"):
        next(user_masks(folder, 3, (20, 12)))


@pytest.mark.parametrize("shape", [(3, 7, 5), (2, 48, 8), (1, 3, 2), (2, 11, 13)])
def test_areas_of_packed_masks(shape: tuple[int, int, int], rng: np.random.Generator) -> None:
    packed = rng.integers(0, 256, shape).astype(np.uint8)
    np.testing.assert_array_equal(_areas(packed), np.unpackbits(packed, axis=2).sum(axis=(1, 2)))
