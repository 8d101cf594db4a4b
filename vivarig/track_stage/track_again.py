"""A track with the edits of a recording: tracked again around what was changed, and as it was everywhere else.

Around edited silhouettes and key poses the subject is tracked anew, from the key pose or from where it was; what comes
out takes the place of the old rows from where the two part to where they meet again. Frames that are said to be lost
are marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from calibration.foundation.trust import Trust
from capture.recordings.masks import LikeliestMasks, mask_cameras
from capture.recordings.recording import Recording
from skeleton.bodies import BODIES
from tracking.adapting.scale_search import make_solver
from tracking.observations.contours import Observation, observe
from tracking.points.placing import points_on
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import frames_with_limbs, judge_limbs, limits_of
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.track_file import TrackFile, joined_track, open_track
from tracking.sequence.track_joining import SEAM_TOLERANCE
from tracking.sequence.track_output import write_track
from tracking.sequence.tracker import Tracker
from tracking.sequence.trust import Reason, judge_track
from tracking.subjects.garments import Skirt, dressed
from tracking.subjects.skin import subject_as_told
from tracking.subjects.subject import Subject, load_subject, scaled_subject
from vivarig.edits.edit_file import Edits, KeyPose
from vivarig.redrawing.parts import FILE as REDRAWN
from vivarig.track_stage.marked_points import MarkedPoints, load_marked_points

__all__ = ["track_again"]

STAGE = "silhouettes"
_Masks = Callable[[str, int], Bools]
REACH = 30
"""Frames on either side of an edit that are tracked anew at most; the first ones that agree with the old end it."""
SAME = 1 / 3
"""Share of `SEAM_TOLERANCE` below which old and new are the same: quads of a frame that is tracked from another one lie
3 to 5 thousandths of the subject's size apart (a mouse in small images), and with less an edit was felt to the ends."""


@dataclass(frozen=True, eq=False)
class _Window:
    """Rows ``rows`` that are tracked anew because of an edit in ``touched``, from ``key`` if there is one."""

    rows: Span
    touched: Span
    key: KeyPose | None


@dataclass(frozen=True, eq=False)
class _Done:
    """Rows ``span`` that changed; ``path`` holds those of ``window``."""

    window: _Window
    span: Span
    path: Path

    @property
    def cut(self) -> tuple[bool, bool]:
        """Whether the new track had not met the old one where its window begins, and where it ends."""
        return self.span.first == self.window.rows.first, self.span.stop == self.window.rows.stop


def track_again(
    recording: Recording, raw: Path, target: Path, silhouettes: Path, edits: Edits, touched: Ints, first: int
) -> list[Span]:
    """Write the track of ``raw`` with the edits; return the rows that were tracked again.

    Args:
        recording: whose.
        raw: the track as made.
        target: file to write.
        silhouettes: with their edits.
        edits: what was changed.
        touched: rows whose silhouettes were.
        first: frame of the recording that row 0 is.
    """
    done: list[_Done] = []
    with ExitStack() as stack:
        old = stack.enter_context(open_track(raw))
        windows = _windows(edits, touched, first, len(old))
        unit = 1.0
        if windows:
            cut = LikeliestMasks(stack.enter_context(open_results(silhouettes, stage=STAGE)))
            masks: _Masks = cut
            redrawn = target.with_name(REDRAWN)
            if (old.parameters.get("outlines") or {}).get("redrawn"):
                masks = _beside(cut, LikeliestMasks(stack.enter_context(open_results(redrawn, stage=STAGE))), touched)
            again = _Again(recording, old, masks, mask_cameras(silhouettes)[0], first)
            unit = again.solver.unit
            for number, window in enumerate(windows):
                path = target.with_name(f".{target.name}.{number}")
                stack.callback(path.unlink, missing_ok=True)
                done.append(again.tracked(window, path))
        taken = _taken(raw, done, len(old))
        with joined_track(target, taken, len(old), start_frame=old.start_frame, parameters=old.parameters) as file:
            _judge(file, old, done, unit)
            _lose(file, edits, first)
    return [one.span for one in done]


def _beside(edited: _Masks, redrawn: _Masks, touched: Ints) -> _Masks:
    """Return silhouettes as the track had them, drawn again, but for rows in which they were mended by hand."""
    rows = frozenset(touched.tolist())
    return lambda name, row: (edited if row in rows else redrawn)(name, row)


def _windows(edits: Edits, touched: Ints, first: int, frames: int) -> list[_Window]:
    """Return the windows to track, none meeting another."""
    keys = {one.frame - first: one for one in edits.key_poses if one.quads and 0 <= one.frame - first < frames}
    rows = np.zeros(frames, bool)
    rows[touched] = True
    rows[list(keys)] = True
    found: list[Span] = []
    for row in np.flatnonzero(rows).tolist():
        if found and row - found[-1].stop < 4:
            found[-1] = Span(found[-1].first, row + 1)
        else:
            found.append(Span(row, row + 1))
    windows: list[_Window] = []
    for k, span in enumerate(found):
        low = max(span.first - REACH, found[k - 1].stop if k else 0)
        high = min(span.stop + REACH, found[k + 1].first if k + 1 < len(found) else frames)
        if windows and windows[-1].rows.stop > low:  # two reaches share the frames between their edits
            middle = (windows[-1].touched.stop + span.first) // 2
            windows[-1] = replace(windows[-1], rows=Span(windows[-1].rows.first, middle))
            low = middle
        key = next((keys[row] for row in range(span.first, span.stop) if row in keys), None)
        windows.append(_Window(Span(low, high), span, key))
    return windows


class _Again:
    """Tracks windows of a track anew."""

    def __init__(self, recording: Recording, old: TrackFile, masks: _Masks, names: Sequence[str], first: int) -> None:
        self._rate_hz, self._old, self._masks = recording.rate_hz, old, masks
        self._rig = recording.need_rig().subset(list(names))
        told = old.parameters
        builtin = load_subject(str(told["subject"]), base=recording.folder)
        self._marked: MarkedPoints | None = None
        if any(footage.points for footage in recording.footage):
            marked = load_marked_points(
                recording.from_frame(first).footage, recording.point_names, recording.rate_hz, builtin, self._rig.names
            )
            if marked is not None:
                self._marked, builtin = marked, replace(builtin, points=points_on(builtin, marked.names))
        self._subject = _sized(builtin, told)
        self.solver = make_solver(self._subject, self._rig)
        self._settings = TrackerSettings(smooth_sweeps=int(told.get("smooth", 1)))
        self._first = first

    def tracked(self, window: _Window, path: Path) -> _Done:
        """Track a window into a file, and find the rows in which it differs from the old track."""
        rows = window.rows
        tracker = Tracker(self.solver, self._rig, settings=self._settings)
        start = window.touched.first if window.key is None else window.key.frame - self._first
        guess = self._guess(start, window.key)
        kept: dict[int, Observation] = {}

        def look(row: int) -> Observation:
            if row not in kept:
                seen = observe([self._masks(name, rows.first + row) for name in self._rig.names])
                if self._marked is not None:
                    seen = replace(seen, sightings=self._marked.believed(rows.first + row, self._rig, seen.views))
                kept[row] = seen
            return kept[row]

        track = tracker.track(look, len(rows), start=start - rows.first, guess=guess)
        write_track(path, track, self._subject, self.solver, rate_hz=self._rate_hz, parameters={})
        return _Done(window, self._parted(window, track.centres), path)

    def _guess(self, row: int, key: KeyPose | None) -> tuple[QuadPose, Floats] | None:
        """Return the pose to begin with: where it was, with the key pose's quads where they are said to be."""
        pose = self._old.quads(row)
        centres = np.array(pose.centres)
        if not np.isfinite(centres).all():
            return None
        names = list(self._old.quad_names)
        for name, place in key.quads.items() if key is not None else ():
            if name not in names:
                raise InputError(f"edits.toml: no quad '{name}' in this subject; {nearest(name, names)}")
            centres[names.index(name)] = place
        return QuadPose(pose.rotations, centres), self._old.latent(row)

    def _parted(self, window: _Window, centres: Floats) -> Span:
        """Return the rows around an edit in which new and old are apart."""
        rows, touched = window.rows, window.touched
        apart = np.linalg.norm(centres - self._old.centres(slice(rows.first, rows.stop)), axis=-1).mean(axis=1)
        other = ~(apart <= SAME * SEAM_TOLERANCE * self.solver.unit)
        low, high = touched.first - rows.first, touched.stop - rows.first
        while low > 0 and other[low - 1]:
            low -= 1
        while high < len(rows) and other[high]:
            high += 1
        return Span(rows.first + low, rows.first + high)


def _sized(builtin: Subject, told: dict[str, Any]) -> Subject:
    """Return the subject as it was tracked, of the size and shape that the track's file tells."""
    shape = told.get("shape")
    worn = shape.get("skirt") if isinstance(shape, dict) else None
    skirt = Skirt.told(worn) if worn else None
    if isinstance(shape, dict) and builtin.name in BODIES:
        factors = {*shape["lengths"].values(), *shape["girths"].values()}
        if shape["kept"] or len(factors) > 1:
            return dressed(subject_as_told(builtin, shape), skirt)
    scale = float(told.get("scale", 1.0))
    return dressed(builtin if scale == 1.0 else scaled_subject(builtin, scale), skirt)


def _taken(raw: Path, done: Sequence[_Done], frames: int) -> list[tuple[Path, slice, slice]]:
    """Return where each row comes from: the old track, and the windows where they changed."""
    taken: list[tuple[Path, slice, slice]] = []
    at = 0
    for one in done:
        taken.append((raw, slice(at, one.span.first), slice(at, one.span.first)))
        rows = slice(one.span.first - one.window.rows.first, one.span.stop - one.window.rows.first)
        taken.append((one.path, rows, slice(one.span.first, one.span.stop)))
        at = one.span.stop
    taken.append((raw, slice(at, frames), slice(at, frames)))
    return [one for one in taken if one[2].start < one[2].stop]


def _judge(file: TrackFile, old: TrackFile, done: Sequence[_Done], unit: float) -> None:
    """Judge the new rows beside those of the whole track; the old ones keep their verdicts."""
    trust, reason = file.trust(), file.reason()
    overlap = file.overlap()
    if done and overlap is not None:
        names = list(old.limb_names)
        limits = limits_of(names)
        new_trust, new_reason = judge_track(
            overlap,
            file.departure(),
            file.stored_centres,
            np.ones(len(trust)),
            unit=unit,
            poor=limits.poor,
            fall=limits.fall,
        )
        for one in done:
            here = slice(one.span.first, one.span.stop)
            level, why = new_trust[here].copy(), new_reason[here].copy()
            for row, cut in zip((0, -1), one.cut, strict=True):
                at_end = one.span.first == 0 if row == 0 else one.span.stop == len(trust)
                if cut and not at_end and level[row] == Trust.TRUSTED:
                    level[row], why[row] = int(Trust.DOUBTFUL), int(Reason.PARTS_DISAGREE)
            limb_trust, limb_reason = judge_limbs(file.limb_record(here), unit=unit, limits=limits)
            level, why = frames_with_limbs(level, why, limb_trust, limb_reason, names)
            file.judge_limbs(here, limb_trust, limb_reason)
            trust[here], reason[here] = level, why
    file.judge(trust, reason)


def _lose(file: TrackFile, edits: Edits, first: int) -> None:
    """Mark what is said to be lost."""
    limbs, code = list(file.limb_names), int(Reason.SAID_BY_HAND)
    trust, reason = file.trust(), file.reason()
    for one in edits.lost:
        rows = slice(max(one.first - first, 0), max(one.last - first + 1, 0))
        named: Bools = np.array([one.limb in ("", name) for name in limbs], dtype=bool)
        if one.limb and not named.any():
            raise InputError(f"edits.toml: no limb '{one.limb}' in this track; {nearest(one.limb, limbs)}")
        if limbs:
            limb_trust, limb_reason = file.limb_trust(rows), file.limb_reason(rows)
            limb_trust[:, named], limb_reason[:, named] = int(Trust.LOST), code
            file.judge_limbs(rows, limb_trust, limb_reason)
        if not one.limb:
            trust[rows], reason[rows] = int(Trust.LOST), code
            continue
        level, why = trust[rows], reason[rows]
        doubted = level == int(Trust.TRUSTED)
        level[doubted], why[doubted] = int(Trust.DOUBTFUL), int(Reason.A_LIMB)
    file.judge(trust, reason)
