"""The whole line on a small recording: tracking in parts, killed on the way, and what comes after it."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from headless_browser import open_page, wait_for
from small_recordings import cut_recording, differences
from threadpoolctl import threadpool_limits

import vivarig
from calibration.foundation.result_files import create_results, text_array
from calibration.foundation.spans import Span
from capture.recordings.recording import load_recording
from capture.recordings.video import read_frames
from skeleton.motion_files import MarkerSeries, read_motion, write_motion
from vivarig.cli import main
from vivarig.export.motions import point_series
from vivarig.jobs.job import Job
from vivarig.pipeline import RunOptions, run_recording
from vivarig.results.findings import load_findings
from vivarig.stages import track
from vivarig.stages.options import TrackOptions
from vivarig.viewer import Viewer

SLIDER = "document.querySelector('.mantine-Slider-track')"
REPOSITORY = Path(__file__).resolve().parents[2]
#: Six frames in two parts; size and shape are given, so that no search for them is repeated after each kill.
OPTIONS = RunOptions("skeleton", {"track": TrackOptions(scale=1.06, adapt=False)}, workers=1, part_frames=3)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording with all stages but the report done, undisturbed."""
    place = tmp_path_factory.mktemp("whole") / "undisturbed"
    run_recording(cut_recording(place, frames=6, cameras=3), OPTIONS)
    return place


KILLED = """
import os, sys
from capture.recordings.recording import load_recording
from calibration.foundation.result_files import create_results, text_array
from vivarig.stages import track
from vivarig.pipeline.runner import run_recording
sys.path.insert(0, sys.argv[3])
from test_whole_line import OPTIONS
{patch}
run_recording(load_recording(sys.argv[1]), OPTIONS)
"""
IN_THE_SECOND_PART = """
work, calls = track.work, []
def deadly(job, phase, span):
    calls.append(span)
    if len(calls) == 2:
        os._exit(9)
    work(job, phase, span)
track.work = deadly
"""
BEFORE_JOINING = "track.join = lambda job: os._exit(9)"


def test_a_stage_by_itself_makes_the_same_bytes_on_any_number_of_threads(finished: Path, tmp_path: Path) -> None:
    place = tmp_path / "copy"
    shutil.copytree(finished, place)
    with threadpool_limits(limits=2, user_api="blas"):
        assert main(["skeleton", str(place)]) == 0
    assert set(differences(place, finished)) <= {"results/stages.json"}  # which says how the stage was run


def test_killed_while_tracking(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gone without a word in its second part, then before the parts are joined: no part is tracked twice."""
    place = tmp_path / "copy"
    shutil.copytree(finished, place)
    for name in ("track.h5", "skeleton.h5"):
        (place / "results" / name).unlink()
    for patch in (IN_THE_SECOND_PART, BEFORE_JOINING):
        words = [sys.executable, "-c", KILLED.format(patch=patch), str(place), "", str(Path(__file__).parent)]
        paths = [str(REPOSITORY), str(REPOSITORY / "tests" / "helpers")]
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(paths))
        assert subprocess.run(words, env=environment, check=False).returncode == 9
    tracked: list[Span] = []
    work = track.work

    def watched(job: Job, phase: str, span: Span) -> None:
        tracked.append(span)
        work(job, phase, span)

    monkeypatch.setattr(track, "work", watched)
    run_recording(load_recording(place), OPTIONS)
    assert tracked == []
    assert not differences(place, finished)


def test_the_notebook(finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Executed as it is; the stages are done, so that it only makes the report."""
    keep = {"track": TrackOptions(scale=1.06, adapt=False)}
    run = vivarig.run
    monkeypatch.setattr(vivarig, "run", lambda folder: run(folder, workers=1, part_frames=3, **keep), raising=False)
    monkeypatch.setattr(sys, "argv", ["notebook.py", str(finished)])
    runpy.run_path(str(REPOSITORY / "docs" / "examples" / "notebook.py"))
    out = capsys.readouterr().out
    assert "silhouettes: kept" in out and "track: kept" in out and "report: done" in out
    assert "mean joint error" in out and "6 frames" in out


@pytest.mark.parametrize("suffix", [".c3d", ".trc", ".csv", ".nwb", ".nc"])
def test_points_come_back_from_every_format(finished: Path, tmp_path: Path, suffix: str) -> None:
    """Written and read again: the same landmarks to what the format keeps (C3D and TRC: single precision, 1e-3 mm)."""
    target = tmp_path / f"points{suffix}"
    assert main(["export", str(finished), str(target)]) == 0
    back = read_motion(target)
    assert isinstance(back, MarkerSeries)
    wanted = load_findings(load_recording(finished)).skeleton
    assert wanted is not None and back.names == wanted.landmark_names
    assert np.abs(back.positions - wanted.landmarks).max() < 1e-3


@pytest.mark.parametrize("suffix", [".nwb", ".nc"])
def test_the_trust_of_a_frame_is_the_confidence_of_its_points(finished: Path, tmp_path: Path, suffix: str) -> None:
    found = load_findings(load_recording(finished))
    assert found.skeleton is not None
    trust = np.zeros_like(found.skeleton.landmark_trust)
    trust[1], trust[2] = 1, 2
    series = point_series(
        replace(found, skeleton=replace(found.skeleton, landmark_trust=trust)), "landmarks", trusted_only=False
    )
    write_motion(series, tmp_path / f"points{suffix}")
    back = read_motion(tmp_path / f"points{suffix}")
    assert isinstance(back, MarkerSeries) and back.confidence is not None
    assert back.confidence[:4].tolist() == [[score] * len(back.names) for score in (1.0, 0.5, 0.0, 1.0)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.xyz"], "cannot export to '.xyz'; known are .c3d"),
        (["a.c3d", "--frames", "0:2"], "--frames has no meaning for '.c3d'; it is for .glb"),
        (["a.bvh", "--trusted-only"], "--trusted-only has no meaning for '.bvh'"),
        (["a.glb", "--points", "joints"], "--points has no meaning for '.glb'; it is for .c3d"),
    ],
)
def test_options_that_a_format_has_no_use_for_are_refused(
    finished: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(finished), str(tmp_path / words[0]), *words[1:]]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", [".bvh", ".mot", ".glb"])
def test_the_other_formats_are_written(finished: Path, tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"motion{suffix}"
    assert main(["export", str(finished), str(target)]) == 0
    assert target.stat().st_size > 1000


def test_usd_holds_the_surface_and_the_skeleton_of_every_frame(finished: Path, tmp_path: Path) -> None:
    """Read again by the library itself: vertices to single precision, joints to what three chained turns lose."""
    from pxr import Usd, UsdGeom, UsdSkel

    target = tmp_path / "motion.usdc"
    assert main(["export", str(finished), str(target)]) == 0
    stage, found = Usd.Stage.Open(str(target)), load_findings(load_recording(finished))
    assert found.track is not None and found.skeleton is not None
    assert UsdGeom.GetStageUpAxis(stage) == "Z" and UsdGeom.GetStageMetersPerUnit(stage) == 0.001
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (0.0, 5.0)
    top = stage.GetDefaultPrim().GetPath()
    mesh = UsdGeom.Mesh.Get(stage, top.AppendPath("surface"))
    bones = UsdSkel.Skeleton.Get(stage, top.AppendPath("skeleton/bones"))
    cache = UsdSkel.Cache()
    cache.Populate(UsdSkel.Root.Get(stage, top.AppendPath("skeleton")), Usd.PrimDefaultPredicate)
    for frame in (0, 4):
        vertices = np.array(mesh.GetPointsAttr().Get(frame))
        np.testing.assert_allclose(vertices, found.track.vertices_at(frame), atol=1e-3)
        placed = cache.GetSkelQuery(bones).ComputeJointSkelTransforms(frame)
        joints = np.array([list(transform.ExtractTranslation()) for transform in placed])
        np.testing.assert_allclose(joints, found.skeleton.positions[frame], atol=0.01)


def test_the_viewer_draws_every_layer(finished: Path) -> None:
    viewer = Viewer(load_findings(load_recording(finished)), "127.0.0.1", 8961)
    try:
        for toggle in viewer._toggles.values():
            toggle.value = True
        viewer.show(3)
        assert {"hull", "template", "skeleton", "markers", "camera/cam01"} <= set(viewer._handles)
        assert viewer._handles["camera/cam01"].image is not None
        viewer._toggles["hull"].value = False
        viewer.show(4)
        assert "hull" not in viewer._handles and "time" in viewer.words.content
    finally:
        viewer.stop()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--port", "99999"], "--port wants a number from 1 to 65535, got 99999"),
        (["--host", "192.0.2.1"], "--host 192.0.2.1: not an address of this machine"),
    ],
)
def test_an_address_that_cannot_be_served_on_is_said(
    finished: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(finished), "--no-browser", *words]) == 2
    assert said in capsys.readouterr().err


def test_clicks_in_a_browser_switch_every_layer(finished: Path, tmp_path: Path) -> None:
    place = tmp_path / "with_beads"
    shutil.copytree(finished, place)
    with create_results(place / "results" / "beads.h5", stage="beads", parameters={}) as file:
        file["names"] = text_array(["b1", "b2"])
        file["positions"] = np.ones((6, 2, 3))
    viewer = Viewer(load_findings(load_recording(place)), "127.0.0.1", 8963)
    # The browser's own settings have other names; ours are numbered by their server, in its order, after "play".
    boxes = "[...document.querySelectorAll('input[type=checkbox]')].filter(box => /^[0-9a-f]{8}-/.test(box.id))"
    try:
        with open_page(viewer.address, tmp_path / "profile") as page:
            wait_for(lambda: page.value(f"{boxes}.length == {1 + len(viewer._toggles)} && {SLIDER} !== null"))
            for at, (name, toggle) in enumerate(viewer._toggles.items(), start=1):
                before = toggle.value
                page.click(f"{boxes}[{at}]")
                wait_for(lambda toggle=toggle, before=before: toggle.value != before)  # type: ignore[misc]
                if name == "cameras":
                    wait_for(lambda: not viewer._handles["camera/cam01"].visible)
                elif name == "images":
                    wait_for(lambda: viewer._handles["camera/cam01"].image is not None)
                else:
                    wait_for(lambda name=name, before=before: (name in viewer._handles) != before)  # type: ignore[misc]
            page.press(SLIDER, across=0.99)
            wait_for(lambda: viewer.slider.value == 5 and "time 0.04" in viewer.words.content)
    finally:
        viewer.stop()


def test_films_play_and_show_what_was_found(finished: Path, tmp_path: Path) -> None:
    assert main(["film", str(finished), "--frames", "1:4", "--slow", "4", "--output", str(tmp_path)]) == 0
    recording = load_recording(finished)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"all.mp4", *(f"{footage.name}.mp4" for footage in recording.footage)}
    with av.open(str(tmp_path / "all.mp4")) as film:
        stream = film.streams.video[0]
        assert stream.codec_context.name == "h264" and stream.codec_context.pix_fmt == "yuv420p"
        assert float(stream.average_rate or 0) == pytest.approx(recording.rate_hz / 4)
        assert sum(1 for _ in film.decode(video=0)) == 3
    footage = recording.footage[0]
    drawn = next(image for _, image in read_frames(tmp_path / f"{footage.name}.mp4", 0, 1))
    raw = next(image for _, image in read_frames(footage.source, 1, 2))
    raw = raw if raw.ndim == 3 else np.repeat(raw[..., None], 3, axis=2)
    assert (np.abs(drawn.astype(int) - raw[: drawn.shape[0], : drawn.shape[1]]).max(axis=2) > 80).mean() > 0.002
    assert main(["film", str(finished), "--frames", "4:99"]) == 2
