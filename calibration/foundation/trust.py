"""How far a result may be believed: one scale for frames, limbs, joints and points of every stage."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Trust"]


class Trust(IntEnum):
    """Trusted, doubtful or lost; the larger, the worse."""

    TRUSTED = 0
    DOUBTFUL = 1
    LOST = 2
