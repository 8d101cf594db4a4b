"""``vivarig sync`` and the cameras that ``vivarig silhouettes`` names, on masks alone."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from example_rigs import ring
from walking_body import seen

from calibration.cameras.rig import save_rig
from vivarig.cli import main

FRAMES = 40


def recording(place: Path, late: dict[int, float], offsets: dict[int, int] | None = None, *, rig: bool = True) -> Path:
    """Write masks of four cameras, some late, as a recording."""
    cameras = ring(4, distortion=0)
    text = "rate_hz = 30\n"
    for index, (camera, outlines) in enumerate(zip(cameras, seen(cameras, late, FRAMES), strict=True)):
        folder = place / camera.name
        folder.mkdir(parents=True)
        for frame, corners in enumerate(np.split(outlines.pixels, outlines.starts[1:-1])):
            mask = np.zeros((480, 640), np.uint8)
            cv2.fillConvexPoly(mask, corners.astype(np.int32), 255)
            cv2.imwrite(str(folder / f"{frame}.png"), mask)
        text += f'[cameras.{camera.name}]\nmasks = "{camera.name}"\noffset = {(offsets or {}).get(index, 0)}\n'
    if rig:
        save_rig(cameras, place / "rig.toml")
    (place / "recording.toml").write_text(text)
    return place


def test_the_camera_that_is_late_is_named_and_its_offset_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = recording(tmp_path / "r", {2: 4.0})
    report = tmp_path / "report.json"
    assert main(["silhouettes", str(place), "--no-repair", "--json", str(report)]) == 1
    assert "cam3 is 4.0 frames late" in capsys.readouterr().out
    (fault,) = json.loads(report.read_text())["camera_checks"]["faults"]
    assert (fault["camera"], fault["kind"]) == ("cam3", "late") and fault["frames"] == pytest.approx(4.0, abs=0.2)
    text = (place / "recording.toml").read_text().splitlines()
    text[text.index("[cameras.cam3]") + 2] = "offset = 4"
    (place / "recording.toml").write_text("\n".join(text))
    assert main(["silhouettes", str(place), "--no-repair"]) == 0
    assert "camera wrong" not in capsys.readouterr().out


def test_sync_takes_what_is_given_into_account(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recording(tmp_path / "r", {1: 3.0, 3: -2.0}, {1: 1})
    report = tmp_path / "report.json"
    assert main(["sync", str(place), "--most", "8", "--json", str(report)]) == 0
    offsets = json.loads(report.read_text())["offsets"]
    assert [offsets[f"cam{n}"]["frames"] for n in (1, 2, 3, 4)] == pytest.approx([0.0, 3.0, 0.0, -2.0], abs=0.25)
    said = capsys.readouterr().out
    assert "cam2 offset = 3, cam4 offset = -2" in said and "has 1 already" in said


def test_sync_without_rig_does_not_invent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recording(tmp_path / "r", {1: 3.0}, rig=False)
    assert main(["sync", str(place)]) == 1
    assert "cannot tell" in capsys.readouterr().out


def test_cameras_of_different_image_sizes_work_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = recording(tmp_path / "r", {})
    for image in sorted((place / "cam2").iterdir()):
        small = cv2.resize(cv2.imread(str(image), cv2.IMREAD_GRAYSCALE), (320, 240), interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(image), np.where(small > 127, 255, 0).astype(np.uint8))
    assert main(["silhouettes", str(place), "--no-repair"]) == 2
    assert "--camera cam2 --scale 320x240" in capsys.readouterr().err
    assert (
        main(["convert", str(place / "rig.toml"), str(place / "rig.toml"), "--camera", "cam2", "--scale", "0.5"]) == 0
    )
    report = tmp_path / "report.json"
    assert main(["silhouettes", str(place), "--no-repair", "--json", str(report)]) == 0
    checks = json.loads(report.read_text())["camera_checks"]
    assert checks["faults"] == [] and max(checks["disagreement_px"].values()) < 0.6
    assert main(["hull", str(place)]) == 0
