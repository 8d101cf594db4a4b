"""Named points of the body that another program marked in the images of one frame."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from calibration.foundation.arrays import Bools, Floats, Ints

__all__ = ["MarkStatus", "Marks"]


class MarkStatus(IntEnum):
    """What became of a mark."""

    NOT_GIVEN = 0
    CONFIRMED = 1
    ALONE = 2
    OTHER_VIEWS_DISAGREE = 3
    OFF_THE_SILHOUETTE = 4
    CONTRADICTS_OUTLINES = 5


@dataclass(frozen=True, eq=False)
class Marks:
    """S marks in one frame.

    Attributes:
        owner: (S,) which named point.
        views: (S,) camera.
        pixels: (S, 2) where it was marked, px.
        weight: (S,) confidence, 0 to 1.
        confirmed: (S,) whether other cameras say the same.
        places: (P, 3) where the frames around put each point in space, mm, NaN where they do not; None before that is
            known. place_sigma: (P,) 1 sigma of it, mm.
        status: (C, P) `MarkStatus` of every mark, those that are not believed too.
    """

    owner: Ints
    views: Ints
    pixels: Floats
    weight: Floats
    confirmed: Bools
    status: Ints
    places: Floats | None = None
    place_sigma: Floats | None = None

    def __len__(self) -> int:
        return len(self.owner)
