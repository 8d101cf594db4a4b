"""Tracking in parts: each part finds the subject for itself and is tracked a few frames beyond its ends.

A part that does not agree with a neighbour who fits better is tracked once more from that neighbour's pose (the phase
``mend``); what still disagrees is marked when the parts are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.once import once
from calibration.foundation.spans import Span
from skeleton.bodies import BODIES
from tracking.adapting.build_search import FITS, Build, find_build
from tracking.adapting.scale_search import Found, find_scale_and_poses, make_solver, usual_settings
from tracking.adapting.shape_search import Adaptation, adapt_shape
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameSolver
from tracking.observations.contours import Observation, observe
from tracking.observations.feature_tracks import FeatureTracks, follow
from tracking.observations.surface import Surface
from tracking.points.placing import points_on
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.rivals import stays_better
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.track import Track
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
from tracking.subjects.garments import WEARERS
from tracking.subjects.shape import builds
from tracking.subjects.subject import Subject, load_subject, scaled_subject
from vivarig.console.progress import in_passes, progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.jobs.cutting import MARGIN, spread
from vivarig.jobs.first_looks import Looked, look_frames, own_frames, shown_masks
from vivarig.jobs.footage_images import cameras_of, first_cut, footage_of, grey_images_of
from vivarig.jobs.job import Job, PartMasks
from vivarig.redrawing.clearing import ClearedMasks, Things, clear_part, parts_the_subject, things_that_stand
from vivarig.redrawing.learning import KnownOutlines, Masks, Redrawing, learn_outlines
from vivarig.redrawing.parts import draw_part, found_again, join_parts, part_masks, redrawn_file
from vivarig.stages.feet_in_images import KnownFeet, learn_feet, with_feet
from vivarig.stages.marked_points import MarkedPoints, load_marked_points
from vivarig.stages.options import DATA, TrackOptions
from vivarig.stages.track_summary import summary

__all__ = ["join", "prepare", "work"]

_BUILD_LOOKS = 4
_SHAPE_LOOKS, _STOUT_LOOKS = 7, 10
_TRIED = 10
"""Frames of a part that are looked at before it is held to be empty."""
_TEXTURE_VIEWS = 4
"""Cameras in which marks are followed, spread over the rig: four see all sides, and decoding is what texture costs."""
_KEPT_BYTES = 96_000_000
"""Prepared silhouettes that one worker keeps: a frame is looked at three times and more."""
_UP = np.array([0.0, 0.0, 1.0])
Look = Callable[[int], Observation]


@dataclass(frozen=True, eq=False)
class _Prepared:
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


def prepare(job: Job, threads: int, looked: Looked) -> object:
    """Estimate the subject's size and shape from some frames; None where they show too little of it."""
    options = job.options(TrackOptions)
    name = subject_name(job)
    known = options.scale is not None
    shaped = name in BODIES and options.adapt
    if known and not shaped:
        return _Prepared(options.scale or 1.0)
    with shown_masks(job, looked) as cut:
        rig = _rig(job)
        subject = _with_points(load_subject(name, base=job.folder), job)
        look = _Looks(cut, rig, _marked(job), hull=job.options(TrackOptions).data != DATA[0])
        good = _seen_best(job, looked, look)
        if not good:
            return None
        if not shaped:
            scale, at = find_scale_and_poses(subject, rig, look, _some(good, 2), up=_UP)
            return _Prepared(scale, tuple(at))
        several = len(builds(subject.body)) > 1
        first = _some(good, _BUILD_LOOKS if several else 2)
        find = partial(find_build, subject, rig, frames=first, up=_UP, more=_some(good, _BUILD_LOOKS))
        build, things = (None, ()) if known else _parted(job, rig, cut, good, find(look), find)
        footage = cameras_of(job, rig)
        masks: Masks = ClearedMasks(cut, things, footage) if things else cut
        look = _Looks(masks, rig, _marked(job), hull=options.data != DATA[0]) if things else look
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
        adapted = adapt(look, _some(good, looks), more=more)
        if len(more) > looks and adapted.loosely_dressed:
            with_all = adapt(look, more)
            adapted = adapted if with_all.why else with_all
        prepared = _adapted(adapted)
        if not options.texture:
            return prepared
        if options.redraw:
            _, solver = _solver_of(job, rig, prepared)
            outlines = once("outlines", partial(learn_outlines, footage, masks, rig, solver, prepared.found))
            if outlines.helps:
                again = found_again(Redrawing(outlines, solver, rig), footage, masks, rig, prepared.found)
                look = _Looks(again, rig, _marked(job), hull=options.data != DATA[0])
                frames = [one.frame for one in prepared.found]
                # from where it was found: the size that was looked for first holds what is now taken off
                again_adapted = adapt(look, frames, scale=options.scale or prepared.scale, known=prepared.found)
                if not again_adapted.why:  # else the shape of the silhouettes as cut out is the better guess
                    prepared = _adapted(again_adapted)
            prepared = replace(prepared, outlines=outlines, things=things)
        _, solver = _solver_of(job, rig, prepared)
        return replace(prepared, feet=learn_feet(footage, masks, rig, solver, _sought(prepared)))


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
    look = _Looks(ClearedMasks(masks, things, footage), rig, _marked(job), hull=options.data != DATA[0])
    if any(look(frame).seen < 2 for frame in frames):
        return build, ()
    other = find(look)
    return (other, things) if parts_the_subject(build, other) else (build, ())


def _adapted(adaptation: Adaptation) -> _Prepared:
    return _Prepared(adaptation.shape.scale, adaptation.found, adaptation)


def _sought(prepared: _Prepared) -> tuple[Found, ...]:
    """Return where the subject was found among rivals, which says how sure that is."""
    return tuple(one for one in prepared.found if np.isfinite(one.lead))


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


def work(job: Job, phase: str, span: Span) -> None:
    """Track one part, or track it once more from a neighbour who knows better."""
    if phase == "mend":
        _mend(job, span)
        return
    with progress_callback(f"track {span}") as on_progress:
        _track(job, span, on_progress)


def _track(job: Job, span: Span, on_progress: Callable[[int, int], None]) -> None:
    """Track one part; where its silhouettes are drawn again by that, track it on those."""
    options = job.options(TrackOptions)
    wide = _wide(job, span)
    rig = _rig(job)
    prepared: _Prepared = job.prepared("track")
    draws = prepared.outlines is not None and prepared.outlines.helps
    passes = in_passes(on_progress, len(span), (1 if prepared.things else 0) + (3 if draws else 1))
    if prepared.things:
        with PartMasks(job) as masks:
            clear_part(redrawn_file(job, span), prepared.things, cameras_of(job, rig), masks, rig, wide, passes[0])
        passes = passes[1:]
    with part_masks(job, span, wide) as masks:
        look = _Looks(masks, rig, _marked(job), hull=job.options(TrackOptions).data != DATA[0])
        start = _start(job, span, look)
        if start is None:
            return  # nothing to track here: the part leaves no file
        frame, known = start
        subject, solver = _solver(job, rig)
        tracker = _tracker(options, solver, rig)
        if known is not None and known.lead < AMBIGUOUS and solver.posture is not None:
            # Hardly told from its rivals with the built-in body: one that is built like the subject may tell it.
            fit, lead = tracker.sought_again(look(frame), (known.pose, known.latent))
            known = replace(known, pose=fit.pose, latent=fit.latent, lead=lead, agreement=fit.agreement)
        others = {
            one.frame - wide.first: (one.pose, one.latent)
            for one in prepared.found
            if wide.first <= one.frame < wide.stop and one.frame != frame
        }
        guess = None if known is None else (known.pose, known.latent)
        track = tracker.track(
            lambda row: look(wide.first + row),
            len(wide),
            start=frame - wide.first,
            guess=guess,
            others=others,
            texture=_texture(job, masks, rig, wide),
            on_progress=passes[0],
        )
        if draws and prepared.outlines is not None:
            redrawing = Redrawing(prepared.outlines, solver, rig)
            draw_part(redrawn_file(job, span), redrawing, cameras_of(job, rig), masks, rig, track, wide, passes[1])
    with part_masks(job, span, wide) as masks:
        if draws:
            track = _once_more(job, track, masks, rig, wide, frame - wide.first, passes[2])
        if known is not None:
            track = replace(track, lead=known.lead)
        track = _with_feet(job, track, masks, solver, rig, wide)
    _write(job, job.path("track", "track", span), track, subject, solver)


def _once_more(
    job: Job, track: Track, masks: Masks, rig: Rig, wide: Span, start: int, on_progress: Callable[[int, int], None]
) -> Track:
    """Return the track of a part on silhouettes that were drawn again, from where it was in the frame to start at."""
    options = job.options(TrackOptions)
    look = _Looks(masks, rig, _marked(job), hull=options.data != DATA[0])
    guess = (QuadPose(track.rotations[start], track.centres[start]), track.latent[start])
    return _tracker(options, _solver(job, rig)[1], rig).track(
        lambda row: look(wide.first + row),
        len(wide),
        start=start,
        guess=guess if np.isfinite(track.centres[start]).all() else None,
        texture=_texture(job, masks, rig, wide),
        on_progress=on_progress,
    )


def _start(job: Job, span: Span, look: Look) -> tuple[int, Found | None] | None:
    """Return the frame to start at: the one asked for, one where the subject is known, or the best seen one.

    Of frames that are seen equally well the one nearest to the middle is taken. None where no frame is seen by two
    cameras.
    """
    asked = job.options(TrackOptions).start
    if asked is not None and span.first <= asked < span.stop:
        return int(asked), None
    for known in _sought(job.prepared("track")):
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
    rig = _rig(job)
    subject, solver = _solver(job, rig)
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
            look = _Looks(masks, rig, _marked(job), hull=job.options(TrackOptions).data != DATA[0])
            if not _worth_it(here, solver, look, frame, 1 if other < index else -1, guess):
                continue
            track = _tracker(job.options(TrackOptions), solver, rig).track(
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
    _, solver = _solver(job, _rig(job))
    prepared: _Prepared = job.prepared("track")
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
    prepared: _Prepared = job.prepared("track")
    known = prepared.outlines
    rig = _rig(job)
    changed = join_parts(job, rig, [(span, _wide(job, span)) for span in job.spans("track")], first_cut(job))
    if known is None:
        return None
    shares = {} if changed is None else dict(zip(rig.names, changed.tolist(), strict=True))
    things = [name for name, one in zip(rig.names, prepared.things, strict=False) if one is not None]
    return {
        **known.as_table(), "redrawn": known.helps or bool(things), "helped": known.helps, "things": things,
        "added_and_taken_off": shares,
    }  # fmt: skip


def subject_name(job: Job) -> str:
    """Return the subject that the option or the recording names."""
    name = job.options(TrackOptions).subject or job.recording.subject
    if not name:
        raise InputError(f"{job.folder}: recording.toml names no subject; give --subject mouse|rat|human|FOLDER")
    return str(name)


def _wide(job: Job, span: Span) -> Span:
    spans = job.spans("track")
    return span.widened(MARGIN, Span(spans[0].first, spans[-1].stop))


def _rig(job: Job) -> Rig:
    """Return the cameras that have silhouettes."""
    names = [job.recording.footage[index].name for index in job.recording.of_kind("light")]
    return job.recording.need_rig().subset(names)


class _Looks:
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


def _texture(job: Job, masks: Masks, rig: Rig, span: Span) -> FeatureTracks | None:
    """Follow marks on the skin through the images of some frames, a frame at a time; None where that is not wanted."""
    if not job.options(TrackOptions).texture:
        return None
    sources = {footage.name: footage for footage in footage_of(job)}
    count = min(len(rig), _TEXTURE_VIEWS)
    followed = {rig.names[k * len(rig) // count] for k in range(count)}
    followed = {name for name in followed if sources[name].has_images}
    if not followed:
        return None
    streams = [grey_images_of(sources[name], span) if name in followed else repeat(None) for name in rig.names]
    return follow(
        (
            [next(stream, None) for stream in streams],
            [masks((name,), frame)[0] if name in followed else None for name in rig.names],
        )
        for frame in range(span.first, span.stop)
    )


def _with_feet(job: Job, track: Track, masks: Masks, solver: FrameSolver, rig: Rig, span: Span) -> Track:
    """Return a track with what the images show of feet, where silhouettes lack them."""
    known = job.prepared("track").feet
    return track if known is None else with_feet(track, known, cameras_of(job, rig), masks, solver, rig, span)


def _solver(job: Job, rig: Rig) -> tuple[Subject, FrameSolver]:
    return _solver_of(job, rig, job.prepared("track"))


def _solver_of(job: Job, rig: Rig, prepared: _Prepared) -> tuple[Subject, FrameSolver]:
    if prepared.adaptation is not None and prepared.adaptation.subject is not None:
        subject = prepared.adaptation.subject
    else:
        subject = _with_points(_sized(subject_name(job), job.folder, prepared.scale, job.plans["track"].rests_on), job)
    return subject, make_solver(subject, rig, data_settings(subject, job.options(TrackOptions).data))


def data_settings(subject: Subject, data: str) -> Settings:
    """Return the solver's settings for a subject and what its template is laid on, one of `DATA`."""
    return replace(usual_settings(subject), hull=data != DATA[0], one_sided=data == DATA[2])


@lru_cache(maxsize=1)
def _sized(name: str, folder: Path, scale: float, rests_on: str) -> Subject:
    subject = load_subject(name, base=folder)
    return subject if scale == 1.0 else scaled_subject(subject, scale)


def _marked(job: Job) -> MarkedPoints | None:
    """Return the 2D points that the recording names, None where there are none."""
    if not any(footage.points for footage in job.recording.footage):
        return None
    subject = load_subject(subject_name(job), base=job.folder)
    return load_marked_points(
        footage_of(job), job.recording.point_names, job.recording.rate_hz, subject, _rig(job).names
    )


def _with_points(subject: Subject, job: Job) -> Subject:
    """Put the points of the recording's files on a subject."""
    marked = _marked(job)
    return subject if marked is None else replace(subject, points=points_on(subject, marked.names))


def _tracker(options: TrackOptions, solver: FrameSolver, rig: Rig) -> Tracker:
    return Tracker(solver, rig, settings=TrackerSettings(smooth_sweeps=options.smooth))


def _write(job: Job, path: Path, track: Track, subject: Subject, solver: FrameSolver) -> None:
    write_track(path, track, subject, solver, rate_hz=job.recording.rate_hz, parameters={})


def _part(job: Job, span: Span, phase: str) -> TrackPart:
    """Return a part as tracked, or as mended where that was better."""
    path: Path | None = job.path("track", phase, span)
    if phase == "mend" and not job.path("track", "mend", span).is_file():
        path = job.path("track", "track", span)
    assert path is not None
    return TrackPart(path if path.is_file() else None, _wide(job, span).first, span.first, span.stop)
