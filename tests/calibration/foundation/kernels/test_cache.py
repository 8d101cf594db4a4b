"""The cache of compiled functions: kept between processes, never stale, never believed when damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[4]

CALLEE = """
from calibration.foundation.compiled import compiled
@compiled
def inner(x):
    return x + {number}
"""
CALLER = """
from calibration.foundation.compiled import compiled
from callee import inner
FACTOR = {factor}
@compiled
def outer(x):
    return FACTOR * inner(x)
print(outer(1), sum(outer.stats.cache_hits.values()))
"""


def write(place: Path, *, number: int, factor: int) -> None:
    (place / "callee.py").write_text(CALLEE.format(number=number), encoding="utf-8")
    (place / "caller.py").write_text(CALLER.format(factor=factor), encoding="utf-8")


def run(place: Path) -> tuple[int, int]:
    """Return what the caller computes in a process of its own, and how often it was taken from the cache."""
    paths = os.pathsep.join([str(place), str(REPOSITORY)])
    words = [sys.executable, str(place / "caller.py")]
    result = subprocess.run(words, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True)
    value, hits = result.stdout.split()
    return int(value), int(hits)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path, number=1, factor=10)
    assert run(tmp_path) == (20, 0)
    return tmp_path


def test_a_second_process_takes_what_the_first_compiled(place: Path) -> None:
    assert run(place) == (20, 1)
    assert not list(place.rglob("*.tmp"))


def test_a_changed_function_in_another_file_is_compiled_again(place: Path) -> None:
    (place / "callee.py").write_text(CALLEE.format(number=12), encoding="utf-8")  # longer: see below
    assert run(place) == (130, 0)


def test_fields_in_another_order_are_compiled_again(tmp_path: Path) -> None:
    fields = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    {}: int\n    {}: int\n"
    (tmp_path / "caller.py").write_text(
        "from calibration.foundation.compiled import compiled\nfrom pair import Pair\n"
        "@compiled\ndef low(p):\n    return p.low\n"
        "print(low(Pair(low=1, high=2)), sum(low.stats.cache_hits.values()))\n",
        encoding="utf-8",
    )
    (tmp_path / "pair.py").write_text(fields.format("low", "high"), encoding="utf-8")
    assert run(tmp_path) == (1, 0)
    assert run(tmp_path) == (1, 1)
    # one character more: Python tells a changed module by its size within the same second
    (tmp_path / "pair.py").write_text(fields.format("high", "low") + "#", encoding="utf-8")
    assert run(tmp_path) == (1, 0)


def test_a_damaged_file_is_compiled_again(place: Path) -> None:
    (outer,) = place.rglob("caller.outer*.nbk")
    outer.write_bytes(outer.read_bytes()[:200])
    assert run(place) == (20, 0)
    assert run(place) == (20, 1)


def test_one_files_code_is_not_taken_for_anothers(place: Path) -> None:
    """What numba's numbered files do when two processes write at once: a name that holds other code."""
    (outer,) = place.rglob("caller.outer*.nbk")
    (inner,) = place.rglob("callee.inner*.nbk")
    outer.write_bytes(inner.read_bytes())
    assert run(place) == (20, 0)


def test_no_damage_of_the_cache_is_believed(place: Path) -> None:
    kept = sorted(place.rglob("*.nbk"))
    whole = {path: path.read_bytes() for path in kept}
    for where in (0.0, 0.3, 0.6, 0.999):
        for path, content in whole.items():
            spoilt = bytearray(content)
            spoilt[int(where * len(content))] ^= 0x55
            path.write_bytes(spoilt)
        assert run(place) == (20, 0)
