"""The mending desk in a real browser: painted, dragged, saved, run again; changed there and nowhere else."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from headless_browser import PATIENCE_S, open_page, wait_for

from capture.recordings.masks import read_masks
from capture.recordings.recording import load_recording
from vivarig.edits.edit_file import load_edits
from vivarig.results.findings import load_findings
from vivarig.viewer import Viewer
from vivarig.viewer.desk import Desk

AT = 5
SHEET = "document.getElementById('sheet')"


def positions(place: Path) -> np.ndarray:
    with h5py.File(place / "results" / "skeleton.h5") as file:
        return np.asarray(file["positions"][:])


@pytest.mark.slow
def test_painted_dragged_run_again_and_changed_there_alone(finished: Path, copy: Path, tmp_path: Path) -> None:
    viewer = Viewer(load_findings(load_recording(copy)), "127.0.0.1", 8967)
    try:
        with open_page(viewer.address.replace("/?", "/mend?"), tmp_path / "profile") as page:
            wait_for(lambda: page.value("document.body && document.body.dataset.shown") == "cam01 0")
            page.value(f"f = document.getElementById('frame'); f.value = {AT}; f.dispatchEvent(new Event('input'))")
            wait_for(lambda: page.value("document.body.dataset.shown") == f"cam01 {AT}")

            # a stroke in a corner of the image that holds nothing
            width, height = 640, 480
            corner = _share(page, (30.0, 40.0), width, height), _share(page, (60.0, 40.0), width, height)
            page.drag(SHEET, [corner[0], corner[1]])
            wait_for(lambda: page.value("document.querySelectorAll('#edits li').length") == 1)
            stroke = load_edits(copy / "edits.toml").masks[0]
            assert (stroke.camera, stroke.first, stroke.paint) == ("cam01", AT, True)
            assert np.allclose(stroke.path[0], (30, 40), atol=1.5) and np.allclose(stroke.path[-1], (60, 40), atol=1.5)
            page.picture(tmp_path / "painted.png")

            # a wrist dragged by 12 px to the right
            page.click("document.querySelector('input[value=joints]')")
            findings = load_findings(load_recording(copy))
            assert findings.skeleton is not None and findings.recording.rig is not None
            wrist = findings.skeleton.joint_names.index("left_wrist")
            camera = findings.recording.rig["cam01"]
            x, y = camera.project(findings.skeleton.positions[AT, wrist][None])[0]
            page.drag(SHEET, [_share(page, (x, y), width, height), _share(page, (x + 12, y), width, height)])
            wait_for(lambda: page.value("document.querySelectorAll('#edits li').length") == 2)
            (pose,) = load_edits(copy / "edits.toml").key_poses
            seen = camera.project(np.array([pose.joints["left_wrist"]]))[0]
            assert pose.frame == AT and np.allclose(seen, (x + 12, y), atol=1.5)
            page.picture(tmp_path / "dragged.png")

            page.click("document.getElementById('run')")
            wait_for(lambda: page.value("document.body.dataset.running") == "no", 5 * PATIENCE_S)
            page.picture(tmp_path / "run.png")
    finally:
        viewer.stop()
    masks = [read_masks(place / "results" / "silhouettes.h5", "cam01") for place in (finished, copy)]
    assert np.flatnonzero((masks[0] != masks[1]).any(axis=(1, 2))).tolist() == [AT]
    assert masks[1][AT, 40, 30:61].all()
    before, after = positions(finished), positions(copy)
    assert np.allclose(after[AT, wrist], pose.joints["left_wrist"], atol=1.0)
    moved = np.flatnonzero(np.abs(before - after).max(axis=(1, 2)) > 0.3)
    assert AT in moved and (copy / "results" / "report.html").is_file()
    trunk = [k for k, name in enumerate(findings.skeleton.joint_names) if not name.startswith("left_")]
    with h5py.File(copy / "results" / "track.h5") as new, h5py.File(finished / "results" / "track.h5") as old:
        tracked = np.flatnonzero((new["centres"][:] != old["centres"][:]).any(axis=(1, 2)))
    far = [frame for frame in range(len(before)) if np.abs(frame - tracked).min() > 4]
    assert np.abs(before[far][:, trunk] - after[far][:, trunk]).max(initial=0.0) < 1e-9


def _share(page: object, pixel: tuple[float, float], width: int, height: int) -> tuple[float, float]:
    """Return where a pixel of the image lies on the sheet, as shares of its width and height."""
    w, h = page.value(f"[{SHEET}.clientWidth, {SHEET}.clientHeight]")  # type: ignore[attr-defined]
    scale = min(w / width, h / height)
    left, top = (w - width * scale) / 2, (h - height * scale) / 2
    return (left + (pixel[0] + 0.5) * scale) / w, (top + (pixel[1] + 0.5) * scale) / h


def test_what_cannot_be_is_answered_and_nothing_is_saved(copy: Path) -> None:
    desk = Desk(load_findings(load_recording(copy)))
    for asked, words in (
        (None, "wanted a message"),
        ({"do": "delete"}, "unknown request"),
        ({"do": "look", "camera": "cam99", "frame": 0}, "no camera 'cam99'"),
        ({"do": "look", "camera": "cam01", "frame": 99}, "is not one of"),
        ({"do": "stroke", "camera": "cam01", "frame": 0, "paint": True, "radius": 3, "path": []}, "wants a path"),
        ({"do": "stroke", "camera": "cam01", "frame": 0, "paint": True, "radius": 3, "path": [["a", 1]]}, "be read"),
        (
            {"do": "point", "camera": "cam01", "frame": 0, "kind": "wings", "name": "a", "x": 1, "y": 1},
            "joints or quads",
        ),
        ({"do": "lost", "from": 4, "to": 2}, "before the first"),
        ({"do": "lost", "from": 1, "to": 2, "limb": "wing"}, "no limb 'wing'"),
        ({"do": "name", "kind": "markers", "old": "nobody", "new": "x"}, "no marker 'nobody'"),
        ({"do": "undo", "index": 3}, "vivarig clean"),
    ):
        assert words in desk.answer(asked)["error"]
    assert not (copy / "edits.toml").exists()


def test_edits_are_listed_and_taken_back(copy: Path) -> None:
    desk = Desk(load_findings(load_recording(copy)))
    assert "error" not in desk.answer({"do": "drop", "camera": "cam01", "from": 1, "to": 2, "note": "hand"})
    assert "error" not in desk.answer({"do": "lost", "from": 4, "to": 4})
    marker = desk.answer({"do": "open"})["markers"][0]
    named = desk.answer({"do": "name", "kind": "markers", "old": marker, "new": "first marker"})
    assert named["markers"][0] == "first marker" and len(named["edits"]) == 3
    assert desk.answer({"do": "undo", "index": 0})["edits"][0].startswith("all lost")
    for _ in range(2):
        left = desk.answer({"do": "undo", "index": 0})["edits"]
    assert left == [] and not (copy / "edits.toml").exists()
