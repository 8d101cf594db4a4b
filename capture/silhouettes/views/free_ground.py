"""Ground that was taken for the subject's look, found again by what the other views say is free.

Who stays before a wall for most of a short recording is taken for the wall there, by any rule that knows one view. The
others see where the subject is: a pixel whose line of sight meets nothing that all of them have shows the ground in
that image, whatever it looks like. Where the median of those images differs from a ground put together by one view
alone, it takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes
from capture.backgrounds.background import Background, NoiseCurve
from capture.backgrounds.uncovered import ground_over
from capture.silhouettes.views.confirmation import Sights, larger_by, may_be_wrong
from capture.silhouettes.views.lines_of_sight import Scene

__all__ = ["free_of_subject", "mended_ground"]

#: Silhouettes count as larger by this share of the image's longer side: their edges and thin ends are least sure.
_ROOM = 0.005
#: Grounds differ from this many standard deviations on.
_DIFFER = 4.0
#: A look that as many images of free ground have is the ground's.
_SHOWN = 2


def free_of_subject(masks: Sequence[Bools], rig: Rig) -> list[Bools]:
    """Return per camera (H, W) what the others' silhouettes of one frame say is free; nothing where they cannot tell.

    A camera's own silhouette has no say.
    """
    free = []
    for index, mask in enumerate(masks):
        # All but a pixel: a silhouette that fills its image would take no part.
        asked = np.ones_like(mask)
        asked[0, 0] = False
        there = [asked if view == index else one for view, one in enumerate(masks)]
        sights = Sights(there, Scene.of(there, rig), larger_by(_ROOM, masks, None))
        place = np.flatnonzero(sights.used == index)
        if len(place) == 0 or len(sights.used) < 3:
            free.append(np.zeros_like(mask))
        else:
            free.append(~sights.seen(int(place[0]), asked, (-np.inf, np.inf), may_be_wrong(rig))[0])
    return free


def mended_ground(ground: Background, stack: Bytes, free: Bools, noise: NoiseCurve) -> Background:
    """Return a ground with what images (n, H, W, C) of one light show where ``free`` (n, H, W), if that differs.

    Where some of the free images show the ground as it is, it stays: the others show it in the subject's shade.
    """
    found = ground_over(stack, free, noise)
    limit = np.float32(_DIFFER) * found.background.spread
    away = (np.abs(found.background.centre - ground.centre) > limit).any(axis=2)
    shown = np.zeros(away.shape, dtype=np.int32)
    for image, clear in zip(stack, free, strict=True):
        shown += clear & (np.abs(image - ground.centre) <= limit).all(axis=2)
    other = (found.seen & away & (shown < _SHOWN))[:, :, None]
    return Background(
        np.where(other, found.background.centre, ground.centre),
        np.where(other, found.background.spread, ground.spread),
    )
