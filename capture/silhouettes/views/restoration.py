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

__all__ = ["inside_others", "seen_above"]

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
) -> list[Bools]:
    """Return the pixels of ``wide`` outside ``masks`` (H, W) that the others' ``wide`` have, clear of the floor.

    What the others have on the floor along the same line of sight may be shade there, and is left. ``side``: longer
    side of the images, px, where masks and rig are of parts of them. ``scene``: of ``wide``; None: found here.
    """
    sights = Sights(wide, scene or Scene.of(wide, rig), larger_by(_SLACK, wide, side))
    seen = [np.zeros_like(mask) for mask in masks]
    if len(sights.used) < 3:
        return seen
    above, below = (floor.clear, floor.up * np.inf), (floor.height, floor.clear)
    for place, index in enumerate(int(one) for one in sights.used):
        asked = wide[index] & ~masks[index]
        if asked.any():
            found, _ = sights.seen(place, asked, above, may_be_wrong(rig))
            seen[index] = found & ~sights.seen(place, found, below, 0)[0] if found.any() else found
    return seen


def inside_others(
    masks: Sequence[Bools],
    asked: Sequence[Bools],
    rig: Rig,
    floor: Floor,
    side: int | None = None,
    scene: Scene | None = None,
) -> list[Bools]:
    """Return those of the pixels asked (H, W) whose lines of sight pass through the inside of the others' hull.

    All others have them there, clear of the floor. ``side``, ``scene``: as in `seen_above`.
    """
    sights = Sights(masks, scene or Scene.of(masks, rig), -larger_by(_INSIDE, masks, side))
    found = [np.zeros_like(mask) for mask in masks]
    if len(sights.used) >= 3:
        for place, index in enumerate(int(one) for one in sights.used):
            if asked[index].any():
                found[index] = sights.seen(place, asked[index], (floor.clear, floor.up * np.inf), 0)[0]
    return found
