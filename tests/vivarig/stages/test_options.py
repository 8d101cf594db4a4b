"""The options of the stages: declared once, checked where they are given, whichever way they come."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path

import pytest

import vivarig
from calibration.foundation.errors import InputError
from capture.recordings.recording import Recording, load_recording, save_recording
from vivarig.commands.stage_arguments import add_options, options_from
from vivarig.stages.options import (
    STAGE_OPTIONS,
    HullOptions,
    SilhouetteOptions,
    StageOptions,
    TrackOptions,
    changed,
    own_options,
)


@pytest.mark.parametrize("kind", STAGE_OPTIONS.values(), ids=list(STAGE_OPTIONS))
def test_every_option_is_an_argument_with_the_same_default(kind: type[StageOptions]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, kind)
    assert options_from(parser.parse_args([]), kind()) == kind()
    assert {one.name for one in fields(kind)} <= set(vars(parser.parse_args([])))


def test_the_three_ways_give_the_same() -> None:
    parser = argparse.ArgumentParser()
    add_options(parser, TrackOptions)
    typed = TrackOptions(scale=1.06, adapt=False, start=3)
    words = options_from(parser.parse_args(["--scale", "1.06", "--no-adapt", "--start", "3"]), TrackOptions())
    told = changed(TrackOptions(), {"scale": "1.06", "no-adapt": "true", "start": 3}, said="--set track")
    table = changed(TrackOptions(), {"scale": 1.06, "adapt": False, "start": 3}, said="[track]")
    assert typed == words == told == table


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (HullOptions, {"voxel_mm": -1.0}, "voxel_mm: wanted a number above 0, got '-1.0'"),
        (HullOptions, {"engine": "magic"}, "engine: wanted one of implicit, exact, got 'magic'"),
        (TrackOptions, {"scale": 9.0}, "scale: must lie between 0.2 and 5, got 9.0"),
        (TrackOptions, {"texture": "yes"}, "texture: wanted true or false, got 'yes'"),
        (SilhouetteOptions, {"start": 1.5}, "start: wanted a whole number of 0 or more, got '1.5'"),
    ],
)
def test_a_value_out_of_bounds_is_refused_in_python_too(
    kind: type[StageOptions], values: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind(**values)


def test_words_that_mean_nothing_are_refused() -> None:
    with pytest.raises(InputError, match=r"--set hull\.voxl: no such option; did you mean 'voxel'"):
        changed(HullOptions(), {"voxl": "2"}, said="--set hull")
    with pytest.raises(InputError, match=r"--set track\.no-texture is a switch"):
        changed(TrackOptions(), {"no-texture": "maybe"}, said="--set track")


def test_settings_live_in_the_recording(tmp_path: Path) -> None:
    (tmp_path / "scans").mkdir()
    settings = {"track": {"texture": False, "smooth": 2}, "hull": {"voxel": 2.5}}
    save_recording(Recording(tmp_path, "m", 25.0, "mouse", None, (), tmp_path / "scans", settings=settings))
    back = load_recording(tmp_path)
    assert own_options(back, TrackOptions) == TrackOptions(texture=False, smooth=2)
    assert own_options(back, HullOptions) == HullOptions(voxel_mm=2.5)
    (tmp_path / "recording.toml").write_text('rate_hz = 25.0\nmeshes = "scans"\n[track]\ntextur = false\n')
    with pytest.raises(InputError, match=r"recording.toml: \[track\]\.textur: no such option"):
        own_options(load_recording(tmp_path), TrackOptions)


def test_the_package_gives_what_it_lists() -> None:
    assert all(getattr(vivarig, name) is not None for name in vivarig.__all__)
    assert {"run", "export", "HullOptions", "load_results"} <= set(vivarig.__all__)
