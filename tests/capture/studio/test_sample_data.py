"""The sample recordings that ship: whole, named, within their size, and with truth that agrees with the rig."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from capture.recordings.recording import load_recording
from capture.recordings.video import probe
from capture.studio.scene.truth import load_truth

SAMPLES = {"mouse": (8, 100, 120.0), "human": (4, 100, 60.0), "rat_xray": (4, 60, 200.0)}


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_whole(name: str, sample_data: Path) -> None:
    cameras, frames, rate = SAMPLES[name]
    recording = load_recording(sample_data / name)
    assert recording.name == name and recording.rate_hz == rate
    assert recording.rig is not None and len(recording.rig) == cameras
    assert all(probe(footage.source).frames == frames for footage in recording.footage)
    truth = load_truth(sample_data / name)
    assert len(truth.joints.positions) == frames
    # the root joint is in front of every camera and near the middle of its field
    root = recording.rig.project(truth.joints.positions[:, 0])
    size = np.array([camera.size for camera in recording.rig])[:, None]
    assert ((root > -0.5 * size) & (root < 1.5 * size)).all()


def test_samples_stay_small(sample_data: Path) -> None:
    total = sum(file.stat().st_size for file in sample_data.rglob("*") if file.is_file())
    assert total < 40e6
