"""What a person does: signals over time for each named motion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from calibration.foundation.arrays import Floats
from skeleton.motions.signals import bump, ramp, smooth_noise

__all__ = ["HUMAN_MOTIONS", "HandTarget", "HumanScore"]


@dataclass(frozen=True, eq=False)
class HandTarget:
    """Where a hand goes: ``place`` of times (T,) gives (T, 3) in the chest's frame, mm; ``weight`` (N,) 0..1."""

    place: Callable[[Floats], Floats]
    weight: Floats


@dataclass(frozen=True, eq=False)
class HumanScore:
    """Signals on the fine grid (N,) and constants of style; mm, degrees, s; for a person of 1.75 m.

    Attributes:
        speed, turning, stride_hz: the path.
        height_mm, forward_mm, aside_mm, pitch_deg: pelvis against its rest place.
        lean_deg, twist_deg: spine, summed over its joints.
        spread_deg: arms away from the body.
        roll_deg, roll_s: heel rise at the end of a stance and its duration; strike_deg: toes up at the heel strike.
        ahead_mm, apart_mm: feet against their rest place under the pelvis; airborne: lifted feet.
        lifted_mm: place of a lifted foot against its rest place in the pelvis' frame.
    """

    speed: Floats
    turning: Floats
    stride_hz: Floats
    height_mm: Floats
    forward_mm: Floats
    aside_mm: Floats
    pitch_deg: Floats
    lean_deg: Floats
    twist_deg: Floats
    spread_deg: Floats
    walking: bool = False
    duty: float = 0.54
    lift_mm: float = 60.0
    bob_mm: float = 0.0
    bob_phase: float = 0.0
    swing_yaw: float = 0.0
    arm_swing_deg: float = 0.0
    arm_forward_deg: float = 4.0
    elbow_deg: float = 14.0
    heel_strike: bool = False
    roll_deg: float = 0.0
    roll_s: float = 0.25
    strike_deg: float = 0.0
    ahead_mm: Mapping[str, float] = field(default_factory=lambda: {"left": -130.0, "right": -130.0})
    apart_mm: float = 0.0
    airborne: Mapping[str, list[tuple[float, float]]] = field(default_factory=dict)
    lifted_mm: tuple[float, float, float] = (0.0, 0.0, 0.0)
    hands: Mapping[str, HandTarget] = field(default_factory=dict)


def _score(t: Floats, signals: Mapping[str, Floats | float]) -> HumanScore:
    """Return a standing score with the given signals, zero where not given."""

    def full(name: str) -> Floats:
        return np.broadcast_to(np.asarray(signals.get(name, 0.0), dtype=np.float64), t.shape)

    return HumanScore(
        speed=full("speed"),
        turning=full("turning"),
        stride_hz=full("stride_hz"),
        height_mm=full("height_mm"),
        forward_mm=full("forward_mm"),
        aside_mm=full("aside_mm"),
        pitch_deg=full("pitch_deg"),
        lean_deg=full("lean_deg"),
        twist_deg=full("twist_deg"),
        spread_deg=full("spread_deg"),
    )


def _walk(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    pace = rng.uniform(0.93, 1.05)
    signals = _score(
        t,
        {
            "speed": 980.0 * pace * (1 + 0.02 * smooth_noise(t, 1, 0.3, rng)[:, 0]),
            "stride_hz": 0.92 * np.sqrt(pace),
            "height_mm": -38.0,
            "pitch_deg": 2.0,
            "lean_deg": 2.0,
        },
    )
    return replace(
        signals,
        walking=True,
        heel_strike=True,
        bob_mm=14.0,
        swing_yaw=5.0,
        arm_swing_deg=24.0,
        roll_deg=40.0,
        roll_s=0.3,
        strike_deg=16.0,
        lift_mm=70.0,
        apart_mm=-12.0,
    )


def _jog(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    pace = rng.uniform(0.95, 1.05)
    signals = _score(
        t,
        {
            "speed": 2050.0 * pace,
            "stride_hz": 1.36,
            "height_mm": -42.0,
            "pitch_deg": 6.0,
            "lean_deg": 5.0,
        },
    )
    return replace(
        signals,
        walking=True,
        duty=0.34,
        bob_mm=24.0,
        bob_phase=2.2,
        swing_yaw=6.0,
        arm_swing_deg=38.0,
        elbow_deg=80.0,
        roll_deg=42.0,
        roll_s=0.14,
        lift_mm=190.0,
        apart_mm=-24.0,
        ahead_mm={"left": -142.0, "right": -142.0},
    )


def _turning(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    side = 1.0 if rng.random() < 0.5 else -1.0
    signals = _score(
        t,
        {
            "speed": 560.0,
            "turning": side * (0.85 + 0.1 * smooth_noise(t, 1, 0.3, rng)[:, 0]),
            "stride_hz": 0.78,
            "height_mm": -25.0,
            "twist_deg": side * 8.0,
        },
    )
    return replace(
        signals,
        walking=True,
        heel_strike=True,
        duty=0.58,
        bob_mm=8.0,
        swing_yaw=3.0,
        arm_swing_deg=12.0,
        roll_deg=24.0,
        roll_s=0.3,
        strike_deg=8.0,
        lift_mm=55.0,
        apart_mm=-8.0,
    )


def _reach(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    """Reach out with one hand after the other, high and low, leaning and turning with it."""
    first = "left" if rng.random() < 0.5 else "right"
    other = "right" if first == "left" else "left"
    half = 0.5 * seconds
    one, two = (bump(t, a, 0.42 * half, b) for a, b in ((0.02 * half, 0.98 * half), (1.02 * half, 1.98 * half)))
    hands: dict[str, HandTarget] = {}
    for side, weight in ((first, one), (other, two)):
        sign = 1.0 if side == "left" else -1.0
        spot = np.array([rng.uniform(430, 520), sign * rng.uniform(60, 260), rng.uniform(-120, 330)])
        hands[side] = HandTarget(_still(spot), weight)
    sign = 1.0 if first == "left" else -1.0
    signals = _score(
        t,
        {
            "height_mm": -18.0 - 12.0 * (one + two),
            "forward_mm": 30.0 * (one + two),
            "pitch_deg": 5.0 * (one + two),
            "lean_deg": 9.0 * (one + two),
            "twist_deg": -sign * 16.0 * one + sign * 16.0 * two,
        },
    )
    return replace(signals, hands=hands, apart_mm=12.0)


def _still(spot: Floats) -> Callable[[Floats], Floats]:
    return lambda when: np.broadcast_to(spot, (len(when), 3))


def _box(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    """Guard, then straight punches left and right at about two per second."""
    guard = {"left": np.array([250.0, 75.0, 170.0]), "right": np.array([215.0, -70.0, 175.0])}
    punch = {"left": np.array([530.0, 25.0, 165.0]), "right": np.array([520.0, -15.0, 165.0])}
    moments: dict[str, list[float]] = {"left": [], "right": []}
    now, side = -1.5, "left"
    while now < t[-1]:
        moments[side].append(now)
        now += float(rng.uniform(0.42, 0.62))
        side = "right" if side == "left" else "left"

    def thrown(side: str, when: Floats) -> Floats:
        out = np.zeros(len(when))
        for moment in moments[side]:
            out = np.maximum(out, bump(when, moment, 0.17, moment + 0.36))
        return out

    def place(side: str) -> Callable[[Floats], Floats]:
        return lambda when: guard[side] + thrown(side, when)[:, None] * (punch[side] - guard[side])

    left, right = thrown("left", t), thrown("right", t)
    signals = _score(
        t,
        {
            "height_mm": -62.0 + 8.0 * smooth_noise(t, 1, 1.2, rng)[:, 0],
            "forward_mm": -20.0 + 18.0 * (left + right),
            "pitch_deg": 4.0,
            "lean_deg": 10.0,
            "twist_deg": -8.0 - 20.0 * left + 26.0 * right,
        },
    )
    ones = np.ones(len(t))
    hands = {side: HandTarget(place(side), ones) for side in ("left", "right")}
    return replace(
        signals,
        hands=hands,
        apart_mm=45.0,
        elbow_deg=80.0,
        ahead_mm={"left": 20.0, "right": -210.0},
    )


def _balance(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    """Stand on one leg, arms spread, swaying."""
    lifted = "left" if rng.random() < 0.5 else "right"
    sign = -1.0 if lifted == "left" else 1.0
    start, stop = 0.12 * seconds, 0.95 * seconds
    up = bump(t, max(start - 0.3, 0.0), min(0.7, 0.3 * seconds), min(stop + 0.3, seconds))
    sway = smooth_noise(t, 2, 0.9, rng)
    signals = _score(
        t,
        {
            "height_mm": -14.0 - 8.0 * up,
            "aside_mm": up * sign * 72.0 + 6.0 * up * sway[:, 0],
            "forward_mm": 8.0 * up * sway[:, 1],
            "pitch_deg": 7.0 * up,
            "lean_deg": 4.0 * up,
            "spread_deg": up * (62.0 + 6.0 * sway[:, 0]),
        },
    )
    return replace(
        signals,
        airborne={lifted: [(start, stop)]},
        lift_mm=0.0,
        lifted_mm=(-120.0, 10.0 * -sign, 330.0),
        apart_mm=-10.0,
    )


def _sit(t: Floats, seconds: float, rng: np.random.Generator) -> HumanScore:
    """Sit down on a seat of 45 cm and stay."""
    start, stop = 0.1 * seconds, min(0.1 * seconds + 2.0, 0.8 * seconds)
    down = ramp(t, start, stop)
    middle = bump(t, start, 0.5 * (stop - start), stop + 0.2 * (stop - start))
    signals = _score(
        t,
        {
            "height_mm": -14.0 - 385.0 * down,
            "forward_mm": -330.0 * down,
            "pitch_deg": 26.0 * middle - 6.0 * down,
            "lean_deg": 26.0 * middle + 4.0 * down,
            "spread_deg": 8.0 * down,
        },
    )
    return replace(signals, apart_mm=14.0, arm_forward_deg=12.0, elbow_deg=28.0)


HUMAN_MOTIONS: dict[str, Callable[[Floats, float, np.random.Generator], HumanScore]] = {
    "walk": _walk,
    "jog": _jog,
    "turn": _turning,
    "reach": _reach,
    "box": _box,
    "balance": _balance,
    "sit": _sit,
}
