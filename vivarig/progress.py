"""Progress with an estimate of the time left, on the error stream so that results can be piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["progress", "progress_callback"]

T = TypeVar("T")


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
        disable=not sys.stderr.isatty(),
    )


def progress(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Pass ``items`` on while a bar shows how many are done and how long the rest will take."""
    with _display() as display:
        yield from display.track(items, total=total, description=label)


@contextmanager
def progress_callback(label: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function (done, total) for library code that reports its progress by a callback."""
    with _display() as display:
        task = display.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            display.update(task, completed=done, total=total)

        yield update
