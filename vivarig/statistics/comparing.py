"""Groups of animals compared: a curve over the gait cycle, or one number of each stride or recording.

An animal counts once, however many strides it made: its strides are averaged first, groups are mean and standard
deviation of animals. Two groups are told apart by a permutation test of the difference of their means: all exchanges of
animals between the groups where they are few, seeded random ones where they are many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError, nearest
from vivarig.statistics.table_files import Columns

__all__ = ["Comparison", "compare_cycles", "compare_values", "permutation_p"]

SAMPLES = 101
"""Points of a cycle, 0 to 100 %."""
_FEWEST_FRAMES = 5
"""Frames that a stride must have to be drawn over its cycle."""
_MOST_EXCHANGES = 20_000


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values of animals, by group.

    Attributes:
        what: the signal and its unit in words.
        groups: group name to (n, S) a row per animal: 101 points of a cycle, or one number.
        animals: group name to the names of its animals.
        strides: how many strides or rows went into it.
        p: of the permutation test, for two groups and one number; NaN else.
    """

    what: str
    groups: Mapping[str, Floats]
    animals: Mapping[str, tuple[str, ...]]
    strides: int
    p: float = float("nan")


def compare_cycles(table: Columns, joint: str, value: str, by: str) -> Comparison:
    """Return a joint's value over its foot's gait cycle, from a table of joints; only trusted rows count."""
    joints = table["joint"]
    if joint not in joints:
        raise InputError(f"no joint '{joint}' in the table; {nearest(joint, sorted(set(joints.tolist())))}")
    if table["phase"].dtype == object or not (mine := (joints == joint) & np.isfinite(table["phase"])).any():
        raise InputError(f"no gait cycle of '{joint}' in the table: nobody walked, or too little was trusted")
    table = {name: values[mine] for name, values in table.items()}
    good = np.isfinite(table[value]) & (table["trust"] == "trusted")
    strides: dict[tuple[str, str, str, float], list[int]] = {}
    for row, key in enumerate(zip(table[by], table["animal"], table["recording"], table["stride"], strict=True)):
        strides.setdefault(key, []).append(row)
    at = np.linspace(0.0, 1.0, SAMPLES)
    curves: dict[tuple[str, str], list[Floats]] = {}
    for (group, animal, _, _), rows in strides.items():
        if len(rows) < _FEWEST_FRAMES or not good[rows].all():
            continue  # a stride with a hole says nothing of what was in it
        phase, values = table["phase"][rows], table[value][rows]
        curve = np.interp(at, np.concatenate([phase - 1, phase, phase + 1]), np.tile(values, 3))
        curves.setdefault((str(group), str(animal)), []).append(curve)
    if not curves:
        raise InputError(f"no stride of '{joint}' is trusted in all its frames, so there is no curve to draw")
    return _grouped(f"{joint} {value}", curves)


def compare_values(table: Columns, value: str, by: str) -> Comparison:
    """Return one number per animal, from a table of strides or of recordings."""
    if table[value].dtype == object:
        raise InputError(f"column '{value}' holds words; compare one of numbers")
    found: dict[tuple[str, str], list[Floats]] = {}
    for group, animal, number in zip(table[by], table["animal"], table[value], strict=True):
        if np.isfinite(number):
            found.setdefault((str(group), str(animal)), []).append(np.array([number]))
    if not found:
        raise InputError(f"column '{value}' is empty: nothing to compare")
    out = _grouped(value, found)
    if len(out.groups) == 2:
        one, two = (rows[:, 0] for rows in out.groups.values())
        return Comparison(out.what, out.groups, out.animals, out.strides, permutation_p(one, two))
    return out


def _grouped(what: str, found: Mapping[tuple[str, str], list[Floats]]) -> Comparison:
    names = sorted({group for group, _ in found})
    animals = {name: tuple(sorted(animal for group, animal in found if group == name)) for name in names}
    groups = {
        name: np.stack([np.mean(found[name, animal], axis=0) for animal in animals[name]]).astype(np.float64)
        for name in names
    }
    return Comparison(what, groups, animals, sum(len(rows) for rows in found.values()))


def permutation_p(one: Floats, two: Floats) -> float:
    """Return how often a difference of means as large comes by chance, two-sided; NaN with fewer than 2 in a group."""
    if min(len(one), len(two)) < 2:
        return float("nan")
    every = np.concatenate([one, two])
    seen = abs(one.mean() - two.mean())
    if comb(len(every), len(one)) <= _MOST_EXCHANGES:
        chosen = np.array(list(combinations(range(len(every)), len(one))))
    else:
        rng = np.random.default_rng(0)
        chosen = np.stack([rng.permutation(len(every))[: len(one)] for _ in range(_MOST_EXCHANGES)])
    inside: NDArray[np.bool_] = np.zeros((len(chosen), len(every)), dtype=np.bool_)
    np.put_along_axis(inside, chosen, True, axis=1)
    first = (inside * every).sum(axis=1) / len(one)
    second = (~inside * every).sum(axis=1) / len(two)
    return float(np.mean(np.abs(first - second) >= seen * (1 - 1e-12)))
