"""Stages by themselves: one command at a time on the same results, and what they make counts for `vivarig run`."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from small_recordings import cut_recording

from capture.recordings.recording import load_recording
from vivarig.cli import main
from vivarig.jobs.kept_objects import is_ours, load_object, save_object
from vivarig.jobs.lock import results_lock
from vivarig.pipeline import RunOptions, run_recording


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording whose silhouettes were made by their own command, with an option."""
    folder = tmp_path_factory.mktemp("single") / "small"
    cut_recording(folder)
    assert main(["silhouettes", str(folder), "--shadow-floor", "0.6"]) == 0
    return folder


def test_what_a_single_command_made_is_kept_by_a_run_with_its_options(place: Path) -> None:
    told: list[tuple[str, str]] = []
    options = RunOptions("silhouettes", workers=1)
    outcomes = run_recording(load_recording(place), options, lambda stage, text: told.append((stage, text)))
    assert [outcome.status for outcome in outcomes] == ["kept"]
    assert told[0][1].startswith("with shadow_floor=0.6, as given for it before")
    assert main(["hull", str(place)]) == 0
    assert [one.status for one in run_recording(load_recording(place), RunOptions("hull", workers=1))] == ["kept"] * 2


@pytest.mark.parametrize("verb", ["silhouettes", "hull", "track", "skeleton", "report", "run", "xray triangulate"])
def test_no_command_that_writes_results_works_beside_another(
    place: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    left = place / "results" / "parts" / "track" / "kept by the other"
    left.parent.mkdir(parents=True, exist_ok=True)
    left.write_text("work")
    with results_lock(place / "results"):
        assert main([*verb.split(), str(place)]) == 2
    said = capsys.readouterr().err
    assert "another command is working on this recording" in said and "Traceback" not in said
    assert left.read_text() == "work"
    left.unlink()


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.mkdir, (str(self.path), 0o700)


def test_kept_objects_of_strangers_are_not_opened(place: Path, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    kept = place / "results" / "parts" / "silhouettes" / "prepared.kept"
    for content in (pickle.dumps(Trap(sprung)), bytes(32) + pickle.dumps(Trap(sprung))):
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
        (place / "results" / "silhouettes.h5").unlink()
        run_recording(load_recording(place), RunOptions("silhouettes", workers=1))
        assert not sprung.exists()


def test_kept_objects_come_back_unharmed_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.kept"
    save_object(path, {"answer": 42}, "inputs")
    assert is_ours(path, "inputs") and load_object(path) == {"answer": 42}
    assert not is_ours(path, "other inputs") and not is_ours(tmp_path / "none", "inputs")
    path.rename(tmp_path / "b.kept")
    assert not is_ours(tmp_path / "b.kept", "inputs"), "another step's"
    content = bytearray((tmp_path / "b.kept").read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert not is_ours(path, "inputs")


def test_a_result_removed_during_the_run_is_said(place: Path) -> None:
    from calibration.foundation.errors import InputError

    def remove(stage: str, text: str) -> None:
        if stage == "hull":
            (place / "results" / "silhouettes.h5").unlink(missing_ok=True)

    with pytest.raises(InputError, match="silhouettes"):
        run_recording(load_recording(place), RunOptions("hull", workers=1, again=("hull",)), remove)
