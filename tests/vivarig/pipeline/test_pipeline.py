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
from dataclasses import replace
from pathlib import Path

import pytest
from small_recordings import cut_recording, differences

from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from capture.recordings.recording import load_recording
from vivarig.cli import main
from vivarig.console.reporting import CommandReport
from vivarig.jobs.cutting import cut
from vivarig.jobs.fingerprints import digest_of_more
from vivarig.jobs.job import Job, StagePlan
from vivarig.pipeline import RunOptions, run_recording
from vivarig.pipeline.workers import LocalWorkers
from vivarig.stages import hull
from vivarig.stages.options import SilhouetteOptions
from vivarig.track_stage import track

UNTIL = "hull"
#: Eight frames in three parts (hulls: in eight), in this process.
SMALL = RunOptions(UNTIL, workers=1, part_frames=3)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording with its stages done, undisturbed."""
    place = tmp_path_factory.mktemp("runs") / "undisturbed"
    run_recording(cut_recording(place), SMALL)
    return place


def fresh(finished: Path, tmp_path: Path, *, results: bool) -> Path:
    """Return a copy of the recording, with or without its results."""
    target = tmp_path / "copy"
    ignore = None if results else shutil.ignore_patterns("results")
    shutil.copytree(finished, target, ignore=ignore)
    return target


def statuses(folder: Path, **options: object) -> list[str]:
    outcomes = run_recording(load_recording(folder), replace(SMALL, **options))  # type: ignore[arg-type]
    return [outcome.status for outcome in outcomes]


def test_texture_is_read_from_the_images_of_the_frames_cut_out(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=False)
    options = replace(SMALL, until="silhouettes", changes={"silhouettes": {"start": "3", "stop": "7"}})
    run_recording(load_recording(place), options)
    seen: list[tuple[int, ...]] = []
    for plans in ({"silhouettes": StagePlan("silhouettes", SilhouetteOptions(start=3), "")}, {}):
        job = Job(place, Span(0, 4), plans)
        seen.append(tuple(round(one.offset_frames) for one in track.footage_of(job)))
    assert seen == [(3, 3, 3, 3)] * 2, "in a run, and from the silhouettes of an earlier one"


def test_a_second_run_keeps_everything_and_brought_files_stay(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    assert statuses(place) == ["kept", "kept"], "a copied folder is still done"
    assert not differences(place, finished)


def test_changed_options_redo_only_what_depends_on_them(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    assert statuses(place, changes={"hull": {"voxel": "4"}}) == ["kept", "done"]
    assert statuses(place, changes={"silhouettes": {"shadow-floor": "0.6"}, "hull": {"voxel": "4"}})[0] == "done"


def test_the_number_of_workers_changes_nothing(finished: Path, tmp_path: Path) -> None:
    """Two processes, one of which is killed on the way, against none: the same bytes."""
    place = fresh(finished, tmp_path, results=False)
    pool = LocalWorkers(2)
    killed: list[int] = []

    def kill_one(stage: str, text: str) -> None:
        if stage == "hull" and text == "running" and not killed:
            killed.append(pool.pids[0])
            os.kill(killed[0], signal.SIGKILL)

    try:
        run_recording(load_recording(place), SMALL, kill_one, pool)
    finally:
        pool.shutdown()
    assert killed
    assert not differences(place, finished)
    assert 50 < pool.peak_rss_mb < 2000


def test_a_damaged_result_is_redone(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    damaged = place / "results" / "hull.h5"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    told: list[tuple[str, str]] = []
    run_recording(load_recording(place), SMALL, lambda stage, text: told.append((stage, text)))
    assert ("hull", "its result was changed or damaged since: doing it again") in told
    assert ("silhouettes", "done before, kept") in told
    assert not differences(place, finished)


def test_a_damaged_part_is_redone(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped before the hulls are joined; of the parts it left one is harmed: that one alone is made again."""
    place = fresh(finished, tmp_path, results=False)
    made: list[Span] = []
    work = hull.work

    def watched(job: Job, phase: str, span: Span) -> None:
        made.append(span)
        work(job, phase, span)

    def stop(job: Job) -> CommandReport:
        raise InputError("stopped here")

    monkeypatch.setattr(hull, "work", watched)
    with monkeypatch.context() as patched, pytest.raises(InputError, match="stopped here"):
        patched.setattr(hull, "join", stop)
        run_recording(load_recording(place), SMALL)
    assert len(made) == 8
    damaged = sorted((place / "results" / "parts" / "hull").glob("*.h5"))[1]
    damaged.write_bytes(damaged.read_bytes()[:-100])
    statuses(place)
    assert made[8:] == [Span(1, 2)]
    assert not differences(place, finished)


def test_two_runs_at_once_are_refused(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)

    def second(stage: str, text: str) -> None:
        with pytest.raises(InputError, match="another command is working"):
            run_recording(load_recording(place), SMALL)

    run_recording(load_recording(place), SMALL, second)


@pytest.mark.parametrize("name", ["workers", "part_frames"])
def test_nothing_is_done_by_nobody(finished: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be at least 1, got 0"):
        run_recording(load_recording(finished), replace(SMALL, **{name: 0}))  # type: ignore[arg-type]


def test_unknown_stages_and_options(finished: Path) -> None:
    with pytest.raises(InputError, match="not a stage"):
        run_recording(load_recording(finished), RunOptions("hul"))
    with pytest.raises(InputError, match="did you mean 'voxel'"):
        run_recording(load_recording(finished), replace(SMALL, changes={"hull": {"voxl": "2"}}))


def _run(folder: str) -> None:
    run_recording(load_recording(folder), SMALL)


def test_thirty_kills(tmp_path: Path) -> None:
    """Killed at random moments and started again each time, the last run leaves the bytes of an undisturbed one."""
    finished = tmp_path / "undisturbed"
    run_recording(cut_recording(finished, frames=6, cameras=2), SMALL)  # two cameras: no tuning, a second in all
    place = fresh(finished, tmp_path, results=False)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["vivarig.pipeline", "vivarig.stages.silhouettes", "vivarig.stages.hull"])
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
    assert not differences(place, finished)
    left = [path for path in (place / "results").rglob("*") if path.name[0] == "." or "parts" in path.parts]
    assert not left, "what killed runs left half-written is cleared away"


def test_a_full_disk_is_said_and_recovered_from(finished: Path, tmp_path: Path) -> None:
    """A limit on file size stands in for the full disk: the write fails at the same place, by the system."""
    place = fresh(finished, tmp_path, results=False)
    program = "import sys; from vivarig.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", program, "run", str(place), "--until", UNTIL, "--workers", "1"]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    result = subprocess.run(words, preexec_fn=limited, capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr and "make room and run again" in result.stderr
    assert not (place / "results" / "hull.h5").exists()
    statuses(place)
    assert not differences(place, finished)


def test_one_failing_recording_does_not_stop_the_rest(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = fresh(finished, tmp_path, results=True)
    assert main(["run", str(tmp_path / "nothing"), str(place), "--until", "silhouettes", "--workers", "1"]) == 1
    out = capsys.readouterr()
    assert "no such file" in out.out and "s of work" in out.out
    assert "failed" in out.err


def test_nor_does_one_whose_results_cannot_be_written(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, other = fresh(finished, tmp_path, results=True), tmp_path / "other"
    shutil.copytree(finished, other, ignore=shutil.ignore_patterns("results"))
    (other / "results").write_text("a file where the folder should be")
    assert main(["run", str(other), str(place), "--until", "silhouettes", "--workers", "1"]) == 1
    out = capsys.readouterr()
    assert f"{other}: failed: {other / 'results'}: File exists" in out.out and f"{place}:" in out.out
    assert "1 of 2 recordings failed" in out.err


def test_a_poor_result_stays_poor_when_it_is_kept(finished: Path, tmp_path: Path) -> None:
    """The plates are the footage: the subject is found nowhere, and that is said again by a run that does nothing."""
    place = fresh(finished, tmp_path, results=False)
    for video in (place / "videos").glob("cam0?.mp4"):
        shutil.copy(video.with_name(f"{video.stem}_background.mp4"), video)
    words = ["run", str(place), "--until", "silhouettes", "--workers", "1"]
    assert [main(words), main(words)] == [1, 1]


def test_a_subject_that_is_not_there_is_refused_before_anything_is_done(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=False)
    description = place / "recording.toml"
    known = description.read_text()
    description.write_text(known.replace('subject = "mouse"', 'subject = "moose"'))
    with pytest.raises(InputError, match="unknown subject 'moose'; wanted mouse, rat, human, or a folder"):
        run_recording(load_recording(place))
    description.write_text(known.replace('subject = "mouse"\n', ""))
    with pytest.raises(InputError, match="names no subject"):
        run_recording(load_recording(place))
    assert not (place / "results" / "silhouettes.h5").exists()


def test_a_track_that_starts_elsewhere_is_refused(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=True)
    with pytest.raises(InputError, match="track --start 8: frames 0 to 7 are to be tracked"):
        run_recording(load_recording(place), RunOptions(changes={"track": {"start": "8"}}))
    assert main(["track", str(place), "--start", "5", "--frames", "0:4"]) == 2


def test_a_rig_of_any_name_matters(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=False)
    description, rig = place / "recording.toml", place / "mended.toml"
    shutil.move(place / "rig.toml", rig)
    description.write_text(description.read_text().replace('rig = "rig.toml"', 'rig = "mended.toml"'))
    assert statuses(place, until="silhouettes") == ["done"]
    assert statuses(place, until="silhouettes") == ["kept"]
    rig.write_text(rig.read_text() + "\n")
    assert statuses(place, until="silhouettes") == ["done"]


def test_each_stage_rests_on_the_files_that_it_reads_besides(finished: Path, tmp_path: Path) -> None:
    place = fresh(finished, tmp_path, results=False)
    own = place / "own"
    own.mkdir()
    recording = replace(load_recording(place), subject="own")

    def digests() -> list[str]:
        return [digest_of_more(recording, stage, {}) for stage in ("hull", "track", "skeleton", "report")]

    def changed(path: Path) -> list[bool]:
        before = digests()
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"something else")
        return [a != b for a, b in zip(before, digests(), strict=True)]

    assert changed(own / "points.npz") == [False, True, True, False]
    assert changed(place / "results" / "beads.h5") == [False, False, True, True]
    assert changed(place / "truth.h5") == [False, False, False, True]


@pytest.mark.parametrize("frames", [1, 7, 79, 80, 100, 160, 321, 5000])
def test_parts_cover_a_recording_once(frames: int) -> None:
    parts = cut(Span(0, frames))
    assert [frame for part in parts for frame in range(part.first, part.stop)] == list(range(frames))
    assert max(map(len, parts)) <= 160 and max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len(parts) >= 2 or frames < 80
