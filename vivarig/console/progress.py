"""Progress with an estimate of the time left, on the error stream so that results can be piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = [
    "PlainLines",
    "StagesDisplay",
    "in_passes",
    "progress",
    "progress_callback",
    "relay_progress",
    "silence_progress",
]

T = TypeVar("T")

_relay: Callable[[str, int, int], None] | None = None
_silent = False


def relay_progress(
    listener: Callable[[str, int, int], None] | None,
) -> Callable[[str, int, int], None] | None:
    """Send all progress of this process to ``listener`` (label, done, total) instead of showing it.

    The listener before is returned, None where there was none.
    """
    global _relay
    before, _relay = _relay, listener
    return before


def silence_progress(silent: bool) -> None:
    """Show no progress of what this process does from now on, or show it again."""
    global _silent
    _silent = silent


class PlainLines:
    """Progress as lines with percentages, for output that goes to a file: one line of each label now and then.

    Args:
        every_s: least time between two lines of a label; work that is done sooner says nothing.
        clock: seconds, for tests.
    """

    def __init__(self, every_s: float = 20.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every_s, clock
        self._begun: dict[str, float] = {}
        self._said: dict[str, float] = {}

    def update(self, label: str, done: int, total: int | None) -> None:
        """Take note of what is done; say it if the last line is old enough."""
        now = self._clock()
        begun = self._begun.setdefault(label, now)
        if now - self._said.get(label, begun) < self._every or not total:
            return
        self._said[label] = now
        left = (now - begun) * (total - done) / done if done else float("nan")
        words = f", about {left:.0f} s left" if 0 < left < 1e6 else ""
        sys.stderr.write(f"{label}: {100 * done / total:.0f} % ({done} of {total}), {now - begun:.0f} s{words}\n")
        sys.stderr.flush()


def _display() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=_silent or not sys.stderr.isatty(),
    )


def progress(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Pass ``items`` on while a bar shows how many are done and how long the rest will take."""
    with _display() as display:
        yield from display.track(items, total=total, description=label)


@contextmanager
def progress_callback(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) for library code that reports its progress by a callback."""
    if _relay is not None:
        listener = _relay
        yield lambda done, total: listener(label, done, total)
        return
    lines = PlainLines()
    with _display() as display:
        task = display.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)
            if not sys.stderr.isatty() and not _silent:
                lines.update(label, done, total)

        yield update


def in_passes(
    on_progress: Callable[[int, int], None], frames: int, passes: int
) -> tuple[Callable[[int, int], None], ...]:
    """Return a listener (done, total) for each of some passes over the same frames, each a share of them.

    What is done beyond the frames, at a part's ends, does not count.
    """

    def one(number: int) -> Callable[[int, int], None]:
        return lambda done, total: on_progress(frames * (number * total + done) // (passes * max(total, 1)), frames)

    return tuple(one(number) for number in range(passes))


class StagesDisplay:
    """One bar per stage for work that is done in parts, here or elsewhere, in any order."""

    def __init__(self, *, show: bool = True) -> None:
        self._display = _display()
        self._display.disable |= not show
        self._lines = PlainLines() if show and not _silent and not sys.stderr.isatty() else None
        self._totals: dict[str, int] = {}
        self._bars: dict[str, TaskID] = {}
        self._running: dict[str, dict[str, int]] = {}
        self._done: dict[str, int] = {}

    def __enter__(self) -> StagesDisplay:
        """Show the bars."""
        self._display.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Take them away."""
        self._display.stop()

    def add(self, stage: str, total: int) -> None:
        """Add a stage of so many frames."""
        self._bars[stage] = self._display.add_task(stage, total=total)
        self._running[stage], self._done[stage], self._totals[stage] = {}, 0, total

    def running(self, label: str, done: int) -> None:
        """Take note of the frames done in a part; its label is the stage, a blank and the part."""
        stage, _, part = label.partition(" ")
        if stage in self._bars:
            self._running[stage][part] = done
            self._show(stage)

    def finished(self, label: str, frames: int) -> None:
        """Take note that a part of so many frames is done."""
        stage, _, part = label.partition(" ")
        if stage in self._bars:
            self._running[stage].pop(part, None)
            self._done[stage] += frames
            self._show(stage)

    def _show(self, stage: str) -> None:
        done = self._done[stage] + sum(self._running[stage].values())
        self._display.update(self._bars[stage], completed=done)
        if self._lines is not None:
            self._lines.update(stage, done, self._totals[stage])
