"""Which doubtful pixels the other views have, too, well above the floor.

Shade lies on the floor, so what the views show together above it is no shade, whatever it looks like. Asked is what
differs from the background in any way (`capture.silhouettes.doubts`), and it must differ in the other views.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools
from capture.silhouettes.views.confirmation import MANY, Floor, Sights

__all__ = ["seen_above"]

#: Others count as larger by this share of the image's longer side: a tail is as thin as calibration errs.
_SLACK = 0.003


def seen_above(masks: Sequence[Bools], wide: Sequence[Bools], rig: Rig, floor: Floor) -> list[Bools]:
    """Return the pixels of ``wide`` outside ``masks`` (H, W) that the others' ``wide`` have, clear of the floor.

    What the others have on the floor along the same line of sight may be shade there, and is left.
    """
    above = Sights(wide, rig, (floor.clear, floor.up * np.inf), _SLACK, 1 if len(rig) - 1 >= MANY else 0)
    below = Sights(wide, rig, (floor.height, floor.clear), _SLACK, 0)
    seen = [np.zeros_like(mask) for mask in masks]
    if len(above.used) < 3:
        return seen
    for place, index in enumerate(above.used):
        asked = wide[int(index)] & ~masks[int(index)]
        if asked.any():
            found, _ = above.seen(place, asked)
            seen[int(index)] = found & ~below.seen(place, found)[0] if found.any() else found
    return seen
