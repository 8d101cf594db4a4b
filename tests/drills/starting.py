"""Commands as processes of their own: started cold, or forked from this process, which has everything imported."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Running:
    """A command in a group of its own.

    Attributes:
        pid: its process, and its group.
        said: file of what it says on standard error.
        child: the process, if it was started cold.
        code: how it ended; None while it runs.
    """

    pid: int
    said: Path
    child: subprocess.Popen[bytes] | None = None
    code: int | None = None

    def ended(self) -> bool:
        """Return whether it has."""
        if self.code is None and self.child is not None:
            self.code = self.child.poll()
        elif self.code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if done else None
        return self.code is not None

    def wait(self, patience: float = 900.0) -> tuple[int, str]:
        """Return how it ended and what it said."""
        end = time.monotonic() + patience
        while not self.ended():
            if time.monotonic() > end:
                os.killpg(self.pid, signal.SIGKILL)
                raise TimeoutError(f"did not end within {patience:.0f} s: {self.said.read_text()[-300:]}")
            time.sleep(0.02)
        said = self.said.read_text(errors="replace")
        self.said.unlink()
        assert self.code is not None
        return self.code, said

    def processes(self) -> list[int]:
        """Return the processes of its group, itself first."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if os.getpgid(int(place.name)) == self.pid:
                    found.append(int(place.name))
            except ProcessLookupError:
                continue
        return sorted(found, key=lambda pid: pid != self.pid)

    def cpu_seconds(self) -> float:
        """Return the processor time of its group so far: a clock that stands still while others have the machine."""
        total = 0
        for pid in self.processes():
            try:
                words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            total += int(words[11]) + int(words[12])
        return total / _TICK

    def gone(self, patience: float = 300.0) -> bool:
        """Return whether all its processes have ended, waiting a little."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                os.killpg(self.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)
        os.killpg(self.pid, signal.SIGKILL)
        return False


def start(words: tuple[str, ...], folder: Path, most_bytes: int | None = None) -> Running:
    """Start a command; with a limit on the size of files, as a full disk would set one."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    handle, said = tempfile.mkstemp()
    line = [sys.executable, "-m", "vivarig.cli", *_put(words, folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment.pop("NUMBA_THREADING_LAYER", None)  # that of the forks: see drill.py
    child = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=handle, start_new_session=True, env=environment, preexec_fn=limit
    )
    os.close(handle)
    return Running(child.pid, Path(said), child)


def fork(words: tuple[str, ...], folder: Path) -> Running:
    """Start a command in a fork of this process, which spares the seconds of its imports; for --workers 1 alone."""
    from vivarig.cli import main

    handle, said = tempfile.mkstemp()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            os.setsid()
            os.dup2(handle, 2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            sys.argv = ["vivarig", *_put(words, folder)]
            code = main()
        finally:
            os._exit(code)
    os.close(handle)
    while os.getpgid(pid) != pid:  # it must have its group before it is killed by it
        time.sleep(0.001)
    return Running(pid, Path(said))


def _put(words: tuple[str, ...], folder: Path) -> list[str]:
    return [word.replace("{}", str(folder)) for word in words]


def verdict(code: int, said: str) -> str:
    """Return what is wrong with how a command ended; empty if nothing."""
    if "Traceback" in said:
        return f"traceback: {said[-1500:]}"
    if code < 0 and -code not in SIGNALS:
        return f"crash by signal {-code}"
    if code == 2 and sum(line.startswith("vivarig ") for line in said.splitlines()) != 1:
        return f"not one line: {said[-200:]!r}"
    return ""
