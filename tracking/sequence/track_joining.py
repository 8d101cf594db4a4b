"""A track made in parts: do neighbours agree where they overlap, and one file of them all.

Parts are tracked independently, each from a start of its own, a few frames over its ends. Where two parts meet, both
have tracked the same frames: if they are no rivals of each other there, and the body leaps nowhere between their
starts, each vouches for the other: a start that was ambiguous by itself is not so any more. Where they put the quads at
places that differ, the frames are marked, never averaged.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import frames_with_limbs, judge_limbs, limits_of
from tracking.sequence.track_file import TrackFile, joined_track, open_track
from tracking.sequence.trust import DIFFERS, Reason, Seams, Trust, judge_track, loosely_clothed

__all__ = ["SEAM_TOLERANCE", "Seam", "TrackPart", "compare", "join_tracks", "mean_agreement", "pose_at"]

SEAM_TOLERANCE = 15.0
"""Distance of the quads of two parts in the same frames that still agrees, thousandths of the subject's size."""

_CHUNK = 4096


@dataclass(frozen=True)
class TrackPart:
    """One part of a track.

    Attributes:
        path: its track file, or None where there was nothing to track.
        start: recording frame of the file's first row.
        first, stop: the frames taken from it, stop excluded.
    """

    path: Path | None
    start: int
    first: int
    stop: int

    @property
    def rows(self) -> slice:
        """The rows of the file that are taken."""
        return slice(self.first - self.start, self.stop - self.start)


@dataclass(frozen=True, eq=False)
class Seam:
    """How two neighbouring parts agree.

    Attributes:
        distance: median over the common frames of the mean distance of the quads, mm; NaN without common frames.
        left, right: mean silhouette overlap of each part in those frames.
        most: the same of the middle distance: that of most of the body, whatever tail and paws do. One that is turned
            round or rolled over has most of it elsewhere.
    """

    distance: float
    left: float
    right: float
    most: float


_NOTHING_COMMON = Seam(float("nan"), float("nan"), float("nan"), float("nan"))


def compare(left: TrackPart, right: TrackPart) -> Seam:
    """Compare two neighbouring parts in the frames that both tracked."""
    if left.path is None or right.path is None:
        return _NOTHING_COMMON
    with open_track(left.path, look=False) as a, open_track(right.path, look=False) as b:
        first = max(left.start, right.start)
        last = min(left.start + len(a), right.start + len(b))
        if last <= first:
            return _NOTHING_COMMON
        rows_a, rows_b = (slice(first - part.start, last - part.start) for part in (left, right))
        by_quad = np.linalg.norm(a.centres(rows_a) - b.centres(rows_b), axis=-1)
        apart, most = by_quad.mean(axis=1), np.median(by_quad, axis=1)
        common = np.isfinite(apart)
        if not common.any():
            return _NOTHING_COMMON
        left_iou, right_iou = (float(np.mean(f.agreement(rows)[common])) for f, rows in ((a, rows_a), (b, rows_b)))
    return Seam(float(np.median(apart[common])), left_iou, right_iou, float(np.median(most[common])))


def pose_at(part: TrackPart, frame: int) -> tuple[QuadPose, Floats] | None:
    """Return quads and latent point of a part in a frame, None where it has none."""
    if part.path is None:
        return None
    with open_track(part.path) as file:
        row = frame - part.start
        if not 0 <= row < len(file) or not np.isfinite(file.centres(row)).all():
            return None
        return file.quads(row), file.latent(row)


def mean_agreement(part: TrackPart) -> float:
    """Return the mean silhouette overlap of a part's own frames; 0 where nothing was tracked."""
    if part.path is None:
        return 0.0
    with open_track(part.path) as file:
        values = file.agreement(part.rows)
    return float(np.nan_to_num(values).mean())


def join_tracks(
    path: Path,
    parts: Sequence[TrackPart],
    frames: int,
    *,
    unit: float,
    margin: int,
    parameters: Mapping[str, Any],
    plausible: bool = True,
    girths: Mapping[str, float] | None = None,
    skirt: float = 0.0,
) -> list[Seam]:
    """Write one track file of T frames from parts of it, judged as a whole; return how the parts agreed.

    Args:
        path: file to write.
        parts: in order; frames that none of them holds stay untracked.
        frames: T.
        unit: one thousandth of the subject's size, mm.
        margin: frames on both sides of a seam that are marked where parts disagree.
        parameters: for the file.
        plausible: False: no frame is trusted, the subject came out as one that cannot be (`trust.plausible_size`).
        girths: factors of girth that were found for the body's parts: limbs in loose clothes are doubtful.
        skirt: length of the skirt that the subject wears, as a share of the leg's; 0 for none.
    """
    held = [(part, part.path) for part in parts if part.path is not None]
    if not held:
        raise InputError("no frame has a silhouette in two cameras; run `vivarig silhouettes` and look at its report")
    seams = [compare(a, b) for a, b in itertools.pairwise(parts)]
    with open_track(held[0][1]) as example:
        start_frame = held[0][0].start + example.start_frame
    taken = [(source, part.rows, slice(part.first, part.stop)) for part, source in held]
    with joined_track(path, taken, frames, start_frame=start_frame, parameters=parameters) as file:
        overlap = file.overlap()
        assert overlap is not None
        linked = np.array([seam.most < DIFFERS * unit for seam in seams], np.bool_)
        limits = limits_of(file.limb_names)
        trust, reason = judge_track(
            overlap, file.departure(), file.stored_centres, file.lead(), unit=unit, poor=limits.poor, fall=limits.fall,
            seams=Seams(np.array([part.first for part in parts[1:]], np.int64), linked),
        )  # fmt: skip
        for (left, right), seam in zip(itertools.pairwise(parts), seams, strict=True):
            if seam.distance > SEAM_TOLERANCE * unit:
                near = np.zeros(frames, bool)
                near[max(left.first, right.first - margin) : min(right.stop, right.first + margin)] = True
                near &= trust == int(Trust.TRUSTED)
                trust[near], reason[near] = int(Trust.DOUBTFUL), int(Reason.PARTS_DISAGREE)
        if not plausible:
            rest = trust == int(Trust.TRUSTED)
            trust[rest], reason[rest] = int(Trust.DOUBTFUL), int(Reason.IMPLAUSIBLE_BODY)
        hidden = loosely_clothed(girths or {}, file.limb_names, skirt=skirt)
        clothed = [list(file.limb_names).index(limb) for limb in hidden]
        trust, reason = _with_limbs(file, trust, reason, unit, clothed)
        file.judge(trust, reason)
    return seams


def _with_limbs(file: TrackFile, trust: Ints, reason: Ints, unit: float, clothed: Sequence[int]) -> tuple[Ints, Ints]:
    """Judge the limbs anew, beside the frames as they are judged now, some rows at a time."""
    names = list(file.limb_names)
    judged = []
    for first in range(0, len(trust), _CHUNK):
        rows = slice(first, first + _CHUNK)
        limb_trust, limb_reason = judge_limbs(file.limb_record(rows), unit=unit, limits=limits_of(names))
        for limb in clothed:
            hidden = limb_trust[:, limb] == int(Trust.TRUSTED)
            limb_trust[hidden, limb], limb_reason[hidden, limb] = int(Trust.DOUBTFUL), int(Reason.LOOSE_CLOTHES)
        judged.append(frames_with_limbs(trust[rows], reason[rows], limb_trust, limb_reason, names))
        file.judge_limbs(rows, limb_trust, limb_reason)
    return np.concatenate([one[0] for one in judged]), np.concatenate([one[1] for one in judged])
