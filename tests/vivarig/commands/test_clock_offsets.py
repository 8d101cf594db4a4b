"""Clock offsets that a calibration found go into the recordings that are named, and into no other file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from calibration.accuracy.report import CalibrationOutcome
from capture.recordings.recording import load_recording
from vivarig.calibration_stage.clock_offsets import offsets_of, write_clock_offsets


def outcome(offsets: list[float]) -> CalibrationOutcome:
    """Return as much of a calibration as tells the clocks."""
    names = tuple(f"cam{k + 1}" for k in range(len(offsets)))
    solution = SimpleNamespace(
        rig=SimpleNamespace(names=names),
        bundle=SimpleNamespace(bundle=SimpleNamespace(offsets=offsets)),
        freedoms=[SimpleNamespace(clock=True)] * len(offsets),
    )
    return SimpleNamespace(solution=solution)  # type: ignore[return-value]


def test_offsets_go_into_the_file_and_nothing_else_changes(tmp_path: Path) -> None:
    text = 'name = "m"  # mine\nrate_hz = 100.0\n\n[cameras.cam1]\nvideo = "a.mp4"\n[cameras.cam2]\nvideo = "b.mp4"\n'
    (tmp_path / "recording.toml").write_text(text)
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / name).write_bytes(b"")
    (said,) = write_clock_offsets(outcome([0.0, 0.2]), [tmp_path])
    assert "left as it is" in said and (tmp_path / "recording.toml").read_text() == text
    late = outcome([0.0, 3.04, -1.9])
    assert offsets_of(late) == {"cam2": 3, "cam3": -2}
    (said,) = write_clock_offsets(late, [tmp_path])
    assert "cam2 +3" in said and "cam3" not in said
    assert [footage.offset_frames for footage in load_recording(tmp_path).footage] == [0.0, 3.0]
    assert [line for line in (tmp_path / "recording.toml").read_text().splitlines() if "offset" not in line] == [
        line for line in text.splitlines() if "offset" not in line
    ]
