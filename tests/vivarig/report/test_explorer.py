"""The report in a real browser: the list of stretches, plots, body and images share one frame."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from headless_browser import Page, open_page, wait_for
from small_recordings import cut_recording
from written_results import write_results

from calibration.foundation.trust import Trust
from capture.recordings.recording import load_recording
from vivarig.report import page as report_page
from vivarig.report.build import build_report
from vivarig.report.explorer import show_explorer
from vivarig.report.surface_sampling import coarse_surface
from vivarig.report.verdict import add_timeline
from vivarig.results.findings import load_findings
from vivarig.results.reason_words import reason_words
from vivarig.results.stretches import WHOLE, find_stretches


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("explorer")
    recording = cut_recording(place / "r", frames=14, cameras=3)
    write_results(recording, 14)
    build_report(recording, place / "report.html")
    return place / "report.html"


@pytest.fixture(scope="module")
def page(report: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_page(report.as_uri(), tmp_path_factory.mktemp("browser") / "profile") as opened:
        wait_for(lambda: opened.value("document.body && document.body.dataset.frame"))
        yield opened


def test_stretches_are_told_by_limb_and_gravest_first(report: Path) -> None:
    findings = load_findings(load_recording(report.parent / "r"))
    assert findings.track is not None
    lost, hidden = find_stretches(findings.track, 120.0)
    assert (lost.limbs, lost.first, lost.last, lost.level, lost.reasons) == (
        (WHOLE,),
        10,
        11,
        Trust.LOST,
        ("too few views",),
    )
    assert (hidden.limbs, hidden.first, hidden.last, hidden.reasons) == (("left_fore",), 4, 7, ("hidden",))


def test_without_scripts_it_says_the_same(report: Path) -> None:
    text = report.read_text()
    assert "Can I trust this?" in text and "only where trusted" in text
    assert "86 % of 14 frames are trusted, 57 % in every limb; 0 doubtful and 2 lost." in text
    for reason in ("too few views", "hidden"):
        assert reason_words(reason).means in text and reason_words(reason).do in text
    assert text.count('class="stretch ') == 2 and text.count("<noscript><img") == 2
    assert "b2sum -l 128" in text and "Vivarig" in text and "MIT License" in text
    assert len(text) < 4_000_000


def test_a_click_on_a_stretch_moves_cursor_plots_body_and_strip(page: Page) -> None:
    drawn = page.value("document.getElementById('space').toDataURL()")
    page.click("document.querySelectorAll('.stretch')[1]")
    frame = int(page.value("document.body.dataset.frame"))
    assert 4 <= frame <= 7
    assert page.value("document.getElementById('look').dataset.frame") == str(frame)
    assert page.value("document.querySelector('#strip img.here').alt") == f"frame {frame}"
    assert page.value("document.getElementById('space').toDataURL()") != drawn
    low, high = (int(n) for n in page.value("document.body.dataset.zoom").split(":"))
    assert low <= 4 and high >= 7 and high - low < 13
    assert page.value("document.getElementById('said').textContent").startswith(f"frame {frame},")


def test_a_drag_over_one_plot_zooms_all_and_the_mouse_is_a_cursor(page: Page) -> None:

    def zoomed() -> tuple[int, int] | None:
        # On a busy machine the page may be laid out anew under the mouse; then the drag is done again.
        page.click("document.getElementById('whole')")
        wait_for(lambda: page.value("document.body.dataset.zoom") == "0:13")
        page.bring("document.querySelector('.u-over')")
        page.drag("document.querySelectorAll('.u-over')[0]", [0.25, 0.4, 0.6])
        time.sleep(1.0)
        low, high = (int(n) for n in page.value("document.body.dataset.zoom").split(":"))
        return (low, high) if 2 <= low <= 4 and 7 <= high <= 9 else None

    low, high = wait_for(zoomed)

    def followed() -> bool:
        page.bring("document.querySelectorAll('.u-over')[1]")
        page.hover("document.querySelectorAll('.u-over')[1]", 0.9)
        time.sleep(0.3)
        return bool(abs(int(page.value("document.body.dataset.frame")) - (low + 0.9 * (high - low))) <= 1)

    wait_for(followed)


def test_the_line_of_trust_is_a_slider_too(page: Page) -> None:
    def moved() -> bool:
        page.bring("document.getElementById('timeline')")
        page.press("document.getElementById('timeline')", 0.5)
        return 5 <= int(page.value("document.body.dataset.frame")) <= 7

    page.click("document.querySelectorAll('.stretch')[0]")  # which is another frame
    wait_for(lambda: int(page.value("document.body.dataset.frame")) >= 10)
    wait_for(moved)


def test_long_names_stand_whole_beside_the_line_of_trust(tmp_path: Path) -> None:
    names = ("trunk", "right_hind_limb", "left_second_antenna", "a_limb_with_a_name_that_is_longer_than_most")
    track = SimpleNamespace(trust=np.zeros(9, int), limb_names=names, limb_trust=np.zeros((9, len(names)), int))
    parts: list[str] = []
    drawn = SimpleNamespace(track=track, recording=SimpleNamespace(rate_hz=50.0))
    add_timeline(SimpleNamespace(markup=parts.append), drawn)  # type: ignore[arg-type]
    (tmp_path / "line.html").write_text(f"<body>{''.join(parts)}</body>", encoding="utf-8")
    with open_page((tmp_path / "line.html").as_uri(), tmp_path / "profile") as opened:
        wait_for(lambda: opened.value("document.getElementById('now') !== null"))
        boxes = "[...document.querySelectorAll('#timeline text')].map(text => text.getBBox())"
        for low, high in opened.value(f"{boxes}.map(box => [box.x, box.x + box.width])"):
            assert low >= 0 and high <= 1000
        assert "longer than most" in opened.value("document.querySelectorAll('#timeline title')[4].textContent")


def test_a_long_recording_says_what_of_it_the_page_holds(tmp_path: Path) -> None:
    recording = cut_recording(tmp_path / "r", frames=2, cameras=2)
    for frames, said in ((4_000, False), (50_000, True)):
        page = report_page.Page("x")
        show_explorer(page, recording, frames, [], [], None)
        assert ("the greatest of each 25 frames, the body is shown in 3000 of 50000" in page.html()) == said


def test_a_coarse_surface_keeps_its_shape() -> None:
    ball = trimesh.creation.icosphere(subdivisions=4, radius=10.0)
    kept, faces = coarse_surface(ball.vertices, ball.faces.astype(np.int32), 400)
    coarse = trimesh.Trimesh(ball.vertices[kept], faces, process=False)
    # a closed surface, wound outwards, that lost little: a chord of 400 points lies 1 % below the sphere
    assert coarse.is_watertight and coarse.volume == pytest.approx(ball.volume, rel=0.04)
