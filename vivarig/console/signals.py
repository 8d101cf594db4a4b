"""Ctrl-C and its like at any moment: one line, the right exit code, nothing half-written, no process left behind.

What is done is in files that are written whole, so that the program may end anywhere, as if killed, and be run again.
It does so from a thread that the operating system wakes: an exception in the main thread could come in the middle of an
import, be lost in a callback, or wait for a long computation.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["before_end", "end_on_signals"]

_last: list[Callable[[], None]] = []
_ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def before_end(last: Callable[[], None]) -> None:
    """Have something small done when a signal ends this process, from another thread than the main one."""
    _last.append(last)


def end_on_signals(who: str) -> None:
    """End this process on Ctrl-C or a request to terminate, with one line that begins with ``who``; codes 130, 143."""
    if os.name != "posix" or threading.current_thread() is not threading.main_thread():
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # one that comes in between waits, and is not lost
    for number in _ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _noticed)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reading, who), daemon=True).start()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _noticed(number: int, frame: FrameType | None) -> None:
    """Do nothing here: the number has been written to the pipe."""


def _watch(reading: int, who: str) -> None:
    while True:
        content = os.read(reading, 1)
        if not content:
            return
        if content[0] in _ENDING:
            _end(content[0], who)


def _end(number: int, who: str) -> None:
    from calibration.foundation.files import discard_unfinished

    _kill_children()
    for last in _last:
        with contextlib.suppress(Exception):
            last()
    discard_unfinished()
    clear = "\r\x1b[2K\x1b[?25h" if sys.stderr.isatty() else ""  # of a progress bar, which also hid the cursor
    os.write(2, f"{clear}{who}: stopped; run it again to go on from here\n".encode())
    os._exit(128 + number)


def _kill_children() -> None:
    """End the processes that other libraries started for us; our own workers notice by themselves."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        for child in multiprocessing.active_children():
            child.kill()
