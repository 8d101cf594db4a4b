"""How noisy images are beside what moves, and how far the hue of bare ground strays there.

A codec repeats blocks in which nothing moves and draws those anew that something passes; what is coarse about them, and
colour, which is stored for four pixels at once and bleeds, shows there and nowhere else. So the noise that is measured
over the whole image is too small just where outlines are drawn. It is measured again on the ground within a block of
the silhouettes of a few images: nothing else tells how a film was compressed, and all of its cameras may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Singles
from capture.discs import grown

__all__ = ["NearGround", "believed_noise", "beside", "hue_beside", "noise_beside"]

#: Ground beside a silhouette: what lies farther off than its edge is blurred, and within a block of the codec, px.
_EDGE_PX, _BLOCK_PX = 3, 8
#: This share of it may differ weakly (`capture.silhouettes.cleanup.Cleaning`), and keeps its hue.
_GROUND, _HUE = 0.95, 0.9
#: Noise beside what moves is so many times that of the whole image at most: what differs by more is something else, or
#: a part of the subject that was not found (a shirt of the wall's colour).
_MOST = 4.0
#: Pixels that must have been seen.
_PIXELS = 300


@dataclass(frozen=True, eq=False)
class NearGround:
    """The ground beside the silhouette of one image, as far as it is no darker than the empty scene: shade is.

    Attributes:
        away: (n,) distance from the background, standard deviations.
        hue: (n,) that of the hue.
    """

    away: Singles
    hue: Singles

    @classmethod
    def of(cls, measures: tuple[Singles, Singles, Singles], free: Bools, step: int) -> NearGround:
        """Take it from the `PlateModel.shade_measures` of every ``step``-th pixel; ``free``: (H, W) of `beside`."""
        away, ratio, hue = measures
        lit = free[::step, ::step] & (ratio >= 1.0)
        return cls(away[lit], hue[lit])


def beside(mask: Bools, still: Bools | None) -> Bools:
    """Return (H, W) where ground lies beside a silhouette, without parts that are ``still`` and no ground."""
    inner = grown(mask, _EDGE_PX)
    near = grown(inner, _BLOCK_PX) & ~inner
    return near if still is None else near & ~still


def noise_beside(grounds: Sequence[NearGround], weak: float) -> float:
    """Return how many times its noise a camera has beside what moves, 1 at least.

    What differs by ``weak`` sigma or more may be the subject; of ground, hardly anything should. More than a codec ever
    adds is no noise, and nothing is believed then. A codec errs to both
    sides, and what is brighter than the empty scene is no shade.
    """
    away = np.concatenate([ground.away for ground in grounds])
    if len(away) < _PIXELS:
        return 1.0
    times = float(np.quantile(away, _GROUND)) / weak
    return max(times, 1.0) if times <= _MOST else 1.0


def hue_beside(grounds: Sequence[NearGround]) -> float:
    """Return within how many standard deviations most of the ground beside a subject keeps its hue; 0: not known."""
    hue = np.concatenate([ground.hue for ground in grounds])
    return float(np.quantile(hue, _HUE)) if len(hue) >= _PIXELS else 0.0


def believed_noise(times: Sequence[float]) -> list[float]:
    """Return how many times its noise each camera is believed to have, by what all of them show.

    Cameras of a recording are mostly filmed and compressed alike. One that has far more than half of them sees
    something else beside the subject: its mirror image, or parts of it that were not found.
    """
    usual = sorted(times)[(len(times) - 1) // 2]
    return [min(one, usual) for one in times]
