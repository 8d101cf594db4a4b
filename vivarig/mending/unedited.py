"""Results as their stages made them, kept in ``results/unedited`` while edits lie over them."""

from __future__ import annotations

import os
from pathlib import Path

from calibration.foundation.digests import digest_of_path

__all__ = ["FILES", "as_made", "mended_digest", "set_aside", "take_off"]

#: Stage -> its file, for those whose results are edited after they are made.
FILES = {"silhouettes": "silhouettes.h5", "hull": "hull.h5", "track": "track.h5"}


def as_made(results: Path, name: str) -> Path:
    """Return a result as its stage made it, whether edits lie over it or not."""
    kept = results / "unedited" / name
    return kept if kept.is_file() else results / name


def set_aside(results: Path, name: str) -> Path:
    """Move a result aside, to lay edits over a copy; return where it is."""
    kept = results / "unedited"
    kept.mkdir(exist_ok=True)
    os.replace(results / name, kept / name)
    return kept / name


def take_off(results: Path) -> None:
    """Put the results back as their stages made them."""
    kept = results / "unedited"
    if not kept.is_dir():
        return
    for name in FILES.values():
        if (kept / name).is_file():
            os.replace(kept / name, results / name)
    kept.rmdir()


def mended_digest(results: Path) -> str:
    """Return a digest of the results that edits lie over; "nothing" where there are none."""
    names = [name for name in FILES.values() if (results / "unedited" / name).is_file()]
    told = (digest_of_path(results / name) if (results / name).is_file() else "-" for name in names)
    return " ".join(told) or "nothing"
