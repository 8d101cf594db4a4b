"""Heel strike, toe strike, heel off, toe off: what the heel and the toes of each foot do against the ground."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from calibration.foundation.arrays import Floats
from skeleton.analysis.belts import Ground
from skeleton.analysis.contacts import detect_contacts, foot_points, ground_of, heel_points
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["FootEvent", "events_of", "foot_events"]


@dataclass(frozen=True)
class FootEvent:
    """One event: ``foot`` as the body names it, ``kind`` "heel strike", "toe strike", "heel off" or "toe off", and its
    time, finer than frames."""

    foot: str
    kind: str
    time_s: float


def foot_events(skeleton: Skeleton, pose: Pose, rate_hz: float, *, belt: Ground | None = None) -> list[FootEvent]:
    """Return the events of every foot in the order of time.

    A digitigrade foot has toes only. What the motion begins or ends with is no event.
    """
    feet = foot_points(skeleton, pose)
    ground = ground_of(feet, rate_hz) if belt is None else belt
    return events_of(feet, heel_points(skeleton, pose), rate_hz, ground)


def events_of(
    feet: Mapping[str, Floats], heels: Mapping[str, Floats], rate_hz: float, ground: Ground
) -> list[FootEvent]:
    """Return the events of feet, points (T, P, 3) of each, and heels (T, 3) of those that have one."""
    found: list[FootEvent] = []
    for foot, toes in feet.items():
        found += _events(foot, "toe", toes, rate_hz, ground)
        if foot in heels:
            found += _events(foot, "heel", heels[foot], rate_hz, ground)
    return sorted(found, key=lambda one: (one.time_s, one.foot, one.kind))


def _events(foot: str, part: str, points: Floats, rate_hz: float, ground: Ground) -> Iterator[FootEvent]:
    contacts = detect_contacts(points, rate_hz, belt=ground)
    for name, times in ((f"{part} strike", contacts.touch_down_s), (f"{part} off", contacts.lift_off_s)):
        yield from (FootEvent(foot, name, float(time)) for time in times)
