"""The report: self-contained, escaped, and drawn by a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from small_recordings import cut_recording
from written_results import write_results

from calibration.foundation.errors import InputError
from calibration.foundation.once import keeping
from capture.recordings.recording import load_recording, save_recording
from capture.recordings.video import read_frames, write_video
from skeleton.analysis.gait import GaitPaths
from vivarig.cli import main
from vivarig.pipeline import RunOptions, run_recording
from vivarig.report.build import build_ahead, build_report
from vivarig.report.gait_section import no_gait
from vivarig.report.groups import GROUPS
from vivarig.report.page import Page
from vivarig.report.pictures import contact_sheet, overlay
from vivarig.report.sections import Shown, silhouette_section
from vivarig.results.findings import Findings, load_findings, load_outlines
from vivarig.stages.silhouettes import uneven_footage

HOSTILE = "<script>alert(1)</script> & co"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small recording with silhouettes and hulls."""
    place = tmp_path_factory.mktemp("report") / "r"
    cut_recording(place, frames=3, cameras=3)
    run_recording(load_recording(place), RunOptions("hull"))
    return place


def test_page_is_self_contained_escaped_and_the_same_twice(recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert main(["report", str(recording), "--output", str(page)]) == 0
    text = page.read_text()
    assert not re.search(r'(src|href)="(?!data:)', text), "nothing is fetched from elsewhere"
    assert text.count('<img src="data:image') >= 3
    first = page.read_bytes()
    build_report(load_recording(recording), page)
    assert page.read_bytes() == first


def test_sections_made_ahead_are_put_together_to_the_same_page(recording: Path, tmp_path: Path) -> None:
    every = [name for group in GROUPS.values() for name in group]
    assert len(every) == len(set(every)), "no section is made twice"
    kept: dict[str, Any] = {}

    def keep(name: str, make: Callable[[], Any]) -> Any:
        if name not in kept:
            kept[name] = make()
        return kept[name]

    build_report(load_recording(recording), tmp_path / "whole.html")
    with keeping(keep):
        for group in GROUPS:
            build_ahead(load_recording(recording), group)
        assert {name.removeprefix("section ") for name in kept if name.startswith("section ")} == set(every)
        assert len(kept["images of frame 1"]) == 3, "the frame that several groups show is decoded by the first of them"
        build_report(load_recording(recording), tmp_path / "put_together.html")
        assert (tmp_path / "put_together.html").read_bytes() == (tmp_path / "whole.html").read_bytes()
        kept["section silhouettes"][0].parts.append("taken from what was kept")
        build_report(load_recording(recording), tmp_path / "put_together.html")
        assert "taken from what was kept" in (tmp_path / "put_together.html").read_text()


def test_silhouettes_are_shown_before_the_track_as_after_it_and_a_track_left_over_does_no_harm(
    recording: Path, tmp_path: Path
) -> None:
    place = tmp_path / "r"
    shutil.copytree(recording, place)

    def shown(findings: Findings) -> list[str]:
        page = Page("")
        silhouette_section(page, Shown(findings))
        return page.parts

    before = shown(load_outlines(load_recording(place)))
    write_results(load_recording(place), 3)
    after = load_findings(load_recording(place))
    assert after.track is not None and shown(after) == before
    (place / "results" / "track.h5").write_bytes(b"of a run that was killed")
    assert shown(load_outlines(load_recording(place))) == before


def test_a_hostile_name_is_refused_and_would_be_escaped(recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    build_report(replace(load_recording(recording), name=HOSTILE), page)
    text = page.read_text()
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text
    with pytest.raises(InputError, match="name"):
        shutil.copytree(recording, tmp_path / "copy")
        save_recording(replace(load_recording(tmp_path / "copy"), name=HOSTILE))
        load_recording(tmp_path / "copy")


def test_a_browser_draws_it(recording: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    page, shot = tmp_path / "report.html", tmp_path / "shot.png"
    build_report(load_recording(recording), page)
    subprocess.run(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1100,1800", f"--screenshot={shot}", page.as_uri(),
        ],
        check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    image = cv2.imread(str(shot))
    assert image is not None and image.shape[1] == 1100
    # text, plots and the green silhouettes are there, not a blank page
    assert np.unique(image.reshape(-1, 3), axis=0).shape[0] > 1000
    blue, green, red = (image[..., k].astype(int) for k in range(3))
    assert ((green > red + 30) & (green > blue + 30)).sum() > 500


def test_without_results_it_says_what_to_run(tmp_path: Path) -> None:
    cut = cut_recording(tmp_path / "r", frames=2, cameras=2)
    with pytest.raises(InputError, match="vivarig run"):
        build_report(cut, tmp_path / "report.html")


def test_gait_is_not_made_of_an_animal_that_sits_or_is_not_trusted() -> None:
    still = GaitPaths({}, np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]), np.zeros(3), np.full(3, 50.0))
    away = replace(still, root=10.0 * still.root)
    trusted, doubted = np.zeros(3, dtype=np.int64), np.array([1, 1, 0])
    assert "did not walk: its root stayed within 5 mm, its trunk is 50 mm long" in no_gait(trusted, still)
    assert "66.7 % of the frames are not trusted" in no_gait(doubted, away)
    assert no_gait(trusted, away) == ""


def test_pictures_are_of_the_frames_that_the_results_are_of(recording: Path, tmp_path: Path) -> None:
    """Silhouettes from frame 2 on: the picture of their first row is that of the recording's frame 2."""
    part = tmp_path / "part"
    shutil.copytree(recording, part, ignore=shutil.ignore_patterns("results"))
    assert main(["silhouettes", str(part), "--start", "2"]) == 0
    whole, later = (load_findings(load_recording(place)) for place in (recording, part))
    camera = later.silhouettes.names[0]  # type: ignore[union-attr]
    # the image alone
    shown, wanted = overlay(later, camera, 0, ()), overlay(whole, camera, 2, ())
    assert shown is not None and np.array_equal(shown, wanted)
    assert not np.array_equal(shown, overlay(whole, camera, 0, ()))
    build_report(load_recording(part), tmp_path / "report.html")
    assert "Frame 0 here is frame 2 of the recording" in (tmp_path / "report.html").read_text()
    shutil.copy(recording / "results" / "hull.h5", part / "results")
    with pytest.raises(InputError, match=r"results of different runs \(frames: silhouettes.h5 1, hull.h5 3\)"):
        build_report(load_recording(part), tmp_path / "report.html")


def test_footage_that_does_not_fit_together_is_said(tmp_path: Path) -> None:
    cut = cut_recording(tmp_path / "r", frames=4, cameras=2)
    assert uneven_footage(cut) == []
    one = cut.footage[0].source
    images = [image for _, image in read_frames(one, gray=True)]
    write_video(one, images[:3], 60.0)
    ends, stated, rates = uneven_footage(cut)
    assert "recording.toml says rate_hz = 120, the video of cam01 60" in stated
    assert "cam01 ends after 3 frames, the longest camera after 4: the last 1 are left out" in ends
    assert "cam01 60, cam05 120" in rates


@pytest.mark.parametrize(
    ("cameras", "frames", "rows", "columns", "left"),
    [(1, [0], 1, 1, 0), (2, [0], 1, 2, 0), (2, [0, 1, 2], 2, 4, 2), (3, [0, 1], 2, 3, 0)],
)
def test_sheets_are_filled_with_paper(
    recording: Path, cameras: int, frames: list[int], rows: int, columns: int, left: int
) -> None:
    found = load_findings(load_recording(recording))
    assert found.silhouettes is not None
    sheet = contact_sheet(found, found.silhouettes.names[:cameras], frames, ("silhouette",))
    assert sheet.shape == (240 * rows, 320 * columns, 3)
    tiles = sheet.reshape(rows, 240, columns, 320, 3).swapaxes(1, 2).reshape(rows * columns, -1)
    assert (tiles == 250).all(axis=1).sum() == left
