"""Ctrl-C and its like at any moment: one line, codes 130 and 143, no process left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from small_recordings import cut_recording

from vivarig.pipeline.workers import send

CODE = "import sys; sys.argv = ['vivarig', 'run', sys.argv[1], '--workers', '2', '--until', 'hull']; " \
       "from vivarig.cli import main; sys.exit(main())"  # fmt: skip
PATIENCE_S = 300.0
"""How long a loaded machine may take for what takes seconds."""


#: What is waited for, never by a clock: a busy machine may take its time.
MOMENTS: dict[str, Callable[[int, Path], bool]] = {
    "signals are caught": lambda pid, place: _catches(pid, signal.SIGTERM),
    "imports": lambda pid, place: _catches(pid, signal.SIGTERM) and _cpu_seconds(pid) > 0.3,
    "work": lambda pid, place: any(files for _, _, files in os.walk(place / "results" / "parts")),
}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("moment", MOMENTS)
def test_signals_end_a_run_at_any_moment(tmp_path: Path, number: int, code: int, moment: str) -> None:
    place = tmp_path / "a"
    cut_recording(place)
    for _ in range(5):
        ended, said, group = _signalled(place, number, MOMENTS[moment])
        if ended != 0:
            break
        shutil.rmtree(place / "results")  # it was done before the signal came
    assert ended == code, said
    lines = [line for line in said.splitlines() if "stopped" in line or "Traceback" in line]
    assert lines == ["vivarig run: stopped; run it again to go on from here"]
    assert _comes(lambda: not _alive(group)), "processes were left behind"


def _signalled(place: Path, number: int, moment: Callable[[int, Path], bool]) -> tuple[int, str, int]:
    """Start a run, send its group a signal at a moment; return how it ended, what it said, and the group."""
    with subprocess.Popen(
        [sys.executable, "-c", CODE, str(place)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
        # a shell that starts the tests in the background has them ignore Ctrl-C, and a child would inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as child:  # fmt: skip
        try:
            assert _comes(lambda: child.poll() is not None or moment(child.pid, place)), "it never came so far"
            if child.returncode is None:
                os.killpg(child.pid, number)
            _, said = child.communicate(timeout=PATIENCE_S)
        finally:
            child.kill()
    return child.returncode, said, child.pid


def _comes(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE_S
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def _catches(pid: int, number: int) -> bool:
    """Return whether a process has a handler of its own for a signal."""
    mask = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return mask is not None and bool(int(mask[1], 16) >> (number - 1) & 1)


def _cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_worker_whose_parent_is_gone_before_its_answer_ends_without_a_word() -> None:
    reading, writing = os.pipe()
    child = subprocess.Popen(
        [sys.executable, "-c", "from vivarig.pipeline.worker import main; main()"],
        stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writing)
    os.close(reading)  # nobody will read the answer, and the pipe of tasks stays open as if not yet noticed
    assert child.stdin is not None and child.stderr is not None
    send(child.stdin, (abs, (-1,), {}))
    assert child.wait(timeout=PATIENCE_S) == 0
    assert child.stderr.read() == b""
    child.stdin.close()
    child.stderr.close()
