"""Footfalls: where each foot stands and when, planned along a path before any joint moves.

A foot stands still from one landing to the next lift-off. It lands where its neutral point under the body will be in
the middle of the coming stance, so that the leg swings evenly about its neutral pose. Swings last a time of their
own, so that a body that stops still finishes its steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from skeleton.motions.signals import smoothstep

__all__ = ["FootTrack", "Path", "plan_foot", "walk_path"]


@dataclass(frozen=True, eq=False)
class Path:
    """The body's way over the floor on a fine time grid: ``t`` (N,) s, ``place`` (N, 2) mm, ``heading`` (N,) rad
    (unwrapped), ``phase`` (N,) strides since the start (never falls), ``speed`` (N,) mm/s."""

    t: Floats
    place: Floats
    heading: Floats
    phase: Floats
    speed: Floats

    def at(self, t: Floats | float) -> tuple[Floats, Floats]:
        """Return places (..., 2) and headings (...) at times."""
        when = np.asarray(t, dtype=np.float64)
        place = np.stack([np.interp(when, self.t, self.place[:, k]) for k in range(2)], axis=-1)
        return place, np.asarray(np.interp(when, self.t, self.heading))

    def point(self, t: Floats | float, local: Floats) -> Floats:
        """Return the floor position (..., 2) of a body-frame point (2,) at times."""
        place, heading = self.at(t)
        c, s = np.cos(heading), np.sin(heading)
        return np.asarray(place + np.stack([c * local[0] - s * local[1], s * local[0] + c * local[1]], axis=-1))


def walk_path(t: Floats, speed: Floats, turning: Floats, stride_hz: Floats, *, start_heading: float = 0.0) -> Path:
    """Integrate speed (N,) mm/s, turning (N,) rad/s and stride rate (N,) Hz over the fine grid ``t`` (N,) s."""
    dt = np.diff(t, prepend=t[0])
    heading = start_heading + np.cumsum(turning * dt)
    step = np.stack([np.cos(heading), np.sin(heading)], axis=1) * (speed * dt)[:, None]
    return Path(t, np.cumsum(step, axis=0), heading, np.cumsum(stride_hz * dt), speed)


@dataclass(frozen=True, eq=False)
class FootTrack:
    """One foot over the output frames.

    Attributes:
        place: (T, 2) floor position of the foot's neutral point, mm.
        heading: (T,) direction of the foot, rad.
        height: (T,) lift of the foot above its stance height, mm.
        swing: (T,) how far a swing has come, 0..1; 0 in stance.
        free: (T,) weight 0..1 of a target given elsewhere (a paw lifted to the face).
        until_lift: (T,) time until the foot leaves the floor, s; 0 in a swing, infinite if it stays.
        contact: (T,) the foot stands.
    """

    place: Floats
    heading: Floats
    height: Floats
    swing: Floats
    free: Floats
    until_lift: Floats
    contact: Bools


# Twelve parameters: the plan of one foot in one place, as an animator would list it.
def plan_foot(
    frames: Floats,
    path: Path,
    neutral: Floats,
    *,
    offset: float,
    duty: float,
    lift_mm: float,
    swing_range_s: tuple[float, float],
    toe_out: float = 0.0,
    airborne: list[tuple[float, float]] | None = None,
    ease_s: float = 0.15,
    arrive: float = 1.0,
    brisk: bool = False,
) -> FootTrack:
    """Plan one foot at output times ``frames`` (T,) s.

    Args:
        neutral: (2,) the foot's point under the body in the path's frame, mm.
        offset: phase of its lift-off, strides.
        duty: share of a stride in stance.
        swing_range_s: shortest and longest swing.
        airborne: intervals in which the foot is lifted for something else (``free`` rises to 1 inside).
        ease_s: time in which ``free`` rises and falls.
        arrive: share of the swing after which the foot is in place (a heel touches before the ball).
        brisk: leave and arrive with more acceleration, so that the foot neither lags behind a fast body nor runs ahead.
    """
    strides = np.arange(np.ceil(path.phase[0] + offset), np.floor(path.phase[-1] + offset) + 1) - offset
    rate = np.gradient(path.phase, path.t)
    events: list[tuple[float, float, bool]] = []
    busy = sorted(airborne or [])
    for stride in strides:
        lift = float(np.interp(stride, path.phase, path.t))
        hertz = max(float(np.interp(lift, path.t, rate)), 1e-3)
        swing = float(np.clip((1 - duty) / hertz, *swing_range_s))
        clear = all(lift + swing < start - 0.02 or lift > stop + 0.02 for start, stop in busy)
        late = bool(events) and lift < events[-1][1] + 0.02
        if clear and not late:
            events.append((lift, lift + swing, False))
    events = sorted(events + [(start, stop, True) for start, stop in busy])

    landings = [path.t[0]] + [event[1] for event in events]
    lifts = [event[0] for event in events] + [path.t[-1]]
    spots, ways, whens = [], [], []
    for i, (land, lift) in enumerate(zip(landings, lifts, strict=True)):
        hertz = max(float(np.interp(land, path.t, rate)), 0.5 * float(rate.max()), 1e-3)
        half = 0.5 * min(lift - land, duty / hertz)
        # The first stance began before the record: it is centred before its end instead of after its start.
        when = lift - half if i == 0 else land + half
        whens.append(when)
        spots.append(path.point(when, neutral))
        ways.append(float(path.at(when)[1]) + toe_out)

    which = np.searchsorted(np.array(landings), frames, side="right") - 1
    place, heading = np.array(spots)[which], np.array(ways)[which]
    height, swing_share, free = np.zeros(len(frames)), np.zeros(len(frames)), np.zeros(len(frames))
    contact = np.ones(len(frames), dtype=bool)
    until = np.array([*lifts[:-1], np.inf])[which] - frames
    for i, (lift, land, lifted) in enumerate(events):
        inside = (frames > lift) & (frames < land)
        s = (frames[inside] - lift) / (land - lift)
        u = np.clip(s / arrive, 0.0, 1.0)
        share = u * u * (3.0 - 2.0 * u) if brisk else smoothstep(u)
        place[inside] = (1 - share)[:, None] * spots[i] + share[:, None] * spots[i + 1]
        if not lifted:
            # On a curve the foot swings round with the body: a straight swing would cut into the standing leg.
            sag = path.point(0.5 * (whens[i] + whens[i + 1]), neutral) - 0.5 * (spots[i] + spots[i + 1])
            chord = spots[i + 1] - spots[i]
            sag = sag - (sag @ chord) / max(float(chord @ chord), 1e-9) * chord
            place[inside] += (4 * share * (1 - share))[:, None] * sag
        heading[inside] = (1 - share) * ways[i] + share * ways[i + 1]
        contact[inside] = False
        until[inside] = 0.0
        swing_share[inside] = s
        if lifted:
            ease = min(ease_s, 0.4 * (land - lift))
            free[inside] = smoothstep((frames[inside] - lift) / ease) * smoothstep((land - frames[inside]) / ease)
        rise = np.clip(s / arrive, 0.0, 1.0)
        height[inside] = lift_mm * (4 * rise * (1 - rise)) ** 2
    return FootTrack(place, heading, height, swing_share, free, until, contact)
