"""Shape of a subject in a few numbers: length and thickness of parts of a built-in body, left and right alike."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from skeleton.bodies import load_body
from tracking.quads.body_rig import CUTS
from tracking.subjects.ears import EARS

__all__ = ["LIMBS", "BodyShape", "builds", "in_fur", "shape_groups"]

LEAST, MOST = 0.55, 1.9
"""Factors that an actor can be built with, with some room; girths of a body that comes in builds have limits of their
own (`most_girth`)."""


LIMBS = {"upper_arm": "arm", "forearm": "arm", "thigh": "leg", "shank": "leg"}
"""Parts of one limb. They had one length before, and tracks of an earlier version tell that."""


@cache
def shape_groups(body: str) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Return the parts of a body that have a length and those that have a girth: part to joint names.

    Raises:
        InputError: the body has no table of parts, or it leaves a segment out.
    """
    path = CUTS / body / "groups.toml"
    if not path.is_file():
        raise InputError(f"body '{body}' has no table of parts; built-in bodies are mouse, rat and human")
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    joints = load_body(body).joint_names
    found = []
    for kind in ("length", "girth"):
        parts = {
            part: tuple(joint for joint in joints if _plain(joint) in segments)
            for part, segments in table[kind].items()
        }
        missing = set(joints) - {joint for names in parts.values() for joint in names}
        if missing:
            raise InputError(f"{path}: [{kind}] leaves out {', '.join(sorted(missing))}")
        found.append(parts)
    return found[0], found[1]


def _plain(joint: str) -> str:
    return joint.removeprefix("left_").removeprefix("right_").rstrip("_0123456789")


@cache
def builds(body: str) -> tuple[BodyShape, ...]:
    """Return the builds that a body comes in, slender to stout, at its built-in lengths; the built-in one first.

    An animal fed and at rest is twice as wide as one that runs: no local search goes from one to the other.
    """
    table = _build_table(body)
    plain = BodyShape.uniform(body, 1.0)
    if table is None:
        return (plain,)
    follows = table["follows"]
    return tuple(
        replace(plain, girths={part: float(girth ** follows.get(part, 0.0)) for part in plain.girths})
        for girth in table["girths"]
    )


@cache
def most_girth(body: str) -> float:
    """Return the girth of a part against the body's size that none exceeds."""
    table = _build_table(body)
    return MOST if table is None else float(table["most"])


def in_fur(body: str) -> tuple[str, ...]:
    """Return the parts whose girth the outlines of a stout animal do not tell."""
    table = _build_table(body)
    return () if table is None else tuple(table["in_fur"])


def _build_table(body: str) -> dict[str, Any] | None:
    """The builds that a body comes in, as its table of parts has them; None for a body of one build."""
    return tomllib.loads((CUTS / body / "groups.toml").read_text(encoding="utf-8")).get("build")


@dataclass(frozen=True)
class BodyShape:
    """Lengths and girths of the parts of a built-in body.

    Attributes:
        body: "mouse", "rat" or "human".
        lengths: factor of each part's length against the built-in body's.
        girths: factor of each part's thickness, likewise.
    """

    body: str
    lengths: dict[str, float]
    girths: dict[str, float]

    @classmethod
    def uniform(cls, body: str, scale: float) -> BodyShape:
        """Return the built-in body, all its measures multiplied by one factor."""
        lengths, girths = shape_groups(body)
        return cls(body, dict.fromkeys(lengths, scale), dict.fromkeys(girths, scale))

    @classmethod
    def from_logs(cls, body: str, logs: Floats) -> BodyShape:
        """Return the shape whose factors have these logarithms (K,), lengths first."""
        lengths, girths = shape_groups(body)
        size = float(np.mean(logs[: len(lengths)]))
        most = np.repeat(np.log([MOST, most_girth(body)]), [len(lengths), len(girths)])
        factors = np.exp(size + np.clip(logs - size, np.log(LEAST), most)).tolist()
        return cls(
            body,
            dict(zip(lengths, factors[: len(lengths)], strict=True)),
            dict(zip(girths, factors[len(lengths) :], strict=True)),
        )

    @classmethod
    def told(cls, body: str, lengths: Mapping[str, float], girths: Mapping[str, float]) -> BodyShape:
        """Return the shape that a track's file tells, one of an earlier version too.

        Raises:
            InputError: a part has no factor.
        """
        parts, thick = shape_groups(body)
        told = {part: lengths.get(part, lengths.get(LIMBS.get(part, ""))) for part in parts}
        around = {part: girths.get(part) for part in thick}
        missing = [part for part, factor in (*told.items(), *around.items()) if factor is None]
        if missing:
            raise InputError(
                f"the track tells no length or girth of {', '.join(missing)}, parts of body '{body}'; "
                "track the recording again"
            )
        return cls(
            body,
            {part: float(factor) for part, factor in told.items() if factor is not None},
            {part: float(factor) for part, factor in around.items() if factor is not None},
        )

    def scaled(self, scale: float) -> BodyShape:
        """Return the same shape, all its measures multiplied by one factor."""
        return replace(
            self,
            lengths={part: factor * scale for part, factor in self.lengths.items()},
            girths={part: factor * scale for part, factor in self.girths.items()},
        )

    @property
    def logs(self) -> Floats:
        """Logarithms of the factors (K,), lengths first."""
        return np.log([*self.lengths.values(), *self.girths.values()])

    @property
    def scale(self) -> float:
        """Mean factor of the segments' lengths."""
        return float(np.exp(np.mean(np.log(list(self.joint_lengths().values())))))

    @property
    def extremes(self) -> tuple[str, ...]:
        """Measures that lie at the limit of what a body can be given."""
        named = [(f"length of {part}", factor, MOST) for part, factor in self.lengths.items()]
        named += [(f"girth of {part}", factor, most_girth(self.body)) for part, factor in self.girths.items()]
        size = float(np.exp(np.mean(np.log(list(self.lengths.values())))))
        near = 1e-6  # what was clipped lies on the limit, or a rounding error inside
        return tuple(name for name, factor, most in named if not LEAST + near < factor / size < most - near)

    def joint_lengths(self) -> dict[str, float]:
        """Return the length factor of each segment, by joint name."""
        parts = shape_groups(self.body)[0]
        return {joint: self.lengths[part] for part, joints in parts.items() for joint in joints}

    def joint_girths(self) -> dict[str, float]:
        """Return the thickness factor of each segment, by joint name."""
        parts = shape_groups(self.body)[1]
        return {joint: self.girths[part] for part, joints in parts.items() for joint in joints}

    @property
    def ears(self) -> float:
        """Size of the ears against those that go with the head; 1 for a body whose ears are not a part of their own."""
        return self.girths[EARS] / self.girths["head"] if EARS in self.girths else 1.0

    def describe(self) -> str:
        """Say the factors in one line."""
        lengths = ", ".join(f"{part} {factor:.2f}" for part, factor in self.lengths.items())
        girths = ", ".join(f"{part} {factor:.2f}" for part, factor in self.girths.items())
        return f"length of {lengths}; girth of {girths}"
