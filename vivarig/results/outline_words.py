"""Whether the silhouettes were drawn again with the template's help, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["outline_words"]


def outline_words(told: Mapping[str, Any]) -> str:
    """Say whether the silhouettes were drawn again, and what that changed, by the table ``outlines`` of a track."""
    things = told.get("things") or []
    taken_off = f"things that stand still were taken off the silhouettes of {', '.join(things)}" if things else ""
    helped = told["redrawn"] and told.get("helped", True)  # an older file tells of nothing else
    if told["before"] is None or not helped:
        return f"{taken_off}: {_shares(told)}" if things else _kept(told)
    by_template = (
        "drawn again with the template's help, by which views left out gain "
        f"({told['before']:.3f} -> {told['after']:.3f} IoU with the hull of the others)"
    )
    return (
        f"{taken_off}, then {by_template}: {_shares(told)}" if things else f"silhouettes {by_template}: {_shares(told)}"
    )


def _kept(told: Mapping[str, Any]) -> str:
    why = told["why"]
    if told["before"] is not None:
        figures = f"{told['before']:.3f} -> {told['after']:.3f} IoU with the hull of the others"
        why = f"views left out would not gain enough ({figures})"
    return f"silhouettes kept as they were cut out: {why}"


def _shares(told: Mapping[str, Any]) -> str:
    shares = np.array(list(told["added_and_taken_off"].values()))
    added, off = (100 * shares.mean(axis=0)).tolist() if len(shares) else (0.0, 0.0)
    return f"{added:.1f} % added, {off:.1f} % taken off (results/redrawn.h5)"
