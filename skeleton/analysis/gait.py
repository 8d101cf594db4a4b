"""Gait and posture summaries: strides from contacts, ranges of motion, trunk posture.

A stride goes from one touch-down of a foot to its next; stance is its part in contact; all is judged in the frame of
the ground, which on a treadmill moves. Frames where a recording begins or ends belong to no whole stride and are left
out; so is a stride on which the foot did not go where the body went: a stance that was seen as two.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from skeleton.analysis.angles import inner_angles, joint_angles, segment_tilt
from skeleton.analysis.belts import Ground
from skeleton.analysis.contacts import Contacts, detect_contacts, foot_points, ground_of, heel_points
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = [
    "FootGait",
    "Gait",
    "GaitPaths",
    "GaitSummary",
    "foot_gait",
    "gait_of",
    "gait_paths",
    "gait_summary",
]


_APART = 0.5
_APART_TRUNKS = 0.1
"""A foot's stride differs from what the root travelled by at most this share of it and of the trunk's length."""


@dataclass(frozen=True, eq=False)
class FootGait:
    """Strides of one foot, in order.

    Attributes:
        stride_s, stance_s, swing_s: (S,) durations, s.
        length_mm: (S,) floor distance between successive touch-downs.
        duty_factor: (S,) share of the stride in contact.
        start_s: (S,) when each begins, s.
    """

    stride_s: Floats
    stance_s: Floats
    swing_s: Floats
    length_mm: Floats
    duty_factor: Floats
    start_s: Floats

    @property
    def strides(self) -> int:
        """Number of whole strides."""
        return len(self.stride_s)


@dataclass(frozen=True, eq=False)
class GaitPaths:
    """What gait takes of a motion, frame by frame: little enough to keep of a very long one.

    Attributes:
        feet: foot name to the points of its sole, (T, P, 3) mm.
        root: (T, 2) place of the root over the floor, mm.
        pitch: (T,) the trunk's angle above the floor, rad; NaN if the body has no such line.
        trunk: (T,) its length, mm; NaN likewise.
    """

    feet: Mapping[str, Floats]
    root: Floats
    pitch: Floats
    trunk: Floats

    @classmethod
    def joined(cls, parts: Sequence[GaitPaths]) -> GaitPaths:
        """Return the paths of motions that follow each other."""
        return cls(
            {foot: np.concatenate([part.feet[foot] for part in parts]) for foot in parts[0].feet},
            np.concatenate([part.root for part in parts]),
            np.concatenate([part.pitch for part in parts]),
            np.concatenate([part.trunk for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class Gait:
    """What a motion looks like as locomotion.

    Attributes:
        feet: foot name to its strides.
        contacts: foot name to its contacts.
        phase: foot name to its mean touch-down phase (0 to 1) within the strides of the first foot; NaN without
            strides.
        cadence_per_min: touch-downs of all feet per minute of walking time.
        speed_mm_s: mean speed of the root over the ground.
        trunk_pitch_deg: mean and standard deviation of the trunk's angle above the floor; NaN if it has no such line.
        belt: how the ground moves.
    """

    feet: Mapping[str, FootGait]
    contacts: Mapping[str, Contacts]
    phase: Mapping[str, float]
    cadence_per_min: float
    speed_mm_s: float
    trunk_pitch_deg: tuple[float, float]
    belt: Ground


@dataclass(frozen=True, eq=False)
class GaitSummary(Gait):
    """Gait with ranges of motion.

    Attributes:
        range_deg: joint name to range of motion: flexion, abduction, rotation, degrees.
        inner_range_deg: limb joint to (least, greatest) inner angle, degrees.
    """

    range_deg: Mapping[str, tuple[float, float, float]]
    inner_range_deg: Mapping[str, tuple[float, float]]


def foot_gait(
    contacts: Contacts, place: Floats, *, root: Floats | None = None, trunk_mm: float = 0.0, up: int = 2
) -> FootGait:
    """Return the strides of a foot.

    Args:
        contacts: of the foot.
        place: (T, 3) of it, mm.
        root: (T, 2) of the body over the floor, mm; strides that do not go with it are left out.
        trunk_mm: length of the trunk.
        up: the vertical's column.
    """
    assert contacts.spans is not None
    rows = []
    place = np.delete(place, up, axis=1)
    inner = [span for span in contacts.spans if np.isfinite(span[0])]
    for (begin, lift), (end, _) in itertools.pairwise(inner):
        start, stop = (min(max(math.ceil(frame), 0), len(place) - 1) for frame in (begin, end))
        across = _held_place(place, stop, contacts) - _held_place(place, start, contacts)
        if root is not None:
            travel = root[stop] - root[start]
            if np.linalg.norm(across - travel) > _APART * np.linalg.norm(travel) + _APART_TRUNKS * trunk_mm:
                continue
        stride, stance = float(end - begin) / contacts.rate_hz, float(lift - begin) / contacts.rate_hz
        length = float(np.linalg.norm(across))
        rows.append((stride, stance, stride - stance, length, stance / stride, float(begin) / contacts.rate_hz))
    table = np.array(rows).reshape(-1, 6)
    return FootGait(table[:, 0], table[:, 1], table[:, 2], table[:, 3], table[:, 4], table[:, 5])


def _held_place(place: Floats, start: int, contacts: Contacts) -> Floats:
    """Mean floor position (2,) of the stance that begins about a frame; ``place`` (T, 2)."""
    stop = next((end for _, end in contacts.intervals if end > start), start + 1)
    return np.asarray(np.nanmean(place[start:stop], axis=0))


def _phases(contacts: Mapping[str, Contacts]) -> dict[str, float]:
    first = next(iter(contacts.values())).touch_down_s
    out = {}
    for foot, states in contacts.items():
        shares = [
            (down - start) / (stop - start)
            for start, stop in itertools.pairwise(first)
            for down in states.touch_down_s
            if start <= down < stop
        ]
        # Phases lie on a circle: the mean of their directions.
        turn = np.exp(2j * np.pi * np.array(shares)).mean() if shares else np.nan
        out[foot] = float(np.angle(turn) / (2 * np.pi) % 1.0) if shares else float("nan")
    return out


def gait_paths(skeleton: Skeleton, pose: Pose) -> GaitPaths:
    """Return what gait takes of a motion of a built-in body, z up."""
    trunk = ("tail_1", "cervical_1") if "tail_1" in skeleton.joint_names else ("pelvis", "neck")
    pitch, length = np.full(len(pose), np.nan), np.full(len(pose), np.nan)
    if set(trunk) <= set(skeleton.joint_names):
        ends = pose.points(*skeleton.points(trunk))
        pitch, length = segment_tilt(pose, skeleton, trunk), np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    heels = heel_points(skeleton, pose)
    # A person's stance begins with the heel.
    feet = {
        foot: np.concatenate([points, heels[foot][:, None]], axis=1) if foot in heels else points
        for foot, points in foot_points(skeleton, pose).items()
    }
    return GaitPaths(feet, pose.positions[:, 0, :2].copy(), pitch, length)


def gait_of(paths: GaitPaths, rate_hz: float, *, belt: Ground | None = None) -> Gait:
    """Summarise locomotion on a floor at z = 0, a belt or a wheel; ``belt`` None: found from the feet."""
    frames = len(paths.root)
    if frames < 3:
        raise InputError(f"gait: wanted 3 frames or more, got {frames}")
    ground = ground_of(paths.feet, rate_hz) if belt is None else belt
    contacts = {foot: detect_contacts(points, rate_hz, belt=ground) for foot, points in paths.feet.items()}
    root = ground.path(paths.root, rate_hz)
    whole = frames / rate_hz
    pitch = np.degrees(paths.pitch)
    trunk = float(np.median(paths.trunk)) if np.isfinite(paths.trunk).all() else 0.0
    return Gait(
        feet={
            foot: foot_gait(contacts[foot], ground.without(points, rate_hz).mean(axis=1), root=root, trunk_mm=trunk)
            for foot, points in paths.feet.items()
        },
        contacts=contacts,
        phase=_phases(contacts),
        cadence_per_min=60.0 * sum(len(states.touch_downs) for states in contacts.values()) / whole,
        speed_mm_s=float(np.linalg.norm(np.diff(root, axis=0), axis=1).sum() / whole),
        trunk_pitch_deg=(float(pitch.mean()), float(pitch.std())),
        belt=ground,
    )


def gait_summary(skeleton: Skeleton, pose: Pose, rate_hz: float) -> GaitSummary:
    """Summarise a motion of a built-in body, z up, floor at z = 0."""
    gait = gait_of(gait_paths(skeleton, pose), rate_hz)
    return GaitSummary(
        **{field.name: getattr(gait, field.name) for field in fields(gait)},
        range_deg=joint_angles(skeleton, pose).ranges_deg(),
        inner_range_deg={
            name: (float(np.degrees(values.min())), float(np.degrees(values.max())))
            for name, values in inner_angles(skeleton, pose).items()
        },
    )
