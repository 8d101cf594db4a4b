"""Memory that nothing holds any more goes back to the machine."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from vivarig.jobs.free_memory import give_back


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing")
def test_what_was_freed_below_what_is_still_held_is_given_back() -> None:
    blocks = [np.ones(60_000, np.uint8) for _ in range(1000)]
    last = blocks[-1]  # while it is there, the C library keeps all that was taken before it
    del blocks
    held = resident_mb()
    give_back()
    assert resident_mb() < held - 30.0
    assert last.all()
