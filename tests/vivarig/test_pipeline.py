"""The pipeline: done once, redone where it must be, and the same bytes whatever happened on the way."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_recordings import cut_recording, files_of

from calibration.errors import InputError
from capture.recording import load_recording
from vivarig.cli import main
from vivarig.pipeline import RunOptions, run_recording

UNTIL = "hull"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording with its stages done, undisturbed."""
    place = tmp_path_factory.mktemp("runs") / "undisturbed"
    recording = cut_recording(place)
    run_recording(recording, RunOptions(UNTIL))
    return place


def fresh(finished: Path, tmp_path: Path, *, results: bool) -> Path:
    """Return a copy of the recording, with or without its results."""
    target = tmp_path / "copy"
    ignore = None if results else shutil.ignore_patterns("results")
    shutil.copytree(finished, target, ignore=ignore)
    return target


def statuses(folder: Path, **options: object) -> list[str]:
    outcomes = run_recording(load_recording(folder), RunOptions(UNTIL, **options))  # type: ignore[arg-type]
    return [outcome.status for outcome in outcomes]


def test_a_second_run_keeps_everything_and_brought_files_stay(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    before = files_of(place)
    assert statuses(place) == ["kept", "kept"], "a copied folder is still done"
    assert files_of(place) == before


def test_changed_options_redo_only_what_depends_on_them(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    assert statuses(place, stage_options={"hull": {"voxel": "4"}}) == ["kept", "done"]
    assert statuses(place, stage_options={"silhouettes": {"shadow-floor": "0.6"}, "hull": {"voxel": "4"}})[0] == "done"


def test_the_number_of_workers_changes_nothing(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=False)
    statuses(place, workers=1)
    assert files_of(place) == files_of(finished)


def test_a_damaged_result_is_redone(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    damaged = place / "results" / "hull.h5"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    told: list[tuple[str, str]] = []
    run_recording(load_recording(place), RunOptions(UNTIL), lambda stage, text: told.append((stage, text)))
    assert ("hull", "its result was changed or damaged since: doing it again") in told
    assert files_of(place) == files_of(finished)


def test_unknown_stages_and_options(finished: Path) -> None:
    with pytest.raises(InputError, match="not a stage"):
        run_recording(load_recording(finished), RunOptions("hul"))
    with pytest.raises(InputError, match="did you mean 'voxel'"):
        run_recording(load_recording(finished), RunOptions(UNTIL, {"hull": {"voxl": "2"}}))


def _run(folder: str) -> None:
    run_recording(load_recording(folder), RunOptions(UNTIL))


def test_thirty_kills(finished: Path, tmp_path: Path) -> None:
    """Killed at random moments and started again each time, the last run leaves the bytes of an undisturbed one."""
    place = fresh(finished, tmp_path, results=False)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vivarig.pipeline", "vivarig.commands.silhouettes", "vivarig.commands.hull"])
    rng = random.Random(7)
    start = time.monotonic()
    process = context.Process(target=_run, args=(str(fresh(finished, tmp_path / "timing", results=False)),))
    process.start()
    process.join()
    longest = time.monotonic() - start
    killed = 0
    while killed < 30:
        process = context.Process(target=_run, args=(str(place),))
        process.start()
        process.join(rng.uniform(0, longest))
        if process.is_alive():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        else:
            shutil.rmtree(place / "results")  # it got through: begin again
        killed += 1
    _run(str(place))
    left = {name for name in files_of(place) if not name.startswith("results/.")}
    assert left == set(files_of(finished))
    found, expected = files_of(place), files_of(finished)
    assert all(found[name] == expected[name] for name in expected)


def test_a_full_disk_is_said_and_recovered_from(finished: Path, tmp_path: Path) -> None:
    """A limit on file size stands in for the full disk: the write fails at the same place, by the system."""
    place = fresh(finished, tmp_path, results=False)
    program = "import sys; from vivarig.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", program, "run", str(place), "--until", UNTIL]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = subprocess.run(words, preexec_fn=limited, capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr and "make room and run again" in result.stderr
    assert not (place / "results" / "hull.h5").exists()
    assert main(["run", str(place), "--until", UNTIL]) == 0
    assert {k: v for k, v in files_of(place).items() if "/." not in k} == files_of(finished)


def test_one_failing_recording_does_not_stop_the_rest(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = fresh(finished, tmp_path, results=True)
    assert main(["run", str(tmp_path / "nothing"), str(place), "--until", UNTIL]) == 1
    out = capsys.readouterr()
    assert "no such file" in out.out and "kept from before" in out.out
    assert "failed" in out.err
