"""Rows of a table of many recordings: a joint in a frame, a stride of a foot, or a whole recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import rotation_from_quaternion
from skeleton.analysis.angles import inner_angles, joint_angles
from skeleton.bodies import BODIES, load_body
from skeleton.tree.joint_tree import Pose
from vivarig.statistics.recordings import FinishedRecording, cycle_columns, foot_of_joint
from vivarig.statistics.table_files import Columns

__all__ = ["ROWS", "rows_of"]

#: What a row of the table is.
ROWS = ("joints", "strides", "recordings")

_BLOCK = 2048
_TRUST = np.array(["trusted", "doubtful", "lost"], dtype=object)


def rows_of(recording: FinishedRecording, kind: str, *, every: int = 1) -> Iterator[Columns]:
    """Yield the rows of a recording, a block at a time; ``every`` thins the frames of joints."""
    if kind == "joints":
        yield from _joints(recording, every)
    elif kind == "strides":
        yield from _strides(recording)
    else:
        yield _summary(recording)


def _head(recording: FinishedRecording, count: int) -> dict[str, NDArray[Any]]:
    """Columns that every row has."""
    words = {"group": recording.group, "recording": recording.findings.recording.name, "animal": recording.animal}
    return {key: np.full(count, word, dtype=object) for key, word in words.items()}


def _joints(recording: FinishedRecording, every: int) -> Iterator[Columns]:
    skeleton = recording.skeleton
    feet = list(recording.gait.contacts) if recording.gait is not None else []
    for first in range(0, len(skeleton.positions), _BLOCK):
        frames = np.arange(first, min(first + _BLOCK, len(skeleton.positions)))
        frames = frames[frames % every == 0]
        if len(frames):
            yield _joint_rows(recording, frames, feet)


def _joint_rows(recording: FinishedRecording, frames: Ints, feet: list[str]) -> Columns:
    skeleton = recording.skeleton
    names = skeleton.joint_names
    positions, count = np.asarray(skeleton.positions[frames]), len(frames) * len(names)
    angles = _angles(recording, frames)
    cycles = {foot: cycle_columns(recording, foot, frames) for foot in feet}
    unknown = (np.full(len(frames), np.nan),) * 2
    by_joint = [foot_of_joint(name, feet) for name in names]
    return {
        **_head(recording, count),
        "frame": np.repeat(frames + recording.findings.first, len(names)),
        "time_s": np.repeat(frames / skeleton.rate_hz, len(names)),
        "joint": np.tile(np.array(names, dtype=object), len(frames)),
        **{f"{axis}_mm": positions[:, :, at].ravel() for at, axis in enumerate("xyz")},
        "speed_mm_s": _speeds(recording, frames).ravel(),
        **{f"{key}_deg": values.ravel() for key, values in angles.items()},
        "sigma_mm": np.asarray(skeleton.sigma[frames]).ravel(),
        "trust": _TRUST[skeleton.joint_trust[frames]].ravel(),
        "foot": np.tile(np.array(by_joint, dtype=object), len(frames)),
        "stride": np.stack([cycles.get(foot, unknown)[0] for foot in by_joint], axis=1).ravel(),
        "phase": np.stack([cycles.get(foot, unknown)[1] for foot in by_joint], axis=1).ravel(),
    }


def _speeds(recording: FinishedRecording, frames: Ints) -> Floats:
    """(n, J) speed of joints from the frames before and after, mm/s."""
    positions, last = recording.skeleton.positions, len(recording.skeleton.positions) - 1
    before, after = np.maximum(frames - 1, 0), np.minimum(frames + 1, last)
    way = np.linalg.norm(np.asarray(positions[after]) - np.asarray(positions[before]), axis=2)
    return np.asarray(way * recording.skeleton.rate_hz / np.maximum(after - before, 1)[:, None])


def _angles(recording: FinishedRecording, frames: Ints) -> dict[str, Floats]:
    """Anatomical angles and the limbs' inner angles (n, J), degrees; NaN for a body that is not built in."""
    skeleton = recording.skeleton
    out = {key: np.full((len(frames), len(skeleton.joint_names)), np.nan) for key in _ANGLES}
    if skeleton.body not in BODIES or not len(frames):
        return out
    body = load_body(skeleton.body)
    pose = Pose(np.asarray(skeleton.positions[frames]), rotation_from_quaternion(skeleton.rotations[frames]))
    found = joint_angles(body, pose)
    for key in _ANGLES[:3]:
        turned = np.degrees(getattr(found, key))
        out[key] = (turned + 180.0) % 360.0 - 180.0
    for name, values in inner_angles(body, pose).items():
        out["inner"][:, skeleton.joint_names.index(name)] = np.degrees(values)
    return out


_ANGLES = ("flexion", "abduction", "rotation", "inner")


def _strides(recording: FinishedRecording) -> Iterator[Columns]:
    gait, rate = recording.gait, recording.skeleton.rate_hz
    if gait is None:
        return
    for foot, strides in gait.feet.items():
        if not strides.strides:
            continue
        spans = np.stack([strides.start_s, strides.start_s + strides.stride_s], axis=1) * rate
        good = [
            float((recording.skeleton.trust[int(np.ceil(a)) : int(b) + 1] == Trust.TRUSTED).mean()) for a, b in spans
        ]
        yield {
            **_head(recording, strides.strides),
            "foot": np.full(strides.strides, foot, dtype=object),
            "stride": np.arange(strides.strides),
            "start_s": strides.start_s,
            "stride_s": strides.stride_s,
            "stance_s": strides.stance_s,
            "swing_s": strides.swing_s,
            "length_mm": strides.length_mm,
            "duty_factor": strides.duty_factor,
            "speed_mm_s": strides.length_mm / strides.stride_s,
            "phase": np.full(strides.strides, gait.phase[foot]),
            "trusted_share": np.array(good),
        }


def _summary(recording: FinishedRecording) -> Columns:
    skeleton, gait = recording.skeleton, recording.gait
    trusted = skeleton.joint_trust == Trust.TRUSTED
    sigma = np.asarray(skeleton.sigma)
    strides = [foot.strides for foot in gait.feet.values()] if gait is not None else []
    numbers = {
        "frames": float(len(skeleton.trust)),
        "rate_hz": skeleton.rate_hz,
        "trusted_share": float((skeleton.trust == Trust.TRUSTED).mean()),
        "joints_trusted_share": float(trusted.mean()),
        "sigma_median_mm": float(np.median(sigma[np.isfinite(sigma)])) if np.isfinite(sigma).any() else np.nan,
        "speed_mm_s": gait.speed_mm_s if gait is not None else np.nan,
        "cadence_per_min": gait.cadence_per_min if gait is not None else np.nan,
        "trunk_pitch_deg": gait.trunk_pitch_deg[0] if gait is not None else np.nan,
        "strides": float(sum(strides)),
    }
    return {
        **_head(recording, 1),
        "body": np.array([skeleton.body], dtype=object),
        **{key: np.array([value]) for key, value in numbers.items()},
        "no_gait": np.array([recording.without_gait], dtype=object),
    }
