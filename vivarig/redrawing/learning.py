"""What helps to draw the silhouettes of a recording again, learnt where the subject is known, and whether it helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes
from capture.recordings.recording import Footage
from tracking.adapting.scale_search import Found
from tracking.appearance.feet import View
from tracking.appearance.ground import ground_of
from tracking.appearance.held_views import Verdict, agreement_of_view, judged
from tracking.appearance.redrawing import redrawn
from tracking.appearance.witnesses import Lesson, Seen, Teacher, Witnesses, lesson
from tracking.fitting.solver import FrameSolver
from tracking.observations.contours import observe
from vivarig.jobs.footage_images import images_at

__all__ = ["KnownOutlines", "Masks", "Redrawing", "learn_outlines"]

FEWEST = 4
"""Frames in which the subject must be known; so many of them are judged, too."""
JUDGES = 5
"""Most cameras that are left out in turn."""
FITS = 0.94
"""Mean overlap of the template with the silhouettes from which on there is nothing to part it from."""

#: (camera names, frame) -> silhouettes (H, W)
Masks = Callable[[tuple[str, ...], int], list[Bools]]


@dataclass(frozen=True, eq=False)
class KnownOutlines:
    """What the parts share.

    Attributes:
        verdict: of the views left out; None where nothing was drawn.
        frames: two sets of frames in turn, and
        witnesses: what each set taught, per camera; None for a camera that shows too little.
        ground: per camera the empty scene (H, W, 3).
        why: why nothing was drawn; empty where it was.
    """

    verdict: Verdict | None
    frames: tuple[tuple[int, ...], ...] = ()
    witnesses: tuple[tuple[Witnesses | None, ...], ...] = ()
    ground: tuple[Bytes | None, ...] = ()
    why: str = ""

    @property
    def helps(self) -> bool:
        """Whether the silhouettes are to be drawn again."""
        return self.verdict is not None and self.verdict.better

    def beside(self, frame: int) -> tuple[Witnesses | None, ...]:
        """Return what was learnt from the set of frames that does not hold the one nearest to a frame."""
        away = [min(abs(frame - other) for other in frames) for frames in self.frames]
        return self.witnesses[int(np.argmax(away))]

    def as_table(self) -> dict[str, Any]:
        """Return plain values, to be written with the results."""
        told = self.verdict
        return {
            "redrawn": self.helps,
            "why": self.why,
            "before": None if told is None else told.before,
            "after": None if told is None else told.after,
            "error": None if told is None else told.error,
        }


class Redrawing:
    """Draws the silhouettes of a recording again by what is known of them."""

    def __init__(self, known: KnownOutlines, solver: FrameSolver, rig: Rig) -> None:
        self._known, self._teacher = known, Teacher(solver, rig)

    def views(
        self, frame: int, images: Sequence[Bytes | None], masks: Sequence[Bools], at: Found, left_out: int | None = None
    ) -> list[Bools]:
        """Return the silhouettes (H, W) of a frame drawn again, each by a fit without its camera.

        Args:
            frame: which.
            images: (H, W, 3) of each camera, None where it has none.
            masks: silhouettes as they are.
            at: where the subject is.
            left_out: camera that no fit may use, and whose silhouette stays.
        """
        drawn = []
        witnesses, outlines = self._known.beside(frame), observe(list(masks))
        for camera, (image, mask, ground) in enumerate(zip(images, masks, self._known.ground, strict=True)):
            witness = witnesses[camera]
            if camera == left_out or image is None or ground is None or witness is None or not mask.any():
                drawn.append(mask)
                continue
            without = [camera] if left_out is None else [camera, left_out]
            seen = Seen(View(image, mask, ground))
            pose = self._teacher.without(without, outlines, at.pose, at.latent)
            drawn.append(redrawn(mask, seen, witness, self._teacher.drawn(pose, camera, seen.window)))
        return drawn


def learn_outlines(
    footage: Sequence[Footage], masks: Masks, rig: Rig, solver: FrameSolver, found: Sequence[Found]
) -> KnownOutlines:
    """Learn from frames where the subject is known, and judge by views left out whether it helps.

    ``footage`` is that of the rig's cameras, in order.
    """
    if any(one.masks is not None for one in footage):
        return KnownOutlines(None, why="they were brought, not cut out")
    if len(found) < FEWEST or len(rig) < 4:
        return KnownOutlines(None, why=f"fewer than {FEWEST} frames or cameras show the subject")
    if np.mean([one.agreement for one in found]) > FITS:
        return KnownOutlines(None, why="the template fits them as they are")
    at = sorted(found, key=lambda one: one.frame)
    silhouettes = [masks(tuple(rig.names), one.frame) for one in at]
    frames = [one.frame for one in at]
    images = list(zip(*(images_at(camera, frames) for camera in footage), strict=True))
    known = _learnt(rig, solver, at, images, silhouettes)
    redrawing = Redrawing(known, solver, rig)
    before, after = [], []
    for k in _spread(len(at)):
        for camera in _spread(len(rig), most=JUDGES):
            new = redrawing.views(at[k].frame, images[k], silhouettes[k], at[k], left_out=camera)
            before.append(agreement_of_view(silhouettes[k], rig, camera))
            after.append(agreement_of_view(new, rig, camera))
    verdict = judged(np.array(before), np.array(after))
    if verdict is None or not verdict.better:  # the parts need no more than that
        return KnownOutlines(verdict, why="views left out do not agree better")
    return KnownOutlines(verdict, known.frames, known.witnesses, known.ground)


def _spread(count: int, most: int = FEWEST) -> list[int]:
    """Return up to ``most`` of so many things, the first and the last among them."""
    return sorted({int(k) for k in np.linspace(0, count - 1, min(count, most))})


def _learnt(
    rig: Rig,
    solver: FrameSolver,
    at: Sequence[Found],
    images: Sequence[Sequence[Bytes | None]],
    masks: Sequence[Sequence[Bools]],
) -> KnownOutlines:
    """Learn each camera's witnesses from every second frame, and from the others."""
    teacher = Teacher(solver, rig)
    grounds: list[Bytes | None] = []
    lessons: list[list[Lesson | None]] = []
    outlines = [observe(list(views)) for views in masks]
    for camera in range(len(rig)):
        shown = [(image[camera], mask[camera]) for image, mask in zip(images, masks, strict=True)]
        full = [(image, mask) for image, mask in shown if image is not None and mask.any()]
        ground = ground_of([image for image, _ in full], [mask for _, mask in full]) if len(full) >= FEWEST else None
        grounds.append(ground)
        told: list[Lesson | None] = []
        for one, (image, mask), all_views in zip(at, shown, outlines, strict=True):
            if ground is None or image is None or not mask.any():
                told.append(None)
                continue
            seen = Seen(View(image, mask, ground))
            pose = teacher.without([camera], all_views, one.pose, one.latent)
            told.append(lesson(seen, teacher.drawn(pose, camera, seen.window)))
        lessons.append(told)
    witnesses = []
    for first in (0, 1):
        some = [[one for one in told[first::2] if one is not None] for told in lessons]
        witnesses.append(tuple(Witnesses.learnt(one) if one else None for one in some))
    frames = tuple(tuple(one.frame for one in at[first::2]) for first in (0, 1))
    return KnownOutlines(None, frames, tuple(witnesses), tuple(grounds))
