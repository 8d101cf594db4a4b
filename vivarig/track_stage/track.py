"""Tracking in parts: each part finds the subject for itself and is tracked a few frames beyond its ends.

A part that does not agree with a neighbour who fits better is tracked once more from that neighbour's pose (the phase
``mend``); what still disagrees is marked when the parts are joined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.spans import Span
from tracking.adapting.scale_search import Found
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.feature_tracks import FeatureTracks, follow
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.rivals import stays_better
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.track import Course, Track
from tracking.sequence.track_file import open_track
from tracking.sequence.track_joining import (
    SEAM_TOLERANCE,
    TrackPart,
    compare,
    join_tracks,
    mean_agreement,
    pose_at,
)
from tracking.sequence.track_output import write_track
from tracking.sequence.tracker import Tracker
from tracking.sequence.trust import AMBIGUOUS, plausible_size
from tracking.subjects.subject import Subject
from vivarig.console.progress import in_passes, progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.jobs.cutting import MARGIN, spread
from vivarig.jobs.footage_images import cameras_of, first_cut, footage_of, grey_images_of
from vivarig.jobs.job import Job, PartMasks
from vivarig.redrawing.clearing import clear_part
from vivarig.redrawing.learning import Masks, Redrawing
from vivarig.redrawing.parts import draw_part, join_parts, part_masks, redrawn_file
from vivarig.stages.options import DATA, TrackOptions
from vivarig.track_stage.feet_in_images import with_feet
from vivarig.track_stage.inputs import Look, Looks, Prepared, marked_points, part_solver, rig_of, sought, subject_name
from vivarig.track_stage.preparing import prepare
from vivarig.track_stage.track_summary import summary

__all__ = ["join", "prepare", "work"]

_TEXTURE_VIEWS = 4
"""Cameras in which marks are followed, spread over the rig: four see all sides, and decoding is what texture costs."""
_TEXTURE_HZ = 60.0
"""How often a second marks are looked at, at least, where there are as many frames: in between the skin turns little,
and frames without marks are held by those beside them."""


def work(job: Job, phase: str, span: Span) -> None:
    """Track one part, or track it once more from a neighbour who knows better."""
    if phase == "mend":
        _mend(job, span)
        return
    with progress_callback(f"track {span}") as on_progress:
        _track(job, span, on_progress)


def _track(job: Job, span: Span, on_progress: Callable[[int, int], None]) -> None:
    """Track one part; where its silhouettes are drawn again by that, track it on those."""
    wide = _wide(job, span)
    rig = rig_of(job)
    prepared: Prepared = job.prepared("track")
    outlines = prepared.outlines if prepared.outlines is not None and prepared.outlines.helps else None
    passes = in_passes(on_progress, len(span), (1 if prepared.things else 0) + (1 if outlines is None else 3))
    if prepared.things:
        with PartMasks(job) as masks:
            clear_part(redrawn_file(job, span), prepared.things, cameras_of(job, rig), masks, rig, wide, passes[0])
        passes = passes[1:]
    with part_masks(job, span, wide) as masks:
        look = _looks(job, masks, rig)
        start = _start(job, span, look)
        if start is None:
            return  # nothing to track here: the part leaves no file
        subject, solver = part_solver(job, rig)
        tracker = _tracker(job, solver, rig)
        course, lead = _followed(job, tracker, look, wide, start, passes[0])
        if outlines is None:
            track = _finished(job, tracker, course, look, masks, wide)
        else:
            redrawing, footage = Redrawing(outlines, solver, rig), cameras_of(job, rig)
            draw_part(redrawn_file(job, span), redrawing, footage, masks, rig, course.fits, wide, passes[1])
    with part_masks(job, span, wide) as masks:
        if outlines is not None:
            # What was found on the way is found; what the new silhouettes contradict is looked for on them alone.
            look = _looks(job, masks, rig)
            course = tracker.fit_again(lambda row: look(wide.first + row), course, passes[2])
            track = _finished(job, tracker, course, look, masks, wide)
        track = track if lead is None else replace(track, lead=lead)
        track = _with_feet(job, track, masks, solver, rig, wide)
    _write(job, job.path("track", "track", span), track, subject, solver)


def _followed(
    job: Job,
    tracker: Tracker,
    look: Look,
    wide: Span,
    start: tuple[int, Found | None],
    on_progress: Callable[[int, int], None],
) -> tuple[Course, float | None]:
    """Follow the subject through a part; return that, and how sure the start is where that was known before."""
    frame, known = start
    rival: FrameFit | None = None
    if known is not None and known.lead < AMBIGUOUS and tracker.solver.posture is not None:
        # Hardly told from its rivals with the built-in body: one that is built like the subject may tell it.
        fit, rival = tracker.sought_again(look(frame), (known.pose, known.latent))
        known = replace(known, pose=fit.pose, latent=fit.latent, lead=1.0, agreement=fit.agreement)
    others = {
        one.frame - wide.first: (one.pose, one.latent)
        for one in job.prepared("track").found
        if wide.first <= one.frame < wide.stop and one.frame != frame
    }
    course = tracker.follow(
        lambda row: look(wide.first + row),
        len(wide),
        start=frame - wide.first,
        guess=None if known is None else (known.pose, known.latent),
        others=others,
        rival=rival,
        on_progress=on_progress,
    )
    return course, None if known is None or rival is not None else known.lead


def _finished(job: Job, tracker: Tracker, course: Course, look: Look, masks: Masks, wide: Span) -> Track:
    """Return the track of a part that was followed."""
    texture = _texture(job, masks, rig_of(job), wide)
    return tracker.finish(lambda row: look(wide.first + row), course, texture=texture)


def _looks(job: Job, masks: Masks, rig: Rig) -> Looks:
    return Looks(masks, rig, marked_points(job), hull=job.options(TrackOptions).data != DATA[0])


def _start(job: Job, span: Span, look: Look) -> tuple[int, Found | None] | None:
    """Return the frame to start at: the one asked for, one where the subject is known, or the best seen one.

    Of frames that are seen equally well the one nearest to the middle is taken. None where no frame is seen by two
    cameras.
    """
    asked = job.options(TrackOptions).start
    if asked is not None and span.first <= asked < span.stop:
        return int(asked), None
    for known in sought(job.prepared("track")):
        if span.first <= known.frame < span.stop:
            return known.frame, known
    middle = (span.first + span.stop - 1) / 2
    seen = {frame: look(frame).seen for frame in spread(span, 24)}
    best = max(seen, key=lambda frame: (seen[frame], -abs(frame - middle)))
    return (best, None) if seen[best] >= 2 else None


def _mend(job: Job, span: Span) -> None:
    """Track a part again from the end of a neighbour that disagrees and fits better; keep it if it fits better."""
    spans = job.spans("track")
    index = spans.index(span)
    here = _part(job, span, "track")
    rig = rig_of(job)
    subject, solver = part_solver(job, rig)
    best = mean_agreement(here)
    wide = _wide(job, span)
    for other, frame in ((index - 1, span.first), (index + 1, span.stop - 1)):
        if not 0 <= other < len(spans):
            continue
        neighbour = _part(job, spans[other], "track")
        pair = (neighbour, here) if other < index else (here, neighbour)
        seam = compare(*pair)
        theirs, ours = (seam.left, seam.right) if other < index else (seam.right, seam.left)
        agrees = seam.distance <= SEAM_TOLERANCE * solver.unit
        if here.path is not None and (agrees or not theirs > ours):
            continue
        guess = pose_at(neighbour, frame)
        if guess is None:
            continue
        with part_masks(job, span, wide) as masks:
            look = _looks(job, masks, rig)
            if not _worth_it(here, solver, look, frame, 1 if other < index else -1, guess):
                continue
            track = _tracker(job, solver, rig).track(
                lambda row, look=look: look(wide.first + row),  # type: ignore[misc]
                len(wide),
                start=frame - wide.first,
                guess=guess,
                texture=_texture(job, masks, rig, wide),
            )
            track = _with_feet(job, track, masks, solver, rig, wide)
        reached = float(np.nan_to_num(track.agreement[span.first - wide.first : span.stop - wide.first]).mean())
        if reached > best:
            best = reached
            _write(job, job.path("track", "mend", span), track, subject, solver)


def _worth_it(
    here: TrackPart, solver: FrameSolver, look: Look, frame: int, way: int, guess: tuple[QuadPose, Floats]
) -> bool:
    """Return whether a neighbour's pose in a frame, followed into a part, promises a better track of it."""
    if here.path is None:
        return True
    with open_track(here.path) as file:
        poses, agreement = [file.quads(row) for row in range(len(file))], file.agreement()
    return stays_better(solver, lambda row: look(here.start + row), poses, agreement, frame - here.start, way, guess)


def join(job: Job) -> CommandReport:
    """Put the parts together and judge the whole."""
    options = job.options(TrackOptions)
    spans = job.spans("track")
    parts = [_part(job, span, "mend") for span in spans]
    _, solver = part_solver(job, rig_of(job))
    prepared: Prepared = job.prepared("track")
    parameters = {
        "subject": subject_name(job), "scale": prepared.scale, "smooth": options.smooth, "parts": len(spans),
        "shape": None if prepared.adaptation is None else prepared.adaptation.as_table(),
        "texture": options.texture, "data": options.data, "outlines": _outlines_told(job),
    }  # fmt: skip
    target = job.recording.results / "track.h5"
    # The size of a subject folder is its maker's business; that of a built-in body is known to have limits.
    plausible = plausible_size(subject_name(job), prepared.scale)
    girths = None if prepared.adaptation is None else prepared.adaptation.shape.girths
    skirt = None if prepared.adaptation is None else prepared.adaptation.skirt
    seams = join_tracks(
        target, parts, len(job.whole), unit=solver.unit, margin=MARGIN, parameters=parameters, plausible=plausible,
        girths=girths, skirt=0.0 if skirt is None else skirt.length,
    )  # fmt: skip
    apart = sum(seam.distance > SEAM_TOLERANCE * solver.unit for seam in seams)
    return summary(target, Span(spans[0].first, spans[-1].stop), apart, max((s.distance for s in seams), default=0))


def _outlines_told(job: Job) -> dict[str, Any] | None:
    """Put silhouettes that were drawn again together; say what became of them, None where that was not asked."""
    prepared: Prepared = job.prepared("track")
    known = prepared.outlines
    rig = rig_of(job)
    changed = join_parts(job, rig, [(span, _wide(job, span)) for span in job.spans("track")], first_cut(job))
    if known is None:
        return None
    shares = {} if changed is None else dict(zip(rig.names, changed.tolist(), strict=True))
    things = [name for name, one in zip(rig.names, prepared.things, strict=False) if one is not None]
    return {
        **known.as_table(), "redrawn": known.helps or bool(things), "helped": known.helps, "things": things,
        "added_and_taken_off": shares,
    }  # fmt: skip


def _wide(job: Job, span: Span) -> Span:
    spans = job.spans("track")
    return span.widened(MARGIN, Span(spans[0].first, spans[-1].stop))


def _texture(job: Job, masks: Masks, rig: Rig, span: Span) -> FeatureTracks | None:
    """Follow marks on the skin through some images of a part, one at a time; None where that is not wanted."""
    if not job.options(TrackOptions).texture:
        return None
    sources = {footage.name: footage for footage in footage_of(job)}
    count = min(len(rig), _TEXTURE_VIEWS)
    followed = {rig.names[k * len(rig) // count] for k in range(count)}
    followed = {name for name in followed if sources[name].has_images}
    if not followed:
        return None
    step = max(int(job.recording.rate_hz / _TEXTURE_HZ), 1)
    frames = range(span.first, span.stop, step)
    streams = [grey_images_of(sources[name], frames) if name in followed else repeat(None) for name in rig.names]
    seen = follow(
        (
            [next(stream, None) for stream in streams],
            [masks((name,), frame)[0] if name in followed else None for name in rig.names],
        )
        for frame in frames
    )
    return replace(seen, frames=step * seen.frames)


def _with_feet(job: Job, track: Track, masks: Masks, solver: FrameSolver, rig: Rig, span: Span) -> Track:
    """Return a track with what the images show of feet, where silhouettes lack them."""
    known = job.prepared("track").feet
    return track if known is None else with_feet(track, known, cameras_of(job, rig), masks, solver, rig, span)


def _tracker(job: Job, solver: FrameSolver, rig: Rig) -> Tracker:
    found = [one.agreement for one in job.prepared("track").found]
    settings = TrackerSettings(smooth_sweeps=job.options(TrackOptions).smooth).as_found(found)
    return Tracker(solver, rig, settings=settings)


def _write(job: Job, path: Path, track: Track, subject: Subject, solver: FrameSolver) -> None:
    write_track(path, track, subject, solver, rate_hz=job.recording.rate_hz, parameters={})


def _part(job: Job, span: Span, phase: str) -> TrackPart:
    """Return a part as tracked, or as mended where that was better."""
    path: Path | None = job.path("track", phase, span)
    if phase == "mend" and not job.path("track", "mend", span).is_file():
        path = job.path("track", "track", span)
    assert path is not None
    return TrackPart(path if path.is_file() else None, _wide(job, span).first, span.first, span.stop)
