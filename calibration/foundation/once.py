"""Steps of a long computation that a killed run need not do again: named where they are made, kept by who runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

__all__ = ["keeping", "once"]

T = TypeVar("T")
Keeper = Callable[[str, Callable[[], Any]], Any]

_keeper: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


def once(name: str, make: Callable[[], T]) -> T:
    """Return what ``make`` makes, or what it made before if a keeper of this computation still has it.

    ``name`` says which step this is; the same name stands for the same inputs within one computation.
    """
    keeper = _keeper.get()
    made: T = make() if keeper is None else keeper(name, make)
    return made


@contextmanager
def keeping(keeper: Keeper) -> Iterator[None]:
    """Let ``keeper`` (name, make) keep the steps inside this block."""
    token = _keeper.set(keeper)
    try:
        yield
    finally:
        _keeper.reset(token)
