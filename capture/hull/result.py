"""What a visual hull is: a mesh with what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Floats, Singles

__all__ = ["Hull", "HullFlag", "SignedField", "flag_words"]


class HullFlag(IntFlag):
    """What is worth knowing about the hull of one frame; 0: nothing."""

    NO_SILHOUETTE = 1
    EMPTY_SILHOUETTE = 2
    FULL_SILHOUETTE = 4
    EMPTY_HULL = 8
    FEW_VIEWS = 16
    PARTLY_OUT_OF_VIEW = 32
    CUT_BY_BOUNDS = 64
    VIEW_LEFT_OUT = 128
    LOW_AGREEMENT = 256
    SUBJECTS_TOUCH = 512
    IDENTITY_UNSURE = 1024


_WORDS = {
    HullFlag.NO_SILHOUETTE: "no silhouette in any view",
    HullFlag.EMPTY_SILHOUETTE: "some views see nothing",
    HullFlag.FULL_SILHOUETTE: "some silhouettes fill their whole frame",
    HullFlag.EMPTY_HULL: "the silhouettes have no common point (rig, synchronisation or a wrong silhouette)",
    HullFlag.FEW_VIEWS: "seen by fewer views than wanted",
    HullFlag.PARTLY_OUT_OF_VIEW: "partly outside the frame of some views",
    HullFlag.CUT_BY_BOUNDS: "cut by the bounding box",
    HullFlag.VIEW_LEFT_OUT: "some views were flagged and left out",
    HullFlag.LOW_AGREEMENT: "its silhouettes disagree with the input",
    HullFlag.SUBJECTS_TOUCH: "subjects touch: the hull holds more than one of them",
    HullFlag.IDENTITY_UNSURE: "from here on the subject may be another one (they parted, or moved too far)",
}


def flag_words(flags: int) -> list[str]:
    """Return the sentences behind a flag code."""
    return [words for flag, words in _WORDS.items() if flags & flag]


@dataclass(frozen=True, eq=False)
class Hull:
    """The visual hull of one frame.

    Attributes:
        vertices: (V, 3), world mm.
        faces: (F, 3) vertex numbers, normals outward; the mesh is closed. Both are empty if there is no hull.
        volume: enclosed volume, mm^3.
        views_used: (C,) views that took part.
        agreement: (C,) IoU of the hull's silhouette with the input one; NaN where there is none.
        flags: `HullFlag` code.
    """

    vertices: Floats
    faces: NDArray[np.int32]
    volume: float
    views_used: Bools
    agreement: Floats
    flags: int

    @property
    def is_empty(self) -> bool:
        """Whether there is no surface."""
        return len(self.faces) == 0


@dataclass(frozen=True, eq=False)
class SignedField:
    """A field sampled on a grid, negative inside.

    Attributes:
        values: (nx, ny, nz), mm.
        origin: (3,) position of ``values[0, 0, 0]``, world mm.
        spacing: distance of neighbouring grid points, mm.
    """

    values: Singles
    origin: Floats
    spacing: float


def no_hull(cameras: int, used: Bools | None, flags: int) -> Hull:
    """Return the hull of a frame that has none, with the reason in its flags."""
    views = np.zeros(cameras, dtype=bool) if used is None else used
    return Hull(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int32), 0.0, views, np.full(cameras, np.nan), int(flags))
