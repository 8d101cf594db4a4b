"""The other end of `LocalWorkers`: reads tasks from its standard input, answers on its standard output."""

from __future__ import annotations

import gc
import os
import queue
import resource
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from calibration.foundation.errors import VivarigError
from vivarig.console.progress import relay_progress
from vivarig.jobs.free_memory import give_back
from vivarig.pipeline.workers import receive, send

_SELDOM = (100_000, 50, 1000)
"""When to look for cycles of objects: between tasks that is done anyway, and compiling makes millions that stay."""
_SWEEP_S = 20.0
"""How often all objects are looked through for cycles: that takes a tenth of a second. After each task it is only those
that came with it."""


def main() -> None:
    """Work until the parent closes the pipe or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not come between the answers
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                tasks.put(receive(sys.stdin.buffer))
        except EOFError:
            os._exit(0)  # at once, in the middle of a task too: files are written atomically

    threading.Thread(target=listen, daemon=True).start()

    def say(*message: Any) -> None:
        try:
            send(answers, message)
        except BrokenPipeError:
            os._exit(0)  # the parent is gone, which the listening thread may not have noticed yet

    relay_progress(lambda label, done, total: say("progress", label, done, total))
    gc.set_threshold(*_SELDOM)
    gc.freeze()  # what is imported stays
    gc.enable()  # who started this process switched it off for the imports
    swept = time.monotonic()
    while True:
        function, args, named = tasks.get()
        try:
            answer = ("done", function(*args, **named))
        except (VivarigError, OSError) as error:
            answer = ("failed", error)
        except Exception:  # noqa: BLE001  (a bug: its traceback is the parent's to raise)
            answer = ("failed", RuntimeError(traceback.format_exc()))
        say(*answer, _peak_rss_mb())
        del answer
        swept = _give_back_memory(swept)


def _give_back_memory(swept: float) -> float:
    """Give free memory back: a worker does all kinds of tasks, and the C library would keep what each once needed.

    Args:
        swept: when all objects were looked through last, s.

    Returns:
        When they were, now.
    """
    if time.monotonic() - swept > _SWEEP_S:
        gc.unfreeze()
        swept = time.monotonic()
    gc.collect()
    gc.freeze()
    give_back()
    return swept


def _peak_rss_mb() -> float:
    """Return the most memory this process ever held, MB.

    Linux counts into ``ru_maxrss`` what the parent held when it started this process, so its own mark is read there.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == "__main__":
    main()
