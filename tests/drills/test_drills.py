"""A little bad luck: three kills with the same bytes in the end, a pair of commands, a full disk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_a_little_bad_luck_does_no_harm() -> None:
    """In a process of its own: one that has run threads (OpenMP) must not fork."""
    drill = Path(__file__).with_name("drill.py")
    words = ["--kills", "3", "--pairs", "1", "--disks", "2", "--seed", "3", "--until", "hull"]
    done = subprocess.run([sys.executable, str(drill), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1])["harm"] == {}
    assert "'same bytes'" in done.stdout
