"""Silhouettes less things that stand still in them: found in some frames, taken off in prepared ones and in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.spans import Span
from capture.recordings.recording import Footage
from tracking.adapting.build_search import Build
from tracking.appearance.furniture import Furniture, find_furniture
from vivarig.jobs.footage_images import image_at, images_of
from vivarig.redrawing.learning import Masks
from vivarig.redrawing.parts import written_masks

__all__ = ["ClearedMasks", "Things", "clear_part", "parts_the_subject", "things_that_stand"]

GAIN = 0.03
"""Rise of the body's overlap from which on what stands still is taken for things."""

#: What stands still, per camera; None where nothing does.
Things = tuple[Furniture | None, ...]


def things_that_stand(footage: Sequence[Footage], masks: Masks, rig: Rig, frames: Sequence[int]) -> Things:
    """Find what stands still in the silhouettes of some frames; () where less than half of the cameras see it.

    ``footage`` is that of the rig's cameras, in order. Masks that somebody brought are not touched.
    """
    if any(one.masks is not None for one in footage):
        return ()
    silhouettes = [masks(tuple(rig.names), frame) for frame in frames]
    found: list[Furniture | None] = []
    for camera, one in enumerate(footage):  # one after the other: images are large
        shown = [(image_at(one, frame), seen[camera]) for frame, seen in zip(frames, silhouettes, strict=True)]
        images = [(image, mask) for image, mask in shown if image is not None]
        found.append(find_furniture([image for image, _ in images], [mask for _, mask in images]))
    return tuple(found) if sum(one is not None for one in found) * 2 >= len(found) else ()


def parts_the_subject(before: Build, after: Build) -> bool:
    """Return whether the body explains the silhouettes much better without what stands still, in every frame.

    If a subject that sits there all the time is what stands still, nothing is left for the body to explain.
    """
    old = {one.frame: one.agreement for one in before.found}
    risen = [one.agreement - old[one.frame] for one in after.found if one.frame in old]
    return bool(risen) and min(risen) > 0.0 and after.overlap > before.overlap + GAIN


@dataclass(frozen=True, eq=False)
class ClearedMasks:
    """Silhouettes of a frame less things; its images are read for it."""

    masks: Masks
    things: Things
    footage: Sequence[Footage]

    def __call__(self, names: tuple[str, ...], frame: int) -> list[Bools]:
        """Return the silhouettes (H, W) of some of the cameras."""
        places = [[one.name for one in self.footage].index(name) for name in names]
        images = [None if self.things[k] is None else image_at(self.footage[k], frame) for k in places]
        return _cleared(self.masks(names, frame), images, [self.things[k] for k in places])


def clear_part(
    path: Path,
    things: Things,
    footage: Sequence[Footage],
    masks: Masks,
    rig: Rig,
    at: Span,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Write the silhouettes of the frames ``at`` less things."""
    names = tuple(rig.names)
    streams = zip(*(images_of(one, at.first, at.stop) for one in footage), strict=True)
    with written_masks(path, rig, at) as write:
        for row, images in enumerate(streams):
            write(row, _cleared(masks(names, at.first + row), images, things))
            on_progress(row + 1, len(at))


def _cleared(masks: Sequence[Bools], images: Sequence[Bytes | None], things: Sequence[Furniture | None]) -> list[Bools]:
    cleared = []
    for mask, image, thing in zip(masks, images, things, strict=True):
        cleared.append(mask if image is None or thing is None else np.asarray(thing.cleared(image, mask)))
    return cleared
