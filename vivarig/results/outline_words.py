"""Whether the silhouettes were drawn again with the template's help, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["outline_words"]


def outline_words(told: Mapping[str, Any]) -> str:
    """Say whether the silhouettes were drawn again, and what that changed, by the table ``outlines`` of a track."""
    if told["before"] is None:
        return f"silhouettes kept as they were cut out: {told['why']}"
    figures = f"{told['before']:.3f} -> {told['after']:.3f} IoU with the hull of the others"
    if not told["redrawn"]:
        return f"silhouettes kept as they were cut out: views left out would not gain enough ({figures})"
    shares = np.array(list(told["added_and_taken_off"].values()))
    added, off = (100 * shares.mean(axis=0)).tolist() if len(shares) else (0.0, 0.0)
    return (
        f"silhouettes drawn again with the template's help: {added:.1f} % added, {off:.1f} % taken off; views left out "
        f"gain by it ({figures}): results/redrawn.h5"
    )
