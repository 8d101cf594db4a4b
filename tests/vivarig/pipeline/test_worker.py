"""What a worker does between tasks."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Iterator

import pytest

from vivarig.pipeline import worker


class Cycle:
    """Something that only a search for cycles finds."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("thawed")
def test_a_task_leaves_no_cycles_and_what_stays_is_not_looked_at_again() -> None:
    left = weakref.ref(Cycle())
    now = time.monotonic()
    assert worker._give_back_memory(now) == now
    assert left() is None
    assert gc.get_freeze_count() > 1000, "what is imported stays: looking through it takes longer than many a task"


@pytest.mark.usefixtures("thawed")
def test_what_stayed_once_is_given_back_in_the_end() -> None:
    kept = Cycle()
    now = time.monotonic()
    worker._give_back_memory(now)
    known = weakref.ref(kept)
    del kept
    assert worker._give_back_memory(now) == now
    assert known() is not None
    assert worker._give_back_memory(now - worker._SWEEP_S - 1.0) >= now
    assert known() is None
