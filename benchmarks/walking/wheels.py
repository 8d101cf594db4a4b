"""Running wheels: made runs in which each stance is carried round by the wheel and each swing is a curve in space.

Nothing here unrolls a surface: standing points are turned about the axis by rotation matrices, frame by frame, with a
wheel whose speed changes; swings go from where a foot is lifted to where it comes down, eased in time and bulged away
from the surface.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.walking.contacts import f1_of
from calibration.foundation.arrays import Bools, Floats
from skeleton.analysis.contacts import detect_contacts, ground_of
from skeleton.analysis.gait import foot_gait
from skeleton.analysis.wheels import Wheel

__all__ = ["WheelRun", "wheel_run", "wheel_scores"]


@dataclass(frozen=True, eq=False)
class WheelRun:
    """A run: points (T, 2, 3) of each foot, when it stands (T,), and the wheel with how far it has turned (T,)."""

    feet: dict[str, Floats]
    stands: dict[str, Bools]
    turned: Floats
    centre: Floats
    axis: Floats
    radius_mm: float
    rate_hz: float


def wheel_run(
    seed: int, *, radius: float, speed: float, stride_hz: float, inside: bool = True, rate: float = 200.0,
    seconds: float = 3.0, noise_mm: float = 0.05,
) -> WheelRun:  # fmt: skip
    """Make a run of four feet: ``speed`` of the surface mm/s, which swells and ebbs by a quarter."""
    rng = np.random.default_rng(seed)
    fine = 20
    t = np.arange(round(seconds * rate * fine)) / (rate * fine)
    now = 1.0 + 0.25 * np.sin(2 * np.pi * rng.uniform(0.3, 0.7) * t + rng.uniform(0, 6))
    turned = np.cumsum(now) * speed / radius / (rate * fine)
    cycle = np.cumsum(now) * stride_hz / (rate * fine)
    azimuth = rng.uniform(0, 2 * np.pi)
    axis = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    centre = rng.uniform(-50, 50, 3) + np.array([0.0, 0.0, 2.0 * radius])
    down = np.array([0.0, 0.0, -1.0 if inside else 1.0])
    length, duty = speed / stride_hz, rng.uniform(0.42, 0.6)
    feet, stands = {}, {}
    phases = {"left_hind": 0.0, "right_hind": 0.5, "left_fore": 0.55, "right_fore": 0.05}
    for foot, phase in phases.items():
        ahead = (0.35 if foot.endswith("fore") else -0.35) * min(length, radius) + rng.normal(0, 1.0)
        aside = (1.0 if foot.startswith("left") else -1.0) * 0.12 * radius
        place, stand = np.full((len(t), 3), np.nan), np.zeros(len(t), dtype=bool)
        own = cycle - phase + 2.0
        for k in range(int(own[-1]) + 2):
            begin, end = np.searchsorted(own, k), np.searchsorted(own, k + duty)
            if begin >= end or begin >= len(t):
                continue
            middle = turned[min((begin + end) // 2, len(t) - 1)]
            touch = ahead + rng.normal(0, 0.02 * length)
            angles = touch / radius - (turned[begin:end] - middle)
            sole = (radius - 1.2 if inside else radius + 1.2) * down + aside * axis
            place[begin:end] = Rotation.from_rotvec(angles[:, None] * _sense(axis, inside)).apply(sole) + centre
            stand[begin:end] = True
        place = _with_swings(place, stand, centre, inside, 0.16 * min(length, radius))
        forward = np.cross(_sense(axis, inside), place - centre)
        tip = place + 3.0 * forward / np.linalg.norm(forward, axis=1, keepdims=True)
        both = np.stack([place, tip], axis=1)[::fine]
        feet[foot] = both + rng.normal(0, noise_mm, both.shape)
        stands[foot] = stand[::fine]
    return WheelRun(feet, stands, turned[::fine], centre, axis, radius, rate)


def _sense(axis: Floats, inside: bool) -> Floats:
    """Return the vector (3,) about which forward is, under (over) the axis."""
    return -axis if inside else axis


def _with_swings(place: Floats, stand: Bools, centre: Floats, inside: bool, lift: float) -> Floats:
    out = place.copy()
    edges = np.flatnonzero(np.diff(stand.astype(int)))
    for stop in edges[stand[edges]]:
        again = np.flatnonzero(stand[stop + 1 :])
        if not len(again):
            break
        start = stop + 1 + int(again[0])
        last = start - stop
        share = (np.arange(1, last) / last)[:, None]
        # A foot leaves and meets the surface with the speed that it has there: a quintic, no acceleration at its ends.
        from_, to = last * (out[stop] - out[stop - 1]), last * (out[start + 1] - out[start])
        ease = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
        leave = share - share**3 * (6.0 - 8.0 * share + 3.0 * share**2)
        meet = -(share**3) * (4.0 - 7.0 * share + 3.0 * share**2)
        way = out[stop] + ease * (out[start] - out[stop]) + leave * from_ + meet * to
        inward = (centre - way) / np.linalg.norm(centre - way, axis=1, keepdims=True)
        bulge = lift * np.sin(np.pi * share) ** 2
        # The straight line cuts through a wheel seen from outside: there the foot goes over it.
        chord = float(np.linalg.norm(out[start] - out[stop]))
        deep = 0.0 if inside else chord**2 / (8.0 * float(np.linalg.norm(out[stop] - centre)))
        over = bulge + 1.2 * deep * 4.0 * share * (1.0 - share)
        out[stop + 1 : start] = way + (1.0 if inside else -1.0) * over * inward
    known = np.isfinite(out).all(axis=1)
    first, last = np.flatnonzero(known)[[0, -1]]
    out[:first], out[last + 1 :] = out[first], out[last]
    return out


RUNS = tuple(
    (seed, size)
    for seed in (1, 2, 3)
    for size in (
        {"radius": 62.5, "speed": 500.0, "stride_hz": 7.0}, {"radius": 62.5, "speed": 200.0, "stride_hz": 3.6},
        {"radius": 175.0, "speed": 600.0, "stride_hz": 4.0},
        {"radius": 100.0, "speed": 250.0, "stride_hz": 4.2, "inside": False},
    )
)  # fmt: skip
"""A mouse's wheel at a run and at a walk, a rat's, and a mouse on a cylinder."""


def wheel_scores() -> dict[str, float]:
    """Find wheels, and contacts and strides in them."""
    f1s, worst, radii, places, periods, lengths, found = [], [], [], [], [], [], 0
    for seed, size in RUNS:
        run = wheel_run(seed, **size)  # type: ignore[arg-type]
        ground = ground_of(run.feet, run.rate_hz)
        if not isinstance(ground, Wheel):
            print(f"  seed {seed}, {size}: no wheel")
            continue
        found += 1
        across = ground.rim.centre - run.centre
        across -= (across @ run.axis) * run.axis
        radii.append(abs(ground.rim.radius_mm / run.radius_mm - 1.0))
        places.append(float(np.linalg.norm(across)) / run.radius_mm)
        least = []
        for foot, points in run.feet.items():
            contacts = detect_contacts(points, run.rate_hz, belt=ground)
            true = run.stands[foot]
            least.append(f1_of(contacts.states, true))
            downs = np.flatnonzero(np.diff(true.astype(int)) == 1) + 1
            downs = downs[(downs > 4) & (downs < len(true) - 4)]
            times = contacts.touch_down_s * run.rate_hz
            times = np.array([times[np.argmin(np.abs(times - one))] for one in downs])
            worst.append(float(np.abs(times - downs).max()))
            periods.append(abs(float((times[-1] - times[0]) / (downs[-1] - downs[0])) - 1.0))
            gait = foot_gait(contacts, ground.without(points, run.rate_hz).mean(axis=1))
            first, last = (round(one * run.rate_hz) for one in (gait.start_s[0], gait.start_s[-1] + gait.stride_s[-1]))
            true_mm = run.radius_mm * float(run.turned[min(last, len(true) - 1)] - run.turned[first])
            lengths.append(abs(float(gait.length_mm.sum()) / true_mm - 1.0))
        f1s += least
        print(f"  seed {seed}, {size}: radius {ground.rim.radius_mm:.1f} mm, F1 {min(least):.3f}")
    return {
        "wheels_found": found / len(RUNS), "wheel_f1_min": min(f1s, default=0.0),
        "wheel_worst_frames": max(worst, default=np.inf), "wheel_radius_error": max(radii, default=np.inf),
        "wheel_axis_error": max(places, default=np.inf), "wheel_period_error": max(periods, default=np.inf),
        "wheel_length_error": max(lengths, default=np.inf),
    }  # fmt: skip
