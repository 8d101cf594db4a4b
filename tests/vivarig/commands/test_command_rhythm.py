"""``vivarig rhythm`` on silhouettes written for it: no video and no rig is opened."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from capture.recordings.masks import create_masks
from tests.capture.test_rhythm import walker
from vivarig.cli import main


def write_walk(place: Path, frames: int) -> None:
    """Write a recording of two cameras of which only the silhouettes exist: 1.5 strides a second."""
    place.mkdir(exist_ok=True)
    text = 'name = "a"\nrate_hz = 60.0\nsubject = "human"\n'
    for name in ("cam01", "cam02"):
        (place / f"{name}.mp4").write_bytes(b"never opened")
        text += f'[cameras.{name}]\nvideo = "{name}.mp4"\n'
    (place / "recording.toml").write_text(text)
    masks = walker(frames, 1.5 * np.arange(frames) / 60.0)
    size = (masks.shape[2], masks.shape[1])
    with create_masks(place / "results" / "silhouettes.h5", ["cam01", "cam02"], [size] * 2, frames, {}) as writer:
        for name in ("cam01", "cam02"):
            writer.write(name, 0, np.packbits(masks, axis=2), np.ones(frames, np.float32), np.zeros(frames, np.uint16))


def test_a_walk_is_told_from_its_silhouettes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_walk(tmp_path, 240)
    assert main(["rhythm", str(tmp_path), "--keys", "3", "--json", str(tmp_path / "rhythm.json")]) == 0
    said = capsys.readouterr().out
    assert "regular gait, 1.5" in said and "strides per second" in said
    found = json.loads((tmp_path / "rhythm.json").read_text())
    assert found["regular"] and found["stride_hz"] == pytest.approx(1.5, rel=0.01) and len(found["key_frames"]) == 3
