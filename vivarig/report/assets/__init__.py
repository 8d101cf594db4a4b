"""Scripts and style that stand inside the report; uPlot (MIT, see uPlot.LICENSE.txt) draws its plots."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

__all__ = ["asset"]


@lru_cache
def asset(name: str) -> str:
    """Return the text of one of the files that lie here."""
    return (files(__name__) / name).read_text(encoding="utf-8")
