"""Which candidate spot is which bead, decided over all views and all beads of a frame at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["NOBODY", "associate"]

#: Stands for "this bead has no candidate in this view".
NOBODY = -1
#: Alternatives kept per bead: a crossing of three beads in two views needs no more.
KEPT = 12
#: Search steps spent on one knot of beads before the best answer so far is taken.
MAX_SEARCH = 4000


def associate(
    costs: Sequence[Sequence[Floats]],
    candidates: Sequence[Sequence[Sequence[int]]],
    pair_cost: Callable[[int, int, int, int], float],
    *,
    missing_cost: float,
) -> list[tuple[int, ...]]:
    """Choose for each bead one candidate per view, or none, with the least total cost; no candidate is used twice.

    The cost of a bead's choice is the sum of its own costs per view, ``missing_cost`` for each view without, and
    ``pair_cost(view, candidate, other view, candidate)`` for each pair of views, usually the squared epipolar
    distance over its variance. Beads that compete for a candidate are searched together, exactly (branch and
    bound); the others take their best.

    Args:
        costs: ``costs[bead][view]`` one cost per candidate.
        candidates: ``candidates[bead][view]`` the candidates' numbers in that view.

    Returns:
        for each bead the chosen candidate per view, `NOBODY` for none.
    """
    options = [_options(costs[bead], candidates[bead], pair_cost, missing_cost) for bead in range(len(candidates))]
    chosen: list[tuple[int, ...]] = [() for _ in candidates]
    for knot in _knots([{(v, c) for v, view in enumerate(bead) for c in view} for bead in candidates]):
        for bead, choice in zip(knot, _solve([options[b] for b in knot]), strict=True):
            chosen[bead] = choice
    return chosen


def _options(
    costs: Sequence[Floats],
    candidates: Sequence[Sequence[int]],
    pair_cost: Callable[[int, int, int, int], float],
    missing_cost: float,
) -> list[tuple[float, tuple[int, ...]]]:
    """Return the bead's alternatives, cheapest first."""
    per_view = [
        [(NOBODY, missing_cost), *zip(view, np.asarray(cost).tolist(), strict=True)]
        for view, cost in zip(candidates, costs, strict=True)
    ]
    options: list[tuple[float, tuple[int, ...]]] = []
    for choice in product(*per_view):
        total = sum(cost for _, cost in choice)
        for i in range(len(choice)):
            for j in range(i + 1, len(choice)):
                if choice[i][0] != NOBODY and choice[j][0] != NOBODY:
                    total += pair_cost(i, choice[i][0], j, choice[j][0])
        options.append((total, tuple(c for c, _ in choice)))
    options.sort()
    nothing = tuple(NOBODY for _ in candidates)
    kept = options[:KEPT]
    if all(choice != nothing for _, choice in kept):
        kept.append((missing_cost * len(candidates), nothing))
    return kept


def _knots(used: list[set[tuple[int, int]]]) -> list[list[int]]:
    """Group beads that share candidates, directly or through others."""
    parent = list(range(len(used)))

    def root(i: int) -> int:
        while parent[i] != i:
            i = parent[i]
        return i

    owner: dict[tuple[int, int], int] = {}
    for bead, candidates in enumerate(used):
        for candidate in sorted(candidates):
            if candidate in owner:
                parent[root(bead)] = root(owner[candidate])
            else:
                owner[candidate] = bead
    groups: dict[int, list[int]] = {}
    for bead in range(len(used)):
        groups.setdefault(root(bead), []).append(bead)
    return list(groups.values())


def _solve(options: list[list[tuple[float, tuple[int, ...]]]]) -> list[tuple[int, ...]]:
    """Return the cheapest choice of all beads of a knot together, no candidate twice."""
    count = len(options)
    floor = [0.0] * (count + 1)
    for bead in range(count - 1, -1, -1):
        floor[bead] = floor[bead + 1] + options[bead][0][0]
    best_cost = np.inf
    best: list[tuple[int, ...]] = []
    current: list[tuple[int, ...]] = []
    taken: set[tuple[int, int]] = set()
    steps = 0

    def descend(bead: int, cost: float) -> None:
        nonlocal best_cost, best, steps
        steps += 1
        if bead == count:
            if cost < best_cost:
                best_cost, best = cost, list(current)
            return
        for own, choice in options[bead]:
            if cost + own + floor[bead + 1] >= best_cost or (steps > MAX_SEARCH and best):
                return
            keys = [(view, c) for view, c in enumerate(choice) if c != NOBODY]
            if any(key in taken for key in keys):
                continue
            taken.update(keys)
            current.append(choice)
            descend(bead + 1, cost + own)
            current.pop()
            taken.difference_update(keys)

    descend(0, 0.0)
    return best
