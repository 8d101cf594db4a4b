"""What all cameras together bear of their lenses, where each alone bears less."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.bundle.adjustment import Bundle, BundleSolution, adjust, leave_out, minimise
from calibration.bundle.parameters import Freedom, number_columns
from calibration.foundation.arrays import Floats
from calibration.solving.intrinsics import FISHEYE_LADDER, FOLDS, PINHOLE_LADDER, LensChoice

__all__ = ["richer_together"]

RICHER = (0, 3, 5)
"""Rungs of the lens ladders that all cameras are tried at together: none, the principal point, all but a third term."""


def richer_together(
    solution: BundleSolution, freedoms: tuple[Freedom, ...], choices: tuple[LensChoice | None, ...]
) -> tuple[BundleSolution, tuple[Freedom, ...], list[str]]:
    """Free more of the lenses where all cameras together bear it: a view that others see too tells more of a lens.

    The rule is that of `choose_lens`, over the boards' poses: richer lenses are taken where the error on poses that
    they were not fitted to falls by more than its own standard error.
    """
    bundle = solution.bundle.only(solution.inlier)
    targets = np.unique(bundle.target)
    if len(targets) < FOLDS + 1:
        return solution, freedoms, []
    folds = [targets[fold::FOLDS] for fold in range(FOLDS)]
    tried: list[tuple[tuple[Freedom, ...], Bundle, Floats]] = []
    for least in RICHER:
        more = tuple(
            freedom if choice is None else _at_least(freedom, choice, least)
            for freedom, choice in zip(freedoms, choices, strict=True)
        )
        if tried and more == tried[-1][0]:
            continue
        columns = number_columns(more, 0, len(bundle.points))
        state = minimise(tried[-1][1] if tried else bundle, columns, iterations=15, tolerance=1e-6)[0]
        tried.append((more, state, leave_out(state, columns, folds)[targets]))
    best = int(np.argmin([scores.mean() for _, _, scores in tried]))
    chosen = next((one for one in tried if _as_good(one[2], tried[best][2])), tried[0])
    more, state, scores = chosen
    if more == freedoms:
        return solution, freedoms, []
    before, after = (float(np.sqrt(one.mean())) for one in (tried[0][2], scores))
    words = f"all cameras together bear richer lenses than each alone: {after:.3f} px on unseen poses, not {before:.3f}"
    return adjust(solution.bundle.at(state), more, start_px=None), more, [words]


def _as_good(scores: Floats, best: Floats) -> bool:
    """Whether squared errors exceed the best ones by no more than the standard error of the difference."""
    if not (np.isfinite(scores).all() and np.isfinite(best).all()):
        return False
    difference = scores - best
    return bool(difference.mean() <= difference.std(ddof=1) / np.sqrt(len(difference)))


def _at_least(freedom: Freedom, choice: LensChoice, rung: int) -> Freedom:
    """Return a freedom with at least what a rung of its ladder frees."""
    ladder = FISHEYE_LADDER if freedom.distortion.startswith("fisheye") else PINHOLE_LADDER
    richer = ladder[max(rung, ladder.index(choice.freedom))]
    return replace(freedom, focal=richer.focal, centre=richer.centre, distortion=richer.distortion)
