"""Offsets go into recording.toml and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.foundation.errors import InputError
from capture.recordings.offset_writing import write_offsets

TEXT = """# my mouse, Tuesday
rate_hz = 120.0   # by the trigger box
subject = "mouse"

[cameras.cam01]   # above
video = "a.mp4"
offset = 2  # from the flash

[cameras."cam 2"]
video = "b.mp4"
# plate still missing

[track]
texture = false
"""


def test_comments_and_order_stay(tmp_path: Path) -> None:
    (tmp_path / "recording.toml").write_text(TEXT)
    write_offsets(tmp_path, {"cam01": 3.0, "cam 2": -1.25})
    wanted = TEXT.replace("offset = 2  # from", "offset = 3  # from").replace(
        'video = "b.mp4"\n', 'video = "b.mp4"\noffset = -1.25\n'
    )
    assert (tmp_path / "recording.toml").read_text() == wanted


@pytest.mark.parametrize(
    ("text", "name"),
    [('rate_hz = 1.0\ncameras = {cam01 = {video = "a.mp4"}}\n', "cam01"), (TEXT, "cam03")],
)
def test_what_cannot_be_written_so_is_left_alone(tmp_path: Path, text: str, name: str) -> None:
    (tmp_path / "recording.toml").write_text(text)
    with pytest.raises(InputError, match=f"write by hand: {name}: offset = 4"):
        write_offsets(tmp_path, {name: 4.0})
    assert (tmp_path / "recording.toml").read_text() == text
