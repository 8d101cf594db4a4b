"""Tracking in parts: each part finds the subject for itself and is tracked a few frames beyond its ends.

A neighbour that does not agree with a part and fits better is followed into it, until it meets the part's own track or
explains less, and takes the place of that stretch (the phase ``mend``); what still disagrees is marked when the parts
are joined.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.spans import Span
from tracking.adapting.scale_search import Found
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.observations.feature_tracks import FeatureTracks, follow
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.rivals import Foray, stays_better
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.track import Course, Track
from tracking.sequence.track_file import joined_track, open_track
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
        track = track if lead is None else replace(track, lead=np.minimum(track.lead, lead))
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


@dataclass(frozen=True, eq=False)
class _Foray:
    """A neighbour followed into a part.

    Attributes:
        frames: that it was followed through, and a few of the part's own track beyond.
        course: its fits in these.
        taken: those of them that are to take the place of the part's own.
    """

    frames: Span
    course: Course
    taken: Span


def _mend(job: Job, span: Span) -> None:
    """Follow neighbours that disagree with a part and fit better into it; keep what of that fits better."""
    spans = job.spans("track")
    index, wide = spans.index(span), _wide(job, span)
    rig = rig_of(job)
    subject, solver = part_solver(job, rig)
    for other in (index - 1, index + 1):
        if not 0 <= other < len(spans):
            continue
        here, neighbour = _part(job, span, "mend"), _part(job, spans[other], "track")
        frame, way = (span.first, 1) if other < index else (span.stop - 1, -1)
        guess = pose_at(neighbour, frame) if _disagrees(here, neighbour, way, solver.unit) else None
        if guess is None:
            continue
        with part_masks(job, span, wide) as masks:
            look, tracker = _looks(job, masks, rig), _tracker(job, solver, rig)
            foray = _followed_in(tracker, look, here, wide, frame, way, guess)
            if foray is None:
                continue
            track = _finished(job, tracker, foray.course, look, masks, foray.frames)
            track = _with_feet(job, track, masks, solver, rig, foray.frames)
            # As sure as the neighbour is where it was followed from.
            track = replace(track, lead=np.minimum(track.lead, _lead_at(neighbour, frame)))
        rows = slice(foray.taken.first - foray.frames.first, foray.taken.stop - foray.frames.first)
        reached = float(np.nan_to_num(track.agreement[rows]).mean())
        if reached > mean_agreement(replace(here, first=foray.taken.first, stop=foray.taken.stop)):
            window = job.path("track", "mend", span).with_name(f".mend-{span}.window")
            _write(job, window, track, subject, solver)
            _take(job.path("track", "mend", span), window, foray, here, frame, wide)
            window.unlink()


def _disagrees(here: TrackPart, neighbour: TrackPart, way: int, unit: float) -> bool:
    """Return whether a neighbour puts the subject elsewhere where both tracked it, and explains more."""
    if here.path is None:
        return True
    left, right = (neighbour, here) if way > 0 else (here, neighbour)
    seam = compare(left, right)
    theirs, ours = (seam.left, seam.right) if way > 0 else (seam.right, seam.left)
    return not seam.distance <= SEAM_TOLERANCE * unit and theirs > ours


def _followed_in(
    tracker: Tracker, look: Look, here: TrackPart, wide: Span, frame: int, way: int, guess: tuple[QuadPose, Floats]
) -> _Foray | None:
    """Follow a neighbour's pose in a frame into a part, as long as it pays; None where it promises nothing."""

    def observe(row: int) -> Observation:
        return look(wide.first + row)

    first = frame - wide.first
    if here.path is None:
        return _Foray(wide, tracker.follow(observe, len(wide), start=first, guess=guess), wide)
    with open_track(here.path) as file:
        poses, latent, agreement = [file.quads(row) for row in range(len(file))], file.latent(), file.agreement()
    if not stays_better(tracker.solver, observe, poses, agreement, first, way, guess):
        return None
    foray = Foray(poses, agreement, tracker.solver.unit)
    course = tracker.follow(
        observe, len(wide), start=first, guess=guess,
        until=lambda row, fit: (row - first) * way > 0 and foray.ends(row, fit),
    )  # fmt: skip
    if not foray.taken:
        return None
    taken = Span(0, first + foray.taken + 1) if way > 0 else Span(first - foray.taken, len(wide))
    rows = taken.widened(MARGIN, Span(0, len(wide)))

    def fitted(row: int) -> FrameFit | None:
        if taken.first <= row < taken.stop:
            return course.fits[row]
        if not np.isfinite(agreement[row]):
            return None
        return tracker.solver.fit(observe(row), poses[row], latent[row], latent_steps=False, warm=True)

    fits = tuple(fitted(row) for row in range(rows.first, rows.stop))
    return _Foray(
        Span(wide.first + rows.first, wide.first + rows.stop),
        replace(course, fits=fits, first=first - rows.first, lead=course.lead[rows.first : rows.stop]),
        Span(wide.first + taken.first, wide.first + taken.stop),
    )


def _lead_at(part: TrackPart, frame: int) -> float:
    """Return the lead of a part that was tracked in one of its frames."""
    assert part.path is not None
    with open_track(part.path) as file:
        return float(file.lead()[frame - part.start])


def _take(target: Path, window: Path, foray: _Foray, here: TrackPart, frame: int, wide: Span) -> None:
    """Write a part with the frames that a foray from ``frame`` takes, which ``window`` holds; the rest stays."""
    start = frame - wide.first
    taken = slice(foray.taken.first - wide.first, foray.taken.stop - wide.first)
    at = foray.frames.first - wide.first
    sources = [(window, slice(taken.start - at, taken.stop - at), taken)]
    if here.path is not None:
        with open_track(here.path) as file:
            if not taken.start <= file.start_frame < taken.stop:  # what is left of it goes back to its own start
                start = file.start_frame
        before, after = slice(0, taken.start), slice(taken.stop, len(wide))
        sources = [(here.path, before, before), *sources, (here.path, after, after)]
    sources = [one for one in sources if one[2].start < one[2].stop]
    with joined_track(target, sources, len(wide), start_frame=start, parameters={}):
        pass


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
