"""Ctrl-C and its like at any moment: one line, codes 130 and 143, no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_recordings import cut_recording

from vivarig.pipeline.workers import send

CODE = "import sys; sys.argv = ['vivarig', 'run', sys.argv[1], '--workers', '2', '--until', 'hull']; " \
       "from vivarig.cli import main; sys.exit(main())"  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("after", [0.0, 0.7, 4.0])
def test_signals_end_a_run_at_any_moment(tmp_path: Path, number: int, code: int, after: float) -> None:
    cut_recording(tmp_path / "a")
    hello = CODE.replace("sys.exit", "print('up', flush=True); sys.exit")
    child = subprocess.Popen(
        [sys.executable, "-c", hello, str(tmp_path / "a")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        # a shell that starts the tests in the background has them ignore Ctrl-C, and a child would inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == "up\n"
    time.sleep(0.05 + after)
    os.killpg(child.pid, number)
    _, said = child.communicate(timeout=20)
    assert child.returncode == code, said
    lines = [line for line in said.splitlines() if "stopped" in line or "Traceback" in line]
    assert lines == ["vivarig run: stopped; run it again to go on from here"]
    for _ in range(100):
        if not _alive(child.pid):
            return
        time.sleep(0.1)
    pytest.fail("processes were left behind")


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
    assert child.wait(timeout=60) == 0
    assert child.stderr.read() == b""
    child.stdin.close()
    child.stderr.close()
