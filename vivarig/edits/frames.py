"""Which frame of the recording the results begin at: edits count the recording's, results their own rows."""

from __future__ import annotations

from pathlib import Path

from capture.recordings.masks import first_frame

__all__ = ["first_of"]


def first_of(results: Path) -> int:
    """Return the recording's frame that row 0 of the results is."""
    path = results / "silhouettes.h5"
    return first_frame(path) if path.is_file() else 0
