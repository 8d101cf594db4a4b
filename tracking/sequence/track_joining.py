"""A track made in parts: do neighbours agree where they overlap, and one file of them all.

Parts are tracked independently, each from a start of its own, a few frames over its ends. Where two parts meet, both
have tracked the same frames: if they put the quads at the same places, each vouches for the other (a start that was
ambiguous by itself is not so any more); if not, the frames there are marked, never averaged.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.result_files import create_results, open_results
from tracking.limbs.evidence import LimbRecord
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import frames_with_limbs, judge_limbs
from tracking.sequence.trust import Reason, Trust, judge_track

__all__ = ["SEAM_TOLERANCE", "Piece", "Seam", "compare", "join_tracks", "mean_agreement", "pose_at"]

SEAM_TOLERANCE = 15.0
"""Distance of the quads of two parts in the same frames that still agrees, thousandths of the subject's size."""

_ONCE = (
    "quad_names", "marker_names", "cage_joint_names", "reasons", "faces", "limb_names", "limb_joint_names",
    "limb_joints", "marker_limbs", "cage_joint_limbs", "point_names",
)  # fmt: skip

_ROWS = 4096


@dataclass(frozen=True)
class Piece:
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


@dataclass(frozen=True, eq=False)
class Seam:
    """How two neighbouring parts agree.

    Attributes:
        distance: median over the common frames of the mean distance of the quads, mm; NaN without common frames.
        left, right: mean silhouette overlap of each part in those frames.
    """

    distance: float
    left: float
    right: float


def compare(left: Piece, right: Piece) -> Seam:
    """Compare two neighbouring parts in the frames that both tracked."""
    if left.path is None or right.path is None:
        return Seam(float("nan"), float("nan"), float("nan"))
    with open_results(left.path, stage="track") as a, open_results(right.path, stage="track") as b:
        first = max(left.start, right.start)
        last = min(left.start + len(a["trust"]), right.start + len(b["trust"]))
        if last <= first:
            return Seam(float("nan"), float("nan"), float("nan"))
        rows_a, rows_b = (slice(first - piece.start, last - piece.start) for piece in (left, right))
        apart = np.linalg.norm(a["centres"][rows_a] - b["centres"][rows_b], axis=-1).mean(axis=1)
        common = np.isfinite(apart)
        if not common.any():
            return Seam(float("nan"), float("nan"), float("nan"))
        agreement = [float(np.mean(f["agreement"][rows][common])) for f, rows in ((a, rows_a), (b, rows_b))]
    return Seam(float(np.median(apart[common])), *agreement)


def pose_at(piece: Piece, frame: int) -> tuple[QuadPose, Floats] | None:
    """Return quads and latent point of a part in a frame, None where it has none."""
    if piece.path is None:
        return None
    with open_results(piece.path, stage="track") as file:
        row = frame - piece.start
        if not 0 <= row < len(file["trust"]) or not np.isfinite(file["centres"][row]).all():
            return None
        return QuadPose(file["rotations"][row], file["centres"][row]), file["latent"][row]


def mean_agreement(piece: Piece) -> float:
    """Return the mean silhouette overlap of a part's own frames; 0 where nothing was tracked."""
    if piece.path is None:
        return 0.0
    with open_results(piece.path, stage="track") as file:
        values = file["agreement"][piece.first - piece.start : piece.stop - piece.start]
    return float(np.nan_to_num(values).mean())


def join_tracks(
    path: Path,
    pieces: Sequence[Piece],
    frames: int,
    *,
    unit: float,
    margin: int,
    parameters: Mapping[str, Any],
    plausible: bool = True,
) -> list[Seam]:
    """Write one track file of T frames from parts of it, judged as a whole; return how the parts agreed.

    Args:
        path: file to write.
        pieces: in order; frames that none of them holds stay untracked.
        frames: T.
        unit: one thousandth of the subject's size, mm.
        margin: frames on both sides of a seam that are marked where parts disagree.
        parameters: for the file.
        plausible: False: no frame is trusted, the subject came out as one that cannot be (`trust.plausible_size`).
    """
    held = [piece for piece in pieces if piece.path is not None]
    if not held:
        raise InputError("no frame has a silhouette in two cameras; run `vivarig silhouettes` and look at its report")
    seams = [compare(a, b) for a, b in itertools.pairwise(pieces)]
    first = held[0]
    assert first.path is not None
    with (
        open_results(first.path, stage="track") as example,
        create_results(path, stage="track", parameters=parameters) as file,
    ):
        for key in ("subject", "body", "rate_hz"):
            file.attrs[key] = example.attrs[key]
        file.attrs["start_frame"] = first.start + int(example.attrs["start_frame"])
        for name in [name for name in _ONCE if name in example]:
            file.create_dataset(name, data=example[name][()], track_times=False)
        for name in [name for name in example if name not in _ONCE]:
            _fill(file, name, example[name], held, frames)
        trust, reason = judge_track(
            file["overlap"][()], file["departure"][()], file["centres"], _leads(pieces, seams, frames, unit),
            unit=unit,
        )  # fmt: skip
        for (left, right), seam in zip(itertools.pairwise(pieces), seams, strict=True):
            if seam.distance > SEAM_TOLERANCE * unit:
                near = np.zeros(frames, bool)
                near[max(left.first, right.first - margin) : min(right.stop, right.first + margin)] = True
                near &= trust == int(Trust.TRUSTED)
                trust[near], reason[near] = int(Trust.DOUBTFUL), int(Reason.PARTS_DISAGREE)
        if not plausible:
            rest = trust == int(Trust.TRUSTED)
            trust[rest], reason[rest] = int(Trust.DOUBTFUL), int(Reason.IMPLAUSIBLE_BODY)
        trust, reason = _with_limbs(file, trust, reason, unit)
        file["trust"][...], file["reason"][...] = trust, reason
    return seams


def _with_limbs(file: h5py.File, trust: Ints, reason: Ints, unit: float) -> tuple[Ints, Ints]:
    """Judge the limbs anew, beside the frames as they are judged now, some rows at a time."""
    names = [word.decode() for word in file["limb_names"][:]]
    parts = []
    for first in range(0, len(trust), _ROWS):
        rows = slice(first, first + _ROWS)
        record = LimbRecord(**{key: np.asarray(file[f"limb_{key}"][rows], np.float64) for key in LimbRecord.NAMES})
        limb_trust, limb_reason = judge_limbs(record, unit=unit)
        parts.append(frames_with_limbs(trust[rows], reason[rows], limb_trust, limb_reason, names))
        file["limb_trust"][rows], file["limb_reason"][rows] = limb_trust, limb_reason
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _fill(file: h5py.File, name: str, example: h5py.Dataset, pieces: Sequence[Piece], frames: int) -> None:
    """Copy the rows of one dataset from all pieces, one piece at a time."""
    shape = (frames, *example.shape[1:])
    fill = np.nan if np.issubdtype(example.dtype, np.floating) else 0
    data = file.create_dataset(name, shape, example.dtype, chunks=example.chunks, fillvalue=fill, track_times=False)
    for piece in pieces:
        assert piece.path is not None
        with open_results(piece.path, stage="track") as part:
            data[piece.first : piece.stop] = part[name][piece.first - piece.start : piece.stop - piece.start]


def _leads(pieces: Sequence[Piece], seams: Sequence[Seam], frames: int, unit: float) -> Floats:
    """Return (T,) how sure the start is that each frame goes back to: the surest of the parts that agree in a row."""
    own = []
    for piece in pieces:
        if piece.path is None:
            own.append(0.0)
            continue
        with open_results(piece.path, stage="track") as file:
            own.append(float(file.attrs["lead"]))
    result = np.zeros(frames)
    group = [0]
    for index in range(1, len(pieces) + 1):
        if index < len(pieces) and seams[index - 1].distance <= SEAM_TOLERANCE * unit:
            group.append(index)
            continue
        for member in group:
            result[pieces[member].first : pieces[member].stop] = max(own[k] for k in group)
        group = [index]
    return result
