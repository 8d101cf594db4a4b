"""Recordings of a folder done as they arrive: each when its files have stopped changing, again when they change."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from calibration.foundation.errors import VivarigError, one_line
from capture.recordings.recording import load_recording
from vivarig.console.status_page import RecordingStatus, write_status_page
from vivarig.jobs.lock import ResultsBusyError
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
        self.clock: Callable[[], float] = time.time
        self.status: dict[str, RecordingStatus] = {}
        self._done: dict[str, Stamp] = {}
        self._seen: dict[str, tuple[Stamp, float]] = {}
        self._trouble = ""

    def look(self) -> bool:
        """Do every recording that has settled and is not done; return whether one is still arriving.

        A folder that cannot be read just now (a network share) is waited for.
        """
        try:
            places = list(_recordings(self.folder))
        except OSError as error:
            if self._trouble != one_line(error):
                self._trouble = one_line(error)
                self.tell(f"waiting for {self.folder}: {self._trouble}")
            return True
        self._trouble = ""
        arriving = False
        for place in places:
            stamp, newest = _stamp(place)
            if self._done.get(place.name) == stamp:
                continue
            if not self._settled(place.name, stamp, newest):
                arriving = True
                if self.status.get(place.name, RecordingStatus("", "")).state != "arriving":
                    self._say(RecordingStatus(place.name, "arriving"))
                continue
            status = self._run(place)
            if status.state == "busy":
                arriving = True
            else:
                self._done[place.name] = stamp
            if status != self.status.get(place.name):
                self._say(status)
        self._write()
        return arriving

    def stop(self) -> None:
        """Say on the page that nobody watches any more; what was being worked on goes on with the next watch."""
        for name, status in self.status.items():
            if status.state == "working":
                self.status[name] = RecordingStatus(name, "stopped", "goes on with the next `vivarig watch`")
        self._write(watching=False)

    def _settled(self, name: str, stamp: Stamp, newest: float) -> bool:
        """Return whether a recording's files have stopped changing, by their times or as seen from here.

        (The clock of the machine that writes them may be ahead of ours.)
        """
        now = self.clock()
        if self._seen.get(name, ((), 0.0))[0] != stamp:
            self._seen[name] = (stamp, now)
        return now - newest >= self.settle_s or now - self._seen[name][1] >= self.settle_s

    def _run(self, place: Path) -> RecordingStatus:
        busy = RecordingStatus(place.name, "busy", "another command is working on it")
        if self.status.get(place.name) != busy:
            self._say(RecordingStatus(place.name, "working"))

        def at_stage(stage: str, text: str) -> None:
            self._say(RecordingStatus(place.name, "working", f"{stage}: {text}"))

        try:
            outcomes = run_recording(load_recording(place), self.options, at_stage, self.workers)
        except ResultsBusyError:
            return busy
        except (VivarigError, OSError) as error:
            return RecordingStatus(place.name, "failed", one_line(error), self._report(place))
        except Exception as error:  # noqa: BLE001  (a bug must not end a laboratory's day)
            self.tell(traceback.format_exc())
            said = f"a bug of Vivarig: {type(error).__name__}: {error}"
            return RecordingStatus(place.name, "failed", said, self._report(place))
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

    def _write(self, *, watching: bool = True) -> None:
        when = time.strftime("%Y-%m-%d %H:%M:%S")
        said = when if watching else f"not watched since {when}"
        write_status_page(self.folder / STATUS_PAGE, self.folder.resolve().name, said, list(self.status.values()))


def _took(outcomes: list[StageOutcome]) -> str:
    worked = sum(one.seconds for one in outcomes if one.status != "kept")
    return f"{worked:.0f} s of work" if worked else "nothing to do"


def _recordings(folder: Path) -> Iterator[Path]:
    """Yield the sub-folders that hold a recording.toml, by name."""
    for place in sorted(folder.iterdir()):
        if not place.name.startswith(".") and (place / "recording.toml").is_file():
            yield place


def _stamp(place: Path) -> tuple[Stamp, float]:
    """Return what tells whether the user's files of a recording changed, and when the last of them did.

    A copy that keeps a file's time still sets when the file itself was last touched, and a new one its folder's.
    """
    rows, newest = [], place.stat().st_mtime
    for path in sorted(place.rglob("*")):
        inside = path.relative_to(place)
        if inside.parts[0] == "results":
            continue
        try:
            known = path.stat()
        except OSError:  # gone meanwhile: it is being copied under another name
            continue
        newest = max(newest, known.st_mtime, known.st_ctime)
        if path.is_file():
            rows.append((inside.as_posix(), known.st_size, known.st_mtime_ns))
    return tuple(rows), newest
