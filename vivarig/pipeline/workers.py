"""Worker processes on this machine: each runs one task at a time on one core, and a dead one is replaced.

They are plain children that speak through pipes, not `multiprocessing`: a script needs no main guard, the environment
(one thread each) is set before anything is imported, and when the parent is killed they notice and stop at once.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import IO, Any

from calibration.foundation.errors import SolveError

__all__ = ["Inline", "LocalWorkers", "receive", "send"]

_TRIES = 3
_ONE_THREAD = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LENGTH = struct.Struct("<Q")
#: Ctrl-C goes to the parent's whole group: it is ignored before the imports, which take a second. These leave no
#: cycles of objects worth a look.
_WORKER = (
    "import gc, signal; signal.signal(signal.SIGINT, signal.SIG_IGN); gc.disable(); "
    "from vivarig.pipeline.worker import main; main()"
)


def send(pipe: IO[bytes], message: Any) -> None:
    """Write one message to a pipe."""
    content = pickle.dumps(message)
    pipe.write(_LENGTH.pack(len(content)) + content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Read one message from a pipe; EOFError when the other side is gone."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return pickle.loads(content)


class Inline(Executor):
    """Runs each task at once, in this process."""

    capacity = 1

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Run the task and return its finished future."""
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **named))
        except Exception as error:  # noqa: BLE001  (raised again by the future)
            future.set_exception(error)
        return future


@dataclass
class _Task:
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    future: Future[Any]


class LocalWorkers(Executor):
    """So many worker processes.

    Attributes:
        capacity: their number.
        on_progress: told (label, frames done, frames in all) of a running task, from a thread.
    """

    def __init__(self, count: int) -> None:
        self.capacity = count
        self.on_progress: Callable[[str, int, int], None] | None = None
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._peaks: dict[int, float] = {}
        self._closed = False
        self._threads = [threading.Thread(target=self._serve, args=(k,), daemon=True) for k in range(count)]
        for thread in self._threads:
            thread.start()

    @property
    def peak_rss_mb(self) -> float:
        """Sum over the workers of the most memory that each ever held."""
        return sum(self._peaks.values())

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that run."""
        return [child.pid for child in list(self._children.values())]

    def start(self, count: int) -> None:
        """Start so many of the processes now, which takes each a second, instead of with their first task."""
        for _ in range(min(count, self.capacity) - len(self._children)):
            self.submit(_nothing)

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Put a task in the queue; its function and arguments must pickle."""
        future: Future[Any] = Future()
        self._tasks.put(_Task((function, args, named), future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers; a running task is given up."""
        self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
        for child in list(self._children.values()):
            child.kill()
        if wait:
            for thread in self._threads:
                thread.join()

    def _serve(self, index: int) -> None:
        # Children inherit this: Ctrl-C is the parent's to decide on, from their first moment.
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        while (task := self._tasks.get()) is not None:
            if task.future.set_running_or_notify_cancel():
                self._run(index, task)
        child = self._children.pop(index, None)
        if child is not None:
            _end(child)

    def _run(self, index: int, task: _Task) -> None:
        for _ in range(_TRIES):
            if self._closed:
                break
            try:
                child = self._children.get(index)
                if child is None:
                    child = self._children[index] = _start()
                assert child.stdin is not None and child.stdout is not None
                send(child.stdin, task.call)
                while (message := receive(child.stdout))[0] == "progress":
                    if self.on_progress is not None:
                        self.on_progress(*message[1:])
            except (EOFError, OSError, pickle.UnpicklingError):
                dead = self._children.pop(index, None)
                if dead is not None:
                    _end(dead)
                continue
            kind, value, rss = message
            self._peaks[index] = max(self._peaks.get(index, 0.0), rss)
            if kind == "done":
                task.future.set_result(value)
            else:
                task.future.set_exception(value)
            return
        task.future.set_exception(
            SolveError(f"a worker process died {_TRIES} times on the same task; is there memory enough?")
        )


def _nothing() -> None:
    """Do nothing: what a process is started with."""


def _start() -> subprocess.Popen[bytes]:
    environment = dict(os.environ)
    for name in _ONE_THREAD:
        environment[name] = "1"
    environment["PYTHONPATH"] = os.pathsep.join([place or os.getcwd() for place in sys.path])
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # what was not sent before it died
                continue
