"""What the viewer draws: two recordings beside each other, limbs in the colours of their trust, errors, reasons."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from headless_browser import open_page, wait_for
from small_recordings import cut_recording
from written_results import DOUBTED, LOST, write_results

from calibration.geometry.transforms import rotation_from_quaternion
from vivarig.results.findings import load_findings
from vivarig.viewer import Viewer


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    shown = []
    for name in ("first", "second"):
        recording = cut_recording(tmp_path_factory.mktemp("layers") / name, frames=14, cameras=2)
        write_results(recording, 14)
        shown.append(load_findings(recording))
    viewer = Viewer(shown[0], "127.0.0.1", 8969, shown[1])
    yield viewer
    viewer.stop()


def test_two_recordings_stand_side_by_side(viewer: Viewer) -> None:
    first, second = viewer.layers
    viewer.show(0)
    assert {"template", "skeleton", "markers"} <= set(first.handles) & set(second.handles)
    reach = [layers.at(layers.findings.skeleton.positions[:])[..., 0] for layers in viewer.layers]  # type: ignore[union-attr]
    assert reach[0].max() < reach[1].min()


def test_a_limb_that_is_doubted_has_another_colour_and_its_reason_in_words(viewer: Viewer) -> None:
    viewer.show(DOUBTED.start)
    assert "left fore doubtful: fewer than two views show it" in viewer.words.content
    colours = [viewer.layers[0].handles[key].color for key in ("template", "template_1")]
    assert tuple(colours[0]) != tuple(colours[1])
    viewer.show(LOST.start)
    assert "lost: fewer than two cameras see the subject" in viewer.words.content
    assert "template_1" not in viewer.layers[0].handles


def test_the_line_of_trust_has_a_row_for_each_limb_and_a_cursor(viewer: Viewer) -> None:
    viewer.show(0)
    start = np.asarray(viewer.lines[0].image).copy()
    viewer.show(12)
    assert start.shape == (36, 420, 3) and (np.asarray(viewer.lines[0].image) != start).any()


def test_a_click_on_a_joint_tells_its_name(viewer: Viewer) -> None:
    viewer.slider.value = 1
    viewer.show(1)
    skeleton = viewer.layers[1].findings.skeleton
    assert skeleton is not None
    place = viewer.layers[1].at(skeleton.positions[1])[3]
    origin = place + np.array([3.0, -2.0, 1.0])
    viewer._toggles["markers"].value = False
    assert viewer.point_at(origin, place - origin) == skeleton.joint_names[3].replace("_", " ")
    assert viewer._pointed is not None and np.allclose(viewer._pointed.position, place)
    assert viewer.point_at(origin, [0.0, 0.0, 1.0]) == "" and viewer._pointed is None
    viewer._toggles["markers"].value = True


@pytest.mark.slow
def test_the_mouse_over_a_joint_shows_its_name_in_the_browser(viewer: Viewer, tmp_path: Path) -> None:
    viewer._toggles["markers"].value = False
    viewer.show(int(viewer.slider.value))
    skeleton = viewer.layers[0].findings.skeleton
    assert skeleton is not None
    places = viewer.layers[0].at(skeleton.positions[int(viewer.slider.value)])

    def named() -> bool:
        cameras = [one.camera for one in viewer.server.get_clients().values() if one.camera.update_timestamp > 0]
        if not cameras or not page.value("document.querySelector('canvas') !== null"):
            return False
        camera = cameras[-1]
        turn = rotation_from_quaternion(np.asarray(camera.wxyz))
        x, y, z = ((places - camera.position) @ turn).T
        half = np.tan(camera.fov / 2)
        across, down = x / z / half / camera.aspect / 2 + 0.5, y / z / half / 2 + 0.5
        # One whose neighbours are not in its place, and that is not under the panel on the right.
        joint = int(np.argmin(across))
        page.hover("document.querySelector('canvas')", float(across[joint]), float(down[joint]))
        said = page.value("document.getElementById('vivarig-name').textContent")
        return bool(said == skeleton.joint_names[joint].replace("_", " "))

    try:
        with open_page(viewer.address, tmp_path / "profile") as page:
            wait_for(named)
            page.hover("document.querySelector('canvas')", 0.02, 0.98)
            wait_for(lambda: page.value("document.getElementById('vivarig-name').style.display") == "none")
    finally:
        viewer._toggles["markers"].value = True
    assert viewer._answer({"do": "name", "x": 2, "y": "far", "aspect": None}) == {"name": ""}


def test_names_and_errors_are_shown_when_asked_for(viewer: Viewer) -> None:
    viewer._toggles["names"].value = True
    viewer.colours.value = "error"
    viewer.show(1)
    assert "names" in viewer.layers[0].handles and "1 sigma" in viewer.words.content
    viewer._toggles["names"].value = False
    viewer.colours.value = "trust"
    viewer.show(1)
    assert "names" not in viewer.layers[0].handles and "1 sigma" not in viewer.words.content
