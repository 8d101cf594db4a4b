"""Recordings of a folder done as they arrive: each when its files have stopped changing, again when they change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from calibration.foundation.errors import VivarigError, one_line
from capture.recordings.recording import load_recording
from vivarig.console.status_page import RecordingStatus, write_status_page
from vivarig.pipeline.runner import RunOptions, StageOutcome, run_recording
from vivarig.pipeline.schedule import Workers

__all__ = ["STATUS_PAGE", "Watch"]

STATUS_PAGE = "vivarig-status.html"
Tell = Callable[[str], None]
Stamp = tuple[tuple[str, int, int], ...]
"""What tells whether a recording changed: name, size and time of each of its files."""


class Watch:
    """What a folder of recordings holds, and how far each is.

    A restart forgets what was done and runs each recording again, which keeps all that is in order.
    """

    def __init__(self, folder: Path, options: RunOptions, workers: Workers, *, settle_s: float, tell: Tell) -> None:
        self.folder = folder
        self.options = options
        self.workers = workers
        self.settle_s = settle_s
        self.tell = tell
        self.status: dict[str, RecordingStatus] = {}
        self._done: dict[str, Stamp] = {}

    def look(self) -> bool:
        """Do every recording that has settled and is not done; return whether one is still arriving."""
        arriving = False
        for place in _recordings(self.folder):
            stamp, newest = _stamp(place)
            if self._done.get(place.name) == stamp:
                continue
            if time.time() - newest < self.settle_s:
                arriving = True
                if self.status.get(place.name, RecordingStatus("", "")).state != "arriving":
                    self._say(RecordingStatus(place.name, "arriving"))
                continue
            self._done[place.name] = stamp
            self._say(self._run(place))
        self._write()
        return arriving

    def _run(self, place: Path) -> RecordingStatus:
        self._say(RecordingStatus(place.name, "working"))

        def at_stage(stage: str, text: str) -> None:
            self._say(RecordingStatus(place.name, "working", f"{stage}: {text}"))

        try:
            outcomes = run_recording(load_recording(place), self.options, at_stage, self.workers)
        except (VivarigError, OSError) as error:
            return RecordingStatus(place.name, "failed", one_line(error), self._report(place))
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in outcomes if one.reason)
        return RecordingStatus(
            place.name, "look" if reasons else "done", reasons or _took(outcomes), self._report(place)
        )

    def _report(self, place: Path) -> Path | None:
        report = place / "results" / "report.html"
        return report.relative_to(self.folder) if report.is_file() else None

    def _say(self, status: RecordingStatus) -> None:
        self.status[status.name] = status
        self.tell(f"{status.name}: {status.state}{': ' if status.text else ''}{status.text}")
        self._write()

    def _write(self) -> None:
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        write_status_page(self.folder / STATUS_PAGE, self.folder.resolve().name, when, list(self.status.values()))


def _took(outcomes: list[StageOutcome]) -> str:
    worked = sum(one.seconds for one in outcomes if one.status != "kept")
    return f"{worked:.0f} s of work" if worked else "nothing to do"


def _recordings(folder: Path) -> Iterator[Path]:
    """Yield the sub-folders that hold a recording.toml, by name."""
    for place in sorted(folder.iterdir()):
        if not place.name.startswith(".") and (place / "recording.toml").is_file():
            yield place


def _stamp(place: Path) -> tuple[Stamp, float]:
    """Return what tells whether the user's files of a recording changed, and when the last of them did."""
    rows, newest = [], 0.0
    for path in sorted(place.rglob("*")):
        inside = path.relative_to(place)
        if inside.parts[0] == "results" or not path.is_file():
            continue
        known = path.stat()
        rows.append((inside.as_posix(), known.st_size, known.st_mtime_ns))
        newest = max(newest, known.st_mtime)
    return tuple(rows), newest
