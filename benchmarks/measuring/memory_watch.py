"""The most memory that several processes held at once."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["MemoryWatch", "watch_memory"]


_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_GROWN = 1.01
"""The exact figure is asked for again when the resident pages are more than before by this factor."""


class MemoryWatch:
    """The highest sum seen so far, ``peak_mb``: each process's own pages, and its share of pages it shares (PSS).

    ``cpu_s`` is the processor time that looking took.
    """

    peak_mb = 0.0
    cpu_s = 0.0


def _rss_mb(process: int) -> float:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_MB
    return 0.0


def _pss_mb(process: int) -> float:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


@contextlib.contextmanager
def watch_memory(
    processes: Callable[[], list[int]], every_s: float = 0.25, *, own: bool = True
) -> Iterator[MemoryWatch]:
    """Watch this process (``own``) and those that ``processes`` names while the block runs (Linux).

    A process's share of what it shares is told by a walk through all its pages, which it waits for: a tenth of a core
    in a run of three processes, four times a second. So it is asked for only when the resident pages of all, which
    the kernel counts anyway, are more than ever before.
    """
    watch, over = MemoryWatch(), threading.Event()
    always = [os.getpid()] if own else []

    def look() -> None:
        most = 0.0
        while not over.wait(every_s):
            watched = [*always, *processes()]
            resident = sum(_rss_mb(one) for one in watched)
            if resident > _GROWN * most:
                most = resident
                watch.peak_mb = max(watch.peak_mb, sum(_pss_mb(one) for one in watched))
            watch.cpu_s = time.thread_time()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        over.set()
        thread.join()
