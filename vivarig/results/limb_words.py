"""What of a track may be used, limb by limb, in words that report and command share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["PART", "THROUGHOUT", "share_words", "usable_words"]

THROUGHOUT, PART = 0.95, 0.5
"""Shares of trusted frames from which on a limb may be used as it is, and where it is trusted."""


def usable_words(limbs: Sequence[str], shares: Floats) -> str:
    """Say which limbs may be used throughout, where they are trusted, and hardly ever.

    ``shares``: (L,) of the frames in which each limb is trusted.
    """
    names = np.array(_spoken(limbs))
    groups = (
        ("throughout", shares >= THROUGHOUT),
        ("only where trusted", (shares < THROUGHOUT) & (shares >= PART)),
        ("hardly ever", shares < PART),
    )
    return "; ".join(f"{', '.join(names[held])} {words}" for words, held in groups if held.any())


def share_words(limbs: Sequence[str], shares: Floats) -> str:
    """Say in what share of the frames each limb is trusted."""
    return ", ".join(f"{name} {100 * share:.0f} %" for name, share in zip(_spoken(limbs), shares, strict=True))


def _spoken(limbs: Sequence[str]) -> list[str]:
    return [name.replace("_", " ") for name in limbs]
