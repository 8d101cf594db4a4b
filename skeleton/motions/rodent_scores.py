"""What a mouse or rat does: signals over time for each named motion, in mouse millimetres and mouse time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from calibration.foundation.arrays import Floats
from skeleton.motions.signals import bump, smooth_noise, smoothstep

__all__ = ["POSTURE", "RODENT_MOTIONS", "RODENT_POSTURES", "RodentScore"]

#: Lift-off phases: lateral sequence walk; trot in diagonal pairs.
WALK = {"left_hind": 0.0, "left_fore": 0.25, "right_hind": 0.5, "right_fore": 0.75}
TROT = {"left_hind": 0.0, "right_fore": 0.03, "right_hind": 0.5, "left_fore": 0.53}


@dataclass(frozen=True, eq=False)
class RodentScore:
    """What the animal does: signals over the fine grid (N,), in mouse millimetres; intervals in s.

    speed mm/s, turning rad/s, rear and groom and sniff 0..1, airborne: when both fore paws leave the floor. posture:
    signals by the names of `POSTURE` that are added to what these make of the trunk, none where it is empty.
    """

    speed: Floats
    turning: Floats
    rear: Floats
    groom: Floats
    sniff: Floats
    airborne: list[tuple[float, float]] = field(default_factory=list)
    phases: Mapping[str, float] = field(default_factory=lambda: WALK)
    duty: float = 0.66
    posture: Mapping[str, Floats] = field(default_factory=dict)


#: What a posture adds: pitch and roll of the pelvis, deg; its height and how far back it stands, mm; curl (down),
#: bend (left) and twist of each joint of the spine, deg; nod (down), look (left) and tilt of each joint of the neck,
#: deg; free 0..1, how far the shoulders leave the height of all fours; tail and lift, the sideways bend and the rise of
#: each joint of the tail, deg.
POSTURE = ("pitch", "roll", "height", "back", "curl", "bend", "twist", "nod", "look", "tilt", "free", "tail", "lift")


def _score(
    t: Floats,
    signals: Mapping[str, Floats],
    *,
    airborne: list[tuple[float, float]] | None = None,
    phases: Mapping[str, float] = WALK,
    duty: float = 0.66,
) -> RodentScore:
    """Return a score with zero for the signals that are not given."""
    quiet = np.zeros(len(t))
    speed, turning, rear, groom, sniff = (
        signals.get(key, quiet) for key in ("speed", "turning", "rear", "groom", "sniff")
    )
    return RodentScore(speed, turning, rear, groom, sniff, airborne or [], phases, duty)


def _walk(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    signals: dict[str, Floats] = {}
    signals["speed"] = 165.0 * rng.uniform(0.9, 1.1) * (1 + 0.06 * smooth_noise(t, 1, 0.8, rng)[:, 0])
    signals["turning"] = 0.15 * smooth_noise(t, 1, 0.5, rng)[:, 0]
    signals["sniff"] = np.full(len(t), 0.3)
    return _score(t, signals)


def _trot(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    signals: dict[str, Floats] = {}
    signals["speed"] = 340.0 * rng.uniform(0.92, 1.08) * (1 + 0.04 * smooth_noise(t, 1, 0.8, rng)[:, 0])
    signals["turning"] = 0.1 * smooth_noise(t, 1, 0.5, rng)[:, 0]
    return _score(t, signals, phases=TROT, duty=0.5)


def _turn(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    signals: dict[str, Floats] = {}
    side = 1.0 if rng.random() < 0.5 else -1.0
    signals["speed"] = 110.0 * (1 + 0.08 * smooth_noise(t, 1, 0.6, rng)[:, 0])
    signals["turning"] = side * (1.9 + 0.4 * smooth_noise(t, 1, 0.4, rng)[:, 0])
    signals["sniff"] = np.full(len(t), 0.4)
    return _score(t, signals, duty=0.7)


def _rear(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    signals: dict[str, Floats] = {}
    start, stop = 0.12 * seconds, 0.9 * seconds
    rise = min(0.45, 0.3 * seconds)
    signals["rear"] = bump(t, start, rise, stop) * rng.uniform(0.9, 1.0)
    signals["sniff"] = 0.5 + 0.5 * signals["rear"]
    return _score(t, signals, airborne=[(start, stop)])


def _groom(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    signals: dict[str, Floats] = {}
    start, stop = 0.06 * seconds, 0.95 * seconds
    signals["groom"] = bump(t, start, min(0.4, 0.25 * seconds), stop)
    return _score(t, signals, airborne=[(start, stop)])


def _sniff(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    signals: dict[str, Floats] = {}
    signals["sniff"] = np.ones(len(t))
    return _score(t, signals)


def _explore(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    """A random chain of bouts: walking with turns, sniffing, rearing, grooming."""
    airborne: list[tuple[float, float]] = []
    signals = {key: np.zeros(len(t)) for key in ("speed", "turning", "rear", "groom")}
    signals["sniff"] = np.full(len(t), 0.4)
    now = float(t[0])
    while now < t[-1]:
        kind = rng.choice(["walk", "walk", "sniff", "rear", "groom"], p=[0.35, 0.2, 0.2, 0.15, 0.1])
        length = float(rng.uniform(0.9, 2.0))
        if kind == "walk":
            length += 0.6
            plateau = bump(t, now, 0.3, now + length)
            signals["speed"] += rng.uniform(80, 190) * plateau
            signals["turning"] += rng.choice([-1.0, 1.0]) * rng.uniform(0.0, 1.8) * plateau
        elif kind == "sniff":
            signals["sniff"] += 0.6 * bump(t, now, 0.2, now + length)
        else:
            start, stop = now + 0.25, now + 0.25 + length
            signals[str(kind)] += bump(t, start, min(0.45, 0.3 * length), stop) * 0.95
            airborne.append((start, stop))
            length += 0.6
        now += length
    return _score(t, signals, airborne=airborne)


def _hunched(rng: np.random.Generator) -> dict[str, float]:
    """On all fours, from stretched low to a ball with the legs drawn in."""
    curl = rng.uniform(-5.0, 9.0)
    return {
        "height": rng.uniform(-6.0, 1.0),
        "back": rng.uniform(-4.0, 6.0),
        "curl": curl,
        "nod": rng.uniform(-12.0, 16.0) - 0.5 * curl,
    }


def _sitting(rng: np.random.Generator) -> dict[str, float]:
    """On the haunches, fore paws off the floor: the trunk from half way up to upright, straight to curled over."""
    pitch, curl = -rng.uniform(25.0, 88.0), rng.uniform(-4.0, 9.0)
    return {
        "pitch": pitch,
        "height": rng.uniform(-4.0, 3.0),
        "back": rng.uniform(-12.0, -3.0),
        "curl": curl,
        # The head is held between level and down to the belly, whatever the trunk does.
        "nod": float(np.clip((-pitch - 6.0 * curl) / 3.0, -12.0, 22.0)) + rng.uniform(-8.0, 14.0),
        "free": 1.0,
    }


def _postures(t: Floats, seconds: float, rng: np.random.Generator) -> RodentScore:
    """One posture after the other, as wide as joints allow: hunched, stretched, sitting, reared, turned, washing."""
    airborne: list[tuple[float, float]] = []
    whens, poses = [float(t[0])], [dict.fromkeys(POSTURE, 0.0)]
    groom = np.zeros(len(t))
    while whens[-1] < t[-1]:
        start, hold = whens[-1] + 0.35, float(rng.uniform(0.25, 0.5))
        up = bool(rng.random() < 0.55)
        pose = dict.fromkeys(POSTURE, 0.0) | (_sitting(rng) if up else _hunched(rng))
        for name, spread in (
            ("bend", 6.0),
            ("twist", 2.0),
            ("look", 9.0),
            ("tilt", 6.0),
            ("roll", 5.0),
            ("tail", 13.0),
        ):
            pose[name] += float(np.clip(rng.normal(), -2.0, 2.0)) * spread
        pose["lift"] = rng.uniform(-2.0, 6.0)
        if up:
            airborne.append((start - 0.2, start + hold + 0.2))
            if rng.random() < 0.4:
                groom = np.maximum(groom, 0.25 * bump(t, start - 0.2, 0.15, start + hold + 0.2))
        whens += [start, start + hold]
        poses += [pose, pose]
    posture = {}
    for name in POSTURE:
        values = np.array([pose[name] for pose in poses])
        index = np.clip(np.searchsorted(whens, t, side="right") - 1, 0, len(whens) - 2)
        begin, end = np.array(whens)[index], np.array(whens)[index + 1]
        share = smoothstep((t - begin) / (end - begin))
        posture[name] = (1.0 - share) * values[index] + share * values[index + 1]
    return replace(_score(t, {"groom": groom, "sniff": np.full(len(t), 0.2)}, airborne=airborne), posture=posture)


RODENT_MOTIONS: dict[str, Callable[[Floats, float, np.random.Generator], RodentScore]] = {
    "walk": _walk,
    "trot": _trot,
    "turn": _turn,
    "rear": _rear,
    "groom": _groom,
    "sniff": _sniff,
    "explore": _explore,
}
#: No motion to film: poses for a prior, at the ends of what joints allow; knees or paws may dip into the floor.
RODENT_POSTURES: dict[str, Callable[[Floats, float, np.random.Generator], RodentScore]] = {"postures": _postures}
