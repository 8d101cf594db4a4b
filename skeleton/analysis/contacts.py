"""Contacts of feet with the ground, a floor, a treadmill's belt or a running wheel: touch-down and lift-off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, frozen
from calibration.foundation.errors import InputError
from skeleton.analysis.belts import Ground, find_belt
from skeleton.analysis.stances import find_stances, runs_of
from skeleton.analysis.wheels import find_wheel
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["Contacts", "detect_contacts", "foot_contacts", "foot_points", "ground_of", "heel_points"]


@dataclass(frozen=True, eq=False)
class Contacts:
    """When a foot stands.

    Attributes:
        states: (T,) True in contact.
        rate_hz: frames per second.
        floor_mm: height of the foot's floor level.
        height_mm: height above that level below which a frame may be contact.
        speed_mm_s: speed against the ground below which a frame may be contact.
        spans: (S, 2) begin and end of each stance in frames and parts of frames; -inf and inf where the motion begins
            or ends with it. None: as the states have it.
        confidence: (S,) of each stance, 0 to 1: how far its speed lies below that limit.
    """

    states: Bools
    rate_hz: float
    floor_mm: float
    height_mm: float
    speed_mm_s: float
    spans: Floats | None = None
    confidence: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", frozen(np.asarray(self.states, dtype=np.bool_)))
        if self.spans is None:
            last = len(self.states)
            found = [(a - 0.5 if a else -np.inf, b - 0.5 if b < last else np.inf) for a, b in self.intervals]
            object.__setattr__(self, "spans", frozen(np.array(found).reshape(-1, 2)))

    @property
    def intervals(self) -> tuple[tuple[int, int], ...]:
        """Stances as (touch-down, lift-off): first frame in contact, first frame after it."""
        return tuple(runs_of(self.states))

    @property
    def touch_downs(self) -> tuple[int, ...]:
        """Frames of touch-down; a stance that the recording begins with has none."""
        return tuple(start for start, _ in self.intervals if start > 0)

    @property
    def lift_offs(self) -> tuple[int, ...]:
        """Frames of lift-off; a stance that the recording ends with has none."""
        return tuple(stop for _, stop in self.intervals if stop < len(self.states))

    @property
    def touch_down_s(self) -> Floats:
        """Times of touch-down, s, finer than frames; a stance that the recording begins with has none."""
        assert self.spans is not None
        return np.asarray(self.spans[np.isfinite(self.spans[:, 0]), 0] / self.rate_hz)

    @property
    def lift_off_s(self) -> Floats:
        """Times of lift-off, s; a stance that the recording ends with has none."""
        assert self.spans is not None
        return np.asarray(self.spans[np.isfinite(self.spans[:, 1]), 1] / self.rate_hz)


def detect_contacts(
    points: Floats,
    rate_hz: float,
    *,
    up: int = 2,
    belt: Ground | None = None,
    least_stance_s: float = 0.03,
    longest_gap_s: float = 0.015,
) -> Contacts:
    """Find when a foot stands.

    Args:
        points: (T, 3) or (T, P, 3) points of one foot's sole, mm; the foot stands if any of them is low and
            slow against the ground.
        rate_hz: frames per second.
        up: index of the vertical axis.
        belt: how the ground moves; by default found from this foot.
        least_stance_s: shorter stances are dropped.
        longest_gap_s: shorter gaps within a stance are closed.
    """
    values = np.asarray(points, dtype=np.float64)
    values = values[:, None] if values.ndim == 2 else values
    if values.ndim != 3 or values.shape[2] != 3 or not rate_hz > 0:
        raise InputError(f"contacts: points must be (T, P, 3) with a rate above 0, got {values.shape} at {rate_hz} Hz")
    ground: Ground = find_belt([values], rate_hz, up=up) if belt is None else belt
    found = find_stances(
        ground.without(values, rate_hz, up=up), rate_hz, up=up, least_stance_s=least_stance_s,
        longest_gap_s=longest_gap_s,
    )  # fmt: skip
    return Contacts(
        found.states, rate_hz, found.floor_mm, found.height_mm, found.speed_mm_s, found.intervals, found.confidence
    )


def foot_points(skeleton: Skeleton, pose: Pose) -> dict[str, Floats]:
    """Return the points (T, P, 3) of each foot's sole, mm."""
    if not skeleton.floor_points:
        raise InputError(f"skeleton '{skeleton.name}' names no floor points")
    return {foot: pose.points(*skeleton.points(names)) for foot, names in skeleton.floor_points.items()}


def heel_points(skeleton: Skeleton, pose: Pose) -> dict[str, Floats]:
    """Return the heel (T, 3) of each foot that has one on the floor in the rest pose; a digitigrade foot has none."""
    sites = {site.name for site in skeleton.sites}
    rest = skeleton.forward(skeleton.rest())
    out = {}
    for foot, names in skeleton.floor_points.items():
        heel = f"{foot.split('_')[0]}_heel"
        if heel not in sites or not foot.endswith("foot"):
            continue
        sole = rest.points(*skeleton.points([heel, *names]))[0]
        if sole[0, 2] <= sole[1:, 2].max() + 0.1 * float(np.ptp(sole, axis=0).max()):
            out[foot] = pose.points(*skeleton.points([heel]))[:, 0]
    return out


def ground_of(feet: Mapping[str, Floats], rate_hz: float) -> Ground:
    """Return the ground that feet, the points (T, P, 3) of each, go on: floor, belt or wheel as they say; z up."""
    flat = find_belt(list(feet.values()), rate_hz)
    return find_wheel(list(feet.values()), rate_hz, flat) or flat


def foot_contacts(
    skeleton: Skeleton, pose: Pose, rate_hz: float, *, belt: Ground | None = None
) -> Mapping[str, Contacts]:
    """Return the contacts of each foot of a body in motion, on a floor, a belt or a wheel; z is up."""
    feet = foot_points(skeleton, pose)
    ground = ground_of(feet, rate_hz) if belt is None else belt
    return {foot: detect_contacts(points, rate_hz, belt=ground) for foot, points in feet.items()}
