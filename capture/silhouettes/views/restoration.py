"""Which doubtful pixels the other views have, too, well above the floor.

Shade lies on the floor, so what the views show together above it is no shade, whatever it looks like. Asked is what
differs from the background in any way (`capture.silhouettes.doubts`), and it must differ in the other views.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools
from capture.silhouettes.views.confirmation import Floor, Sights, larger_by, may_be_wrong
from capture.silhouettes.views.lines_of_sight import Scene

__all__ = ["seen_above"]

#: Others count as larger by this share of the image's longer side: a tail is as thin as calibration errs.
_SLACK = 0.003
#: And as smaller by this share where a line of sight is to pass through their inside.
_INSIDE = 0.0015


def seen_above(
    masks: Sequence[Bools],
    wide: Sequence[Bools],
    rig: Rig,
    floor: Floor,
    side: int | None = None,
    scene: Scene | None = None,
    through: Sequence[bool] | None = None,
    no_shade: Sequence[Bools] | None = None,
) -> tuple[list[Bools], list[Bools]]:
    """Return the pixels of ``wide`` outside ``masks`` (H, W) that the others' ``wide`` have, clear of the floor.

    Twice: without those that the others have on the floor along the same line of sight, which may be shade there; and
    those of any whose lines of sight pass through the inside of the hull of the others' ``masks``, clear of the floor.
    ``side``: longer side of the images, px, where masks and rig are of parts of them. ``scene``: of ``wide``; None:
    found here. ``through``: in which views the second is wanted; None: in all. ``no_shade``: (H, W) pixels that are no
    shade of the floor by their light; these the others may have anywhere above it.
    """
    known = scene or Scene.of(wide, rig)
    sights = Sights(wide, known, larger_by(_SLACK, wide, side))
    # Memory of zeros that nobody looks at costs nothing.
    seen, inside = ([np.zeros(mask.shape, dtype=bool) for mask in masks] for _ in range(2))
    if len(sights.used) < 3:
        return seen, inside
    wanted = [True] * len(masks) if through is None else through
    inner = Sights(masks, known, -larger_by(_INSIDE, masks, side)) if any(wanted) else sights
    above, below = (floor.clear, floor.up * np.inf), (floor.height, floor.clear)
    for place, index in enumerate(int(one) for one in sights.used):
        asked = wide[index] & ~masks[index]
        if wanted[index]:
            asked = sights.seen(place, asked, above, may_be_wrong(rig))[0]
            inside[index] = inner.seen(place, asked, above, 0)[0]
        # Next to the floor first: most of what is asked is shade, and few points of a line lie there.
        asked &= ~sights.seen(place, asked, below, 0)[0]
        seen[index] = asked if wanted[index] else sights.seen(place, asked, above, may_be_wrong(rig))[0]
        if no_shade is not None:
            asked = no_shade[index] & ~masks[index] & ~seen[index]
            seen[index] |= sights.seen(place, asked, (floor.height, floor.up * np.inf), 0)[0]
    return seen, inside
