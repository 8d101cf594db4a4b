"""Poses of a body in the frames in which its shape is looked for.

The plain body is found in each frame by itself, before its lengths and girths are known. In loose clothes it may be
found with an arm down a trouser leg or turned round, and shape and skin would then be made to fit that. With the shape
that most frames tell such a frame overlaps less than the others: it is looked for anew with that body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.once import once
from tracking.adapting.scale_search import Found, make_solver
from tracking.fitting.initialisation import Finder
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender, better
from tracking.subjects.subject import Subject

__all__ = ["found_anew", "keeping_up", "mean_overlap", "plain_fits", "refitted", "settled"]

LAG = 0.015
"""Overlap by which a frame falls behind the middle of all: half of what an arm in the wrong place costs at least."""


def plain_fits(
    solver: FrameSolver, rig: Rig, looks: dict[int, Observation], known: Sequence[Found], up: Floats
) -> dict[int, FrameFit]:
    """Find the plain body in each frame that two cameras see, each limb for itself where need be."""
    finder = Finder(solver, rig, up, poses=40)
    limbs = LimbMender(solver)
    at = {found.frame: found for found in known}
    fits: dict[int, FrameFit] = {}
    for frame, look in looks.items():
        if frame in at:
            fit = once("settled", partial(settled, solver, look, at[frame].pose, at[frame].latent))
        elif look.seen >= 2:
            fit = once("found", partial(finder.find, look, keep=6, finish=2))[0]
        else:
            continue
        fits[frame] = once("mended", partial(limbs.mended, look, fit))
    return fits


def settled(solver: FrameSolver, look: Observation, pose: QuadPose, latent: Floats) -> FrameFit:
    """Fit a frame whose pose is roughly known, from there and along the manifold; what overlaps more is kept."""
    fits = [solver.fit(look, pose, latent, latent_steps=way) for way in (False, True)]
    best = max(fits, key=lambda fit: fit.agreement)
    return solver.fit(look, best.pose, best.latent, latent_steps=False)


def refitted(
    subject: Subject, rig: Rig, looks: dict[int, Observation], fits: dict[int, FrameFit], settings: Settings
) -> dict[int, FrameFit]:
    """Fit another body to frames: the old one's quads lie on the silhouettes, it starts there, whatever its lengths."""
    solver = make_solver(subject, rig, settings)
    return {frame: settled(solver, looks[frame], fit.pose, fit.latent) for frame, fit in fits.items()}


def mean_overlap(fits: dict[int, FrameFit], frames: Sequence[int]) -> float:
    return float(np.mean([fits[frame].agreement for frame in frames]))


def keeping_up(fits: Mapping[int, FrameFit], frames: Iterable[int]) -> tuple[int, ...]:
    """Return those of some frames that overlap about as much as the middle of all."""
    least = float(np.median([fit.agreement for fit in fits.values()])) - LAG
    return tuple(frame for frame in frames if fits[frame].agreement >= least)


def found_anew(
    subject: Subject,
    rig: Rig,
    looks: Mapping[int, Observation],
    fits: Mapping[int, FrameFit],
    up: Floats,
    settings: Settings,
) -> dict[int, FrameFit]:
    """Return the fits of a body, those that fall behind looked for once more; what scores higher is kept."""
    solver = make_solver(subject, rig, settings)
    behind = set(fits) - set(keeping_up(fits, fits))
    anew = plain_fits(solver, rig, {frame: looks[frame] for frame in fits if frame in behind}, (), up)
    return {frame: better(fit, anew[frame]) if frame in anew else fit for frame, fit in fits.items()}
