"""A small recording with all stages but the report done, to be mended."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_recordings import cut_recording

from capture.recordings.recording import load_recording, save_recording
from vivarig.pipeline import RunOptions, run_recording

FRAMES = 12


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Left as it is."""
    place = tmp_path_factory.mktemp("mending") / "r"
    # size given, no texture: quicker, and nothing of it is what is tested here
    settings = {"track": {"scale": 1.06, "adapt": False, "texture": False}}
    save_recording(replace(cut_recording(place, frames=FRAMES, cameras=3), settings=settings))
    for last in ("skeleton", "hull"):
        run_recording(load_recording(place), RunOptions(last, workers=1))
    return place


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """To be changed."""
    return Path(shutil.copytree(finished, tmp_path / "r"))
