"""Size and shape of the subject, once for all parts: from a dozen frames over the whole recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.once import once
from skeleton.bodies import BODIES
from tracking.adapting.build_search import FITS, Build, find_build
from tracking.adapting.scale_search import find_scale_and_poses
from tracking.adapting.shape_search import Adaptation, adapt_shape, adapt_to_clothes
from tracking.subjects.garments import WEARERS
from tracking.subjects.shape import builds
from tracking.subjects.subject import load_subject
from vivarig.jobs.cutting import spread
from vivarig.jobs.first_looks import Looked, look_frames, own_frames, shown_masks
from vivarig.jobs.footage_images import cameras_of
from vivarig.jobs.job import Job
from vivarig.jobs.seen_looks import seen_lent
from vivarig.redrawing.clearing import Things, clear_frames, parts_the_subject, things_that_stand
from vivarig.redrawing.learning import Masks, Redrawing, learn_outlines
from vivarig.redrawing.parts import found_again
from vivarig.stages.options import DATA, TrackOptions
from vivarig.track_stage.feet_in_images import learn_feet
from vivarig.track_stage.inputs import (
    Look,
    Looks,
    Prepared,
    marked_points,
    rig_of,
    solver_of,
    sought,
    subject_name,
    with_points,
)

__all__ = ["prepare"]

_BUILD_LOOKS = 4
_SHAPE_LOOKS, _STOUT_LOOKS = 7, 10
_TRIED = 10
"""Frames of a part that are looked at before it is held to be empty."""
_UP = np.array([0.0, 0.0, 1.0])


def prepare(job: Job, threads: int, looked: Looked) -> object:
    """Estimate the subject's size and shape from some frames; None where they show too little of it."""
    options = job.options(TrackOptions)
    name = subject_name(job)
    known = options.scale is not None
    shaped = name in BODIES and options.adapt
    if known and not shaped:
        return Prepared(options.scale or 1.0)
    with shown_masks(job, looked) as cut, seen_lent(job, looked.spans):
        rig = rig_of(job)
        subject = with_points(load_subject(name, base=job.folder), job)
        look = Looks(cut, rig, marked_points(job), hull=job.options(TrackOptions).data != DATA[0])
        good = _seen_best(job, looked, look)
        if not good:
            return None
        if not shaped:
            scale, at = find_scale_and_poses(subject, rig, look, _some(good, 2), up=_UP)
            return Prepared(scale, tuple(at))
        several = len(builds(subject.body)) > 1
        first = _some(good, _BUILD_LOOKS if several else 2)
        find = partial(find_build, subject, rig, frames=first, up=_UP, more=_some(good, _BUILD_LOOKS))
        footage = cameras_of(job, rig)
        build, things = (None, ()) if known else _parted(job, rig, cut, good, find(look), find)
        masks: Masks = clear_frames(cut, things, footage, good) if things else cut
        look = Looks(masks, rig, marked_points(job), hull=options.data != DATA[0]) if things else look
        adapt = partial(
            adapt_shape,
            subject,
            rig,
            scale=options.scale or (1.0 if build is None else build.shape.scale),
            up=_UP,
            known=() if build is None else build.found,
            fixed_lengths=known,
            build=None if build is None or build.plain else build.shape,
            skirt=None if build is None else build.skirt,
        )
        # More frames were tried with people alone, whose clothes hide them in some.
        more = good if subject.body in WEARERS else ()
        # An animal stouter than the built-in body is hunched in one frame and stretched in the next: more frames tell.
        looks = _SHAPE_LOOKS if build is None or build.plain else _STOUT_LOOKS
        prepared = _adapted(adapt_to_clothes(adapt, look, _some(good, looks), more))
        if not options.texture:
            return prepared
        if options.redraw:
            _, solver = solver_of(job, rig, prepared)
            outlines = once("outlines", partial(learn_outlines, footage, masks, rig, solver, prepared.found))
            if outlines.helps:
                again = found_again(Redrawing(outlines, solver, rig), footage, masks, rig, prepared.found)
                look = Looks(again, rig, marked_points(job), hull=options.data != DATA[0])
                frames = [one.frame for one in prepared.found]
                # from where it was found: the size that was looked for first holds what is now taken off
                again_adapted = adapt(look, frames, scale=options.scale or prepared.scale, known=prepared.found)
                if not again_adapted.why:  # else the shape of the silhouettes as cut out is the better guess
                    prepared = _adapted(again_adapted)
            prepared = replace(prepared, outlines=outlines, things=things)
        _, solver = solver_of(job, rig, prepared)
        return replace(prepared, feet=learn_feet(footage, masks, rig, solver, sought(prepared)))


def _parted(
    job: Job, rig: Rig, masks: Masks, frames: Sequence[int], build: Build, find: Callable[[Look], Build]
) -> tuple[Build, Things]:
    """Find a body that fits badly without what stands still in the silhouettes; return that, if it fits much better."""
    options = job.options(TrackOptions)
    if build.overlap >= FITS or not options.texture or not options.redraw:
        return build, ()
    footage = cameras_of(job, rig)
    things: Things = once("things", partial(things_that_stand, footage, masks, rig, frames))
    if not things:
        return build, ()
    cleared = clear_frames(masks, things, footage, frames)
    look = Looks(cleared, rig, marked_points(job), hull=options.data != DATA[0])
    if any(look(frame).seen < 2 for frame in frames):
        return build, ()
    other = find(look)
    return (other, things) if parts_the_subject(build, other) else (build, ())


def _adapted(adaptation: Adaptation) -> Prepared:
    return Prepared(adaptation.shape.scale, adaptation.found, adaptation)


def _seen_best(job: Job, looked: Looked, look: Look) -> list[int]:
    """Return about a dozen frames, those that most cameras see; none where no two cameras see any, or more is asked."""
    seen: dict[int, int] = {}
    for span in looked.spans:
        some = {frame: look(frame).seen for frame in look_frames(job, span, len(looked.spans))}
        for frame in spread(own_frames(job, span), _TRIED):
            if any(count >= 2 for count in some.values()):
                break
            if looked.first:
                return []  # frames between may show it
            some[frame] = look(frame).seen
        seen |= some
    best = max(seen.values(), default=0)
    return sorted(frame for frame, count in seen.items() if count == best) if best >= 2 else []


def _some(frames: list[int], count: int) -> list[int]:
    """Return up to ``count`` of the frames, the first and the last among them."""
    return sorted({frames[k] for k in np.linspace(0, len(frames) - 1, min(len(frames), count)).astype(int)})
