"""Progress where nobody watches: lines with percentages, now and then."""

from __future__ import annotations

import pytest

from vivarig.console.progress import PlainLines, StagesDisplay, progress_callback


def test_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    lines = PlainLines(20.0, lambda: now[0])
    for done in range(101):
        now[0] = float(done)
        lines.update("track", done, 100)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"track: {k} % ({k} of 100), {k} s" + (f", about {100 - k} s left" if k < 100 else "")
        for k in range(20, 101, 20)
    ]


def test_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_callback("hulls") as told, StagesDisplay() as display:
        display.add("hull", 5)
        for done in range(6):
            told(done, 5)
            display.running("hull 0", done)
        display.finished("hull 0", 5)
    assert capsys.readouterr().err == ""
