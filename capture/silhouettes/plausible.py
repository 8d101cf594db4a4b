"""Whether silhouettes can be right at all: share of the image, pieces, agreement, and their common hull."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.result_files import open_results
from capture.hull.implicit import implicit_hull
from capture.mask_runs import runs_of
from capture.recordings.masks import STAGE, mask_cameras, masks_in

__all__ = ["MaskFigures", "hull_volume", "implausible", "impossible_hull", "low_agreement", "mask_figures"]

#: Frames spread over the recording that are looked at.
_FRAMES = 16
#: A subject may fill the image, or be in a few pieces behind a post; a failed background does both.
_MOST_SHARE, _MOST_PIECES = 0.6, 25
_BOTH_SHARE, _BOTH_PIECES = 0.1, 8
#: Pieces smaller than this share of the silhouette are not counted.
_PIECE = 0.0005
#: Frames whose hulls are measured; the largest hull that a body can have, litres (few views see a body larger).
_HULLS = 8
_MOST_LITRES = {"mouse": 0.3, "rat": 4.0, "human": 300.0}
#: A silhouette that agrees less with images and views is wrong.
_LEAST_AGREEMENT = 0.5
_WAY_OUT = "give a background (a picture or clip of the empty scene), or masks of your own, in recording.toml"


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
    with open_results(path, stage=STAGE) as file:
        for index, name in enumerate(names):
            for place, frame in enumerate(frames):
                mask = masks_in(file, name, frame)[0]
                parts = runs_of(mask, diagonal=True).areas
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
        f"{pieces[worst]:.0f} pieces{f' (so do those of {chr(44).join(also)})' if also else ''}; {_WAY_OUT}"
    )


def hull_volume(path: Path | str, rig: Rig) -> float:
    """Return the median volume, mm^3, of the common hull of stored silhouettes in some frames; NaN where none is."""
    names, count = mask_cameras(path)
    views = rig.subset(names)
    found = []
    with open_results(path, stage=STAGE) as file:
        for frame in sorted(set(np.linspace(0, count - 1, _HULLS).round().astype(int).tolist())):
            masks = [masks_in(file, name, frame)[0] for name in names]
            hull = implicit_hull(masks, views, sharp=False, score=False)
            found.append(np.nan if hull.is_empty else hull.volume)
    return float(np.nanmedian(found)) if np.isfinite(found).any() else float("nan")


def impossible_hull(volume: float, body: str | None, subjects: int, figures: MaskFigures) -> str:
    """Say that the silhouettes' common hull is larger than a body can be, and the way out; empty if it may be one."""
    most = _MOST_LITRES.get(body or "", np.inf) * subjects
    if not volume > 1e6 * most:
        return ""
    worst = int(np.argmax(figures.share))
    whose = f"a {body} has" if subjects == 1 else f"{subjects} of {body} have"
    return (
        f"the silhouettes' common hull has {volume / 1e6:.3g} litres, {whose} less than {most:.3g}; "
        f"{figures.names[worst]}: the silhouette fills {100 * figures.share[worst]:.0f} % of the image; {_WAY_OUT}"
    )


def low_agreement(names: Sequence[str], agreement: Sequence[float]) -> str:
    """Say which camera's silhouettes agree with neither images nor the other views, and the way out."""
    low = [index for index, value in enumerate(agreement) if value < _LEAST_AGREEMENT]
    if not low:
        return ""
    worst = min(low, key=lambda index: agreement[index])
    return (
        f"{names[worst]}: the silhouette overlaps only to {agreement[worst]:.2f} (IoU) with what the image and the "
        f"other views show; look at --sheet and at the camera's calibration and timing, or {_WAY_OUT}"
    )
