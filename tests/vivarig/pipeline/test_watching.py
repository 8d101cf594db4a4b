"""A folder that is watched: recordings are done once they have arrived, and again when they change."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.vivarig.commands.test_command_rhythm import write_walk
from vivarig.cli import main
from vivarig.console.status_page import RecordingStatus, write_status_page
from vivarig.jobs.lock import ResultsBusyError
from vivarig.pipeline import RunOptions, StageOutcome, watching
from vivarig.pipeline.watching import STATUS_PAGE, Watch
from vivarig.pipeline.workers import Inline


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the recordings that were run, instead of running them; one called bad fails."""
    seen: list[str] = []

    def run_recording(recording, options, tell, workers):  # type: ignore[no-untyped-def]
        seen.append(recording.folder.name)
        tell("silhouettes", "1 of 2")
        if recording.folder.name == "bad":
            raise OSError("no <space> left")
        return [StageOutcome("silhouettes", "done", 2.0, 2.0, None)]

    monkeypatch.setattr(watching, "run_recording", run_recording)
    return seen


def test_recordings_are_done_as_they_arrive(tmp_path: Path, runs: list[str]) -> None:
    said: list[str] = []
    watch = Watch(tmp_path, RunOptions(), Inline(), settle_s=3600.0, tell=said.append)
    assert not watch.look() and not runs
    for name in ("b_day", "bad"):
        write_walk(tmp_path / name, 8)
        for path in (tmp_path / name).rglob("*"):
            os.utime(path, (1e9, 1e9))  # copied with the times that they had
    assert watch.look() and not runs, "files that were written just now may not be complete"
    watch.clock = lambda: time.time() + 7200.0
    assert not watch.look() and runs == ["b_day", "bad"]
    assert not watch.look() and len(runs) == 2, "what is done stays done"
    (tmp_path / "b_day" / "results" / "new").write_text("results are not the user's files")
    assert not watch.look() and len(runs) == 2
    watch.clock = time.time
    (tmp_path / "b_day" / "edits.toml").write_text("")
    assert watch.look()
    watch.clock = lambda: time.time() + 7200.0
    watch.look()
    assert runs == ["b_day", "bad", "b_day"]
    page = (tmp_path / STATUS_PAGE).read_text()
    assert "1 done, 1 failed" in page and "no &lt;space&gt; left" in page and "2 s of work" in page
    assert any("silhouettes: 1 of 2" in line for line in said)


def test_files_of_a_clock_that_is_ahead_arrive_too(tmp_path: Path, runs: list[str]) -> None:
    write_walk(tmp_path / "a", 8)
    for path in (tmp_path / "a").rglob("*"):
        os.utime(path, (time.time() + 1e6,) * 2)
    watch = Watch(tmp_path, RunOptions(), Inline(), settle_s=3600.0, tell=lambda text: None)
    assert watch.look() and not runs
    watch.clock = lambda: time.time() + 3601.0
    assert not watch.look() and runs == ["a"]


def test_a_bug_or_a_lost_share_does_not_end_the_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_recording(recording, options, tell, workers):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError("nothing")

    monkeypatch.setattr(watching, "run_recording", run_recording)
    said: list[str] = []
    (tmp_path / "day").mkdir()
    write_walk(tmp_path / "day" / "a", 8)
    watch = Watch(tmp_path / "day", RunOptions(), Inline(), settle_s=0.0, tell=said.append)
    assert not watch.look() and watch.status["a"].state == "failed"
    assert "a bug of Vivarig: ZeroDivisionError: nothing" in watch.status["a"].text and "Traceback" in "".join(said)
    (tmp_path / "day").rename(tmp_path / "away")
    assert watch.look() and watch.look() and sum("waiting for" in line for line in said) == 1
    (tmp_path / "away").rename(tmp_path / "day")
    assert not watch.look()


def test_a_recording_that_another_command_holds_is_waited_for(tmp_path: Path, runs: list[str]) -> None:
    write_walk(tmp_path / "a", 8)
    real, held = watching.run_recording, [True, True]

    def run_recording(recording, *more):  # type: ignore[no-untyped-def]
        if held and held.pop():
            raise ResultsBusyError("held")
        return real(recording, *more)

    watching.run_recording = run_recording  # put back by the fixture
    said: list[str] = []
    watch = Watch(tmp_path, RunOptions(), Inline(), settle_s=0.0, tell=said.append)
    assert watch.look() and watch.look() and watch.status["a"].state == "busy" and not runs
    assert not watch.look() and runs == ["a"] and watch.status["a"].state == "done"
    assert sum("busy" in line for line in said) == 1


def test_the_page_says_that_nobody_watches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_recording(recording, options, tell, workers):  # type: ignore[no-untyped-def]
        tell("track", "running")
        raise KeyboardInterrupt

    monkeypatch.setattr(watching, "run_recording", run_recording)
    write_walk(tmp_path / "a", 8)
    watch = Watch(tmp_path, RunOptions(), Inline(), settle_s=0.0, tell=lambda text: None)
    with pytest.raises(KeyboardInterrupt):
        watch.look()
    assert "working" in (tmp_path / STATUS_PAGE).read_text()
    watch.stop()
    page = (tmp_path / STATUS_PAGE).read_text()
    assert "not watched since" in page and "1 stopped" in page


def test_the_command_ends_with_once(tmp_path: Path, runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    write_walk(tmp_path / "bad", 8)
    assert main(["watch", str(tmp_path), "--once", "--settle", "0", "--every", "0.05", "--workers", "1"]) == 1
    assert "1 of 1 recordings failed: bad" in capsys.readouterr().err and runs == ["bad"]
    assert main(["watch", str(tmp_path / "none"), "--once"]) == 2


def test_a_report_is_linked(tmp_path: Path) -> None:
    write_status_page(
        tmp_path / "s.html", "day <1>", "now", [RecordingStatus("a", "done", "", Path("a/results/r.html"))]
    )
    text = (tmp_path / "s.html").read_text()
    assert '<a href="a/results/r.html">a</a>' in text and "day &lt;1&gt;" in text
