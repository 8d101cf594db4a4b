"""Silhouettes less things that stand still in them: found in some frames, taken off in prepared ones and in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.spans import Span
from capture.recordings.recording import Footage
from tracking.adapting.build_search import Build
from tracking.appearance.furniture import Furniture, find_furniture
from vivarig.jobs.footage_images import images_at, images_of
from vivarig.redrawing.learning import Masks
from vivarig.redrawing.parts import written_masks

__all__ = ["Things", "clear_frames", "clear_part", "parts_the_subject", "things_that_stand"]

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
        shown = zip(images_at(one, frames), silhouettes, strict=True)
        images = [(image, seen[camera]) for image, seen in shown if image is not None]
        found.append(find_furniture([image for image, _ in images], [mask for _, mask in images]))
    return tuple(found) if sum(one is not None for one in found) * 2 >= len(found) else ()


def parts_the_subject(before: Build, after: Build) -> bool:
    """Return whether the body explains the silhouettes much better without what stands still, in every frame.

    If a subject that sits there all the time is what stands still, nothing is left for the body to explain.
    """
    old = {one.frame: one.agreement for one in before.found}
    risen = [one.agreement - old[one.frame] for one in after.found if one.frame in old]
    return bool(risen) and min(risen) > 0.0 and after.overlap > before.overlap + GAIN


def clear_frames(masks: Masks, things: Things, footage: Sequence[Footage], frames: Sequence[int]) -> Masks:
    """Return the silhouettes of some frames less things."""
    cleared: dict[tuple[str, int], Bools] = {}
    for one, thing in zip(footage, things, strict=True):  # one after the other: images are large
        images = [None] * len(frames) if thing is None else images_at(one, frames)
        for frame, image in zip(frames, images, strict=True):
            cleared[one.name, frame] = _cleared(masks((one.name,), frame), [image], [thing])[0]
    return lambda names, frame: [cleared[name, frame] for name in names]


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
    streams = zip(*(images_of(one, range(at.first, at.stop)) for one in footage), strict=True)
    with written_masks(path, rig, at) as write:
        for row, images in enumerate(streams):
            write(row, _cleared(masks(names, at.first + row), images, things))
            on_progress(row + 1, len(at))


def _cleared(masks: Sequence[Bools], images: Sequence[Bytes | None], things: Sequence[Furniture | None]) -> list[Bools]:
    cleared = []
    for mask, image, thing in zip(masks, images, things, strict=True):
        cleared.append(mask if image is None or thing is None else np.asarray(thing.cleared(image, mask)))
    return cleared
