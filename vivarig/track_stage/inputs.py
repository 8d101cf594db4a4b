"""What tracking is given: cameras, prepared silhouettes, the subject at its size, marked points, and its solver."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError
from tracking.adapting.scale_search import Found, make_solver, usual_settings
from tracking.adapting.shape_search import Adaptation
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameSolver
from tracking.observations.contours import Observation, observe
from tracking.observations.surface import Surface
from tracking.points.placing import points_on
from tracking.subjects.subject import Subject, load_subject, scaled_subject
from vivarig.jobs.footage_images import footage_of
from vivarig.jobs.job import Job
from vivarig.redrawing.clearing import Things
from vivarig.redrawing.learning import KnownOutlines, Masks
from vivarig.stages.options import DATA, TrackOptions
from vivarig.track_stage.feet_in_images import KnownFeet
from vivarig.track_stage.marked_points import MarkedPoints, load_marked_points

__all__ = [
    "Look",
    "Looks",
    "Prepared",
    "data_settings",
    "marked_points",
    "part_solver",
    "rig_of",
    "solver_of",
    "sought",
    "subject_name",
    "with_points",
]

_KEPT_BYTES = 96_000_000
"""Prepared silhouettes that one worker keeps: a frame is looked at three times and more."""
Look = Callable[[int], Observation]


@dataclass(frozen=True, eq=False)
class Prepared:
    """What all parts share: the subject's size against its template, and where it was found on the way.

    Attributes:
        scale: size of the subject.
        found: where it is in some frames.
        adaptation: its lengths and girths, if they were looked for.
        feet: what a rodent's feet look like, where silhouettes lack them.
        outlines: what helps to draw the silhouettes again, and whether it does; None where that is not wanted.
        things: that stand still in the silhouettes and are taken off; () for none.
    """

    scale: float
    found: tuple[Found, ...] = ()
    adaptation: Adaptation | None = None
    feet: KnownFeet | None = None
    outlines: KnownOutlines | None = None
    things: Things = ()


def sought(prepared: Prepared) -> tuple[Found, ...]:
    """Return where the subject was found among rivals, which says how sure that is."""
    return tuple(one for one in prepared.found if np.isfinite(one.lead))


def subject_name(job: Job) -> str:
    """Return the subject that the option or the recording names."""
    name = job.options(TrackOptions).subject or job.recording.subject
    if not name:
        raise InputError(f"{job.folder}: recording.toml names no subject; give --subject mouse|rat|human|FOLDER")
    return str(name)


def rig_of(job: Job) -> Rig:
    """Return the cameras that have silhouettes."""
    names = [job.recording.footage[index].name for index in job.recording.of_kind("light")]
    return job.recording.need_rig().subset(names)


class Looks:
    """Silhouettes of any frame, prepared for the solver; those of a part are kept, as far as memory allows."""

    def __init__(self, masks: Masks, rig: Rig, marked: MarkedPoints | None, *, hull: bool = False) -> None:
        self._masks, self._rig, self._names, self._marked = masks, rig, tuple(rig.names), marked
        self._hull = hull
        self._kept: dict[int, Observation] = {}
        self._room = _KEPT_BYTES

    def __call__(self, frame: int) -> Observation:
        """Return what all cameras saw in a frame."""
        if frame not in self._kept:
            look = self._prepared(frame)
            if self._marked is not None:
                look = replace(look, sightings=self._marked.believed(frame, self._rig, look.views))
            self._kept[frame] = look
            self._room -= look.nbytes
            while self._room < 0 and len(self._kept) > 1:
                self._room += self._kept.pop(next(iter(self._kept))).nbytes
        return self._kept[frame]

    def _prepared(self, frame: int) -> Observation:
        masks = self._masks(self._names, frame)
        if not self._hull:
            return observe(masks)
        surface = Surface.of_masks(masks, self._rig)
        # No hull, nothing to lie on: the frame counts as not seen.
        return observe(masks, used=np.full(len(masks), surface is not None)).with_surface(surface)


def part_solver(job: Job, rig: Rig) -> tuple[Subject, FrameSolver]:
    return solver_of(job, rig, job.prepared("track"))


def solver_of(job: Job, rig: Rig, prepared: Prepared) -> tuple[Subject, FrameSolver]:
    if prepared.adaptation is not None and prepared.adaptation.subject is not None:
        subject = prepared.adaptation.subject
    else:
        subject = with_points(_sized(subject_name(job), job.folder, prepared.scale, job.plans["track"].rests_on), job)
    return subject, make_solver(subject, rig, data_settings(subject, job.options(TrackOptions).data))


def data_settings(subject: Subject, data: str) -> Settings:
    """Return the solver's settings for a subject and what its template is laid on, one of `DATA`."""
    return replace(usual_settings(subject), hull=data != DATA[0], one_sided=data == DATA[2])


@lru_cache(maxsize=1)
def _sized(name: str, folder: Path, scale: float, rests_on: str) -> Subject:
    subject = load_subject(name, base=folder)
    return subject if scale == 1.0 else scaled_subject(subject, scale)


def marked_points(job: Job) -> MarkedPoints | None:
    """Return the 2D points that the recording names, None where there are none."""
    if not any(footage.points for footage in job.recording.footage):
        return None
    subject = load_subject(subject_name(job), base=job.folder)
    return load_marked_points(
        footage_of(job), job.recording.point_names, job.recording.rate_hz, subject, rig_of(job).names
    )


def with_points(subject: Subject, job: Job) -> Subject:
    """Put the points of the recording's files on a subject."""
    marked = marked_points(job)
    return subject if marked is None else replace(subject, points=points_on(subject, marked.names))
