"""Recording folders: read, written, and refused with the key that is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from example_rigs import ring

from calibration.cameras.rig import save_rig
from calibration.foundation.errors import InputError
from capture.recordings.coco import encode_rle
from capture.recordings.masks import MaskFlag, read_masks
from capture.recordings.recording import Footage, Recording, WheelPlace, load_recording, save_recording
from capture.silhouettes import segment_recording


def folder(place: Path, text: str) -> Path:
    """Make a recording folder of two cameras around a text."""
    (place / "a.mp4").write_bytes(b"")
    (place / "frames").mkdir()
    (place / "recording.toml").write_text(text)
    return place


GOOD = """name = "m7"
rate_hz = 120
subject = "mouse"
[cameras.cam2]
video = "a.mp4"
background = "frames"
[cameras.cam1]
images = "frames"
kind = "xray"
offset = 1.5
"""


WHEEL = "wheel = {centre = [0, 0, 75], axis = [0, 1, 0], radius = 62.5}\n"


def test_a_wheel_is_read_and_written(tmp_path: Path) -> None:
    recording = load_recording(folder(tmp_path, GOOD.replace("[cameras.cam2]", WHEEL + "[cameras.cam2]")))
    assert recording.wheel == WheelPlace((0.0, 0.0, 75.0), (0.0, 1.0, 0.0), 62.5)
    save_recording(recording)
    assert load_recording(tmp_path).wheel == recording.wheel


def test_read_write_read(tmp_path: Path) -> None:
    save_rig(ring(3), folder(tmp_path, GOOD) / "rig.toml")
    recording = load_recording(tmp_path)
    assert recording.rate_hz == 120 and recording.subject == "mouse"
    assert recording.rig is not None and recording.rig.names == ("cam2", "cam1"), "the recording's order, not the rig's"
    assert recording.footage[1].offset_frames == 1.5 and recording.of_kind("xray") == (1,)
    save_recording(recording)
    again = load_recording(tmp_path)
    assert again.footage == recording.footage and again.name == "m7"


def test_without_a_rig_it_says_how_to_get_one(tmp_path: Path) -> None:
    recording = load_recording(folder(tmp_path, GOOD))
    assert recording.rig is None
    with pytest.raises(InputError, match="vivarig calibrate"):
        recording.need_rig()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("rate_hz = 120", "rate_hz = -1"), "rate_hz must be a number above 0, got -1"),
        (("rate_hz = 120\n", ""), "rate_hz is missing"),
        (("rate_hz", "rate"), "rate is not a known key; did you mean 'rate_hz'"),
        (('video = "a.mp4"', 'video = "b.mp4"'), r"\[cameras.cam2\] video: no such file or folder"),
        (('video = "a.mp4"', 'video = "a.mp4"\nimages = "frames"'), "either video or images"),
        (('kind = "xray"', 'kind = "x-ray"'), "kind must be one of light, xray"),
        (("[cameras.cam2]", "[camera.cam2]"), "camera is not a known key"),
        (("[cameras.cam2]", WHEEL.replace("0, 1, 0", "0, 0, 1") + "[cameras.cam2]"), "more level than upright, got"),
        (("[cameras.cam2]", WHEEL.replace("62.5", "0") + "[cameras.cam2]"), "radius must be a number above 0"),
        (("[cameras.cam2]", "belt = [1, 0]\n" + WHEEL + "[cameras.cam2]"), "belt and wheel: the ground is one of them"),
    ],
)
def test_mistakes_are_named(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        load_recording(folder(tmp_path, GOOD.replace(*change)))


def test_a_camera_that_the_rig_lacks(tmp_path: Path) -> None:
    save_rig(ring(1), folder(tmp_path, GOOD) / "rig.toml")
    with pytest.raises(InputError, match=r"camera 'cam2' is not in rig.toml; the rig has cam1"):
        load_recording(tmp_path)
    with pytest.raises(InputError, match="a recording is a folder with recording"):
        load_recording(tmp_path / "frames")


def test_footage_outside_the_folder_keeps_its_path(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere.mp4"
    other.write_bytes(b"")
    place = tmp_path / "r"
    place.mkdir()
    recording = Recording(place, "r", 30.0, None, None, (Footage("c", other),))
    save_recording(replace(recording))
    assert load_recording(place).footage[0].source == other


def test_masks_alone_make_a_recording(tmp_path: Path) -> None:
    masks = np.zeros((5, 12, 16), dtype=bool)
    for index in range(5):
        masks[index, 3:8, 2 + index : 9 + index] = True
    (tmp_path / "a").mkdir()
    for index, mask in enumerate(masks):
        cv2.imwrite(str(tmp_path / "a" / f"{index}.png"), 255 * mask.view(np.uint8))
    images = [{"id": index, "width": 16, "height": 12} for index in range(5)]
    notes = [{"image_id": index, "segmentation": encode_rle(mask)} for index, mask in enumerate(masks)]
    (tmp_path / "b.json").write_text(json.dumps({"images": images, "annotations": notes}))
    text = 'rate_hz = 30\n[cameras.a]\nmasks = "a"\n[cameras.b]\nmasks = "b.json"\n'
    (tmp_path / "recording.toml").write_text(text)
    recording = load_recording(tmp_path)
    assert not any(one.has_images for one in recording.footage)
    report = segment_recording(recording)
    assert report.models == ("masks", "masks")
    for name in ("a", "b"):
        assert (read_masks(recording.results / "silhouettes.h5", name) == masks).all()
    segment_recording(recording, start=2)  # a part is read from its first frame on
    for name in ("a", "b"):
        assert (read_masks(recording.results / "silhouettes.h5", name) == masks[2:]).all()
    late = replace(recording.footage[1], offset_frames=-2.0)  # its clock began two frames after the other's
    report = segment_recording(replace(recording, footage=(recording.footage[0], late)))
    assert (report.flags[:, 1] & MaskFlag.NO_FRAME).astype(bool).tolist() == [True, True, False, False, False]
    assert (read_masks(recording.results / "silhouettes.h5", "b")[2:] == masks[:3]).all()
    save_recording(recording)
    assert load_recording(tmp_path).footage == recording.footage
    with pytest.raises(InputError, match="either video or images, or masks alone"):
        (tmp_path / "recording.toml").write_text('rate_hz = 30\n[cameras.a]\nbackground = "a"\n')
        load_recording(tmp_path)
