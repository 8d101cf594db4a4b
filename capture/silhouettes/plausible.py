"""Whether silhouettes can be right at all: the share of the image they fill, and in how many pieces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from capture.recordings.masks import mask_cameras, read_masks
from capture.silhouettes.runs import runs_of

__all__ = ["MaskFigures", "implausible", "mask_figures"]

#: Frames spread over the recording that are looked at.
_FRAMES = 16
#: A subject may fill the image, or be in a few pieces behind a post; a failed background does both.
_MOST_SHARE, _MOST_PIECES = 0.6, 25
_BOTH_SHARE, _BOTH_PIECES = 0.1, 8
#: Pieces smaller than this share of the silhouette are not counted.
_PIECE = 0.0005


@dataclass(frozen=True, eq=False)
class MaskFigures:
    """What silhouettes look like by themselves, medians over some frames.

    Attributes:
        names: the cameras.
        share: (C,) share of the image that the silhouette fills.
        pieces: (C,) pieces it is in.
        sides: (C,) sides of the image that it touches.
    """

    names: tuple[str, ...]
    share: Floats
    pieces: Floats
    sides: Floats


def mask_figures(path: Path | str) -> MaskFigures:
    """Measure stored silhouettes (``silhouettes.h5``) in some frames."""
    names, count = mask_cameras(path)
    frames = sorted(set(np.linspace(0, count - 1, _FRAMES).round().astype(int).tolist()))
    rows = np.zeros((len(names), len(frames), 3))
    for index, name in enumerate(names):
        for place, frame in enumerate(frames):
            mask = read_masks(path, name, [frame])[0]
            parts = runs_of(mask, diagonal=True).areas()
            sides = mask[0].any(), mask[-1].any(), mask[:, 0].any(), mask[:, -1].any()
            rows[index, place] = mask.mean(), np.count_nonzero(parts > _PIECE * parts.sum()), sum(sides)
    share, pieces, sides = np.median(rows, axis=1).T
    return MaskFigures(tuple(names), share, pieces, sides)


def implausible(figures: MaskFigures) -> str:
    """Say which camera's silhouettes cannot be right, and the way out; empty if all may be."""
    share, pieces = figures.share, figures.pieces
    wrong = (share > _MOST_SHARE) | (pieces > _MOST_PIECES) | ((share > _BOTH_SHARE) & (pieces > _BOTH_PIECES))
    if not wrong.any():
        return ""
    worst = int(np.argmax(np.where(wrong, share, -1.0)))
    also = [name for name, bad in zip(figures.names, wrong, strict=True) if bad and name != figures.names[worst]]
    return (
        f"{figures.names[worst]}: the silhouette fills {100 * share[worst]:.0f} % of the image in "
        f"{pieces[worst]:.0f} pieces{f' (so do those of {chr(44).join(also)})' if also else ''}; give a background "
        "(a picture or clip of the empty scene), or masks of your own, in recording.toml"
    )
