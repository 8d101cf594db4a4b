"""The subject's size: the scale of a built-in body that overlaps the silhouettes best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.once import once
from tracking.fitting.initialisation import LYING, Finder
from tracking.fitting.settings import OWN_POSES, Settings
from tracking.fitting.solver import FrameFit, FrameSolver
from tracking.observations.contours import Observation
from tracking.quads.oriented_quads import QuadPose
from tracking.quads.skin_following import builtin_following
from tracking.quads.template import body_unit
from tracking.subjects.subject import Subject, scaled_subject
from tracking.terms.bone_lengths import BoneLengths, fit_bone_lengths, limb_bones

__all__ = ["Found", "find_scale", "find_scale_and_poses", "make_solver", "refined_scale", "usual_settings"]

CHILD = 0.8
"""Size of a child against the built-in person's, from which on it is looked for where that person is not found: a pose
that is wrong, of a body too large, does not lead to one that is right."""


def usual_settings(subject: Subject) -> Settings:
    """Return the solver's settings for a subject: how its poses were learned says how far they are to be believed."""
    return Settings() if subject.sizes is None else OWN_POSES


def make_solver(subject: Subject, rig: Rig, settings: Settings | None = None) -> FrameSolver:
    """Return a solver of a subject seen by a rig."""
    settings = settings or usual_settings(subject)
    return FrameSolver(
        subject.cage_rig,
        subject.outline_template,
        rig.packed(),
        [camera.size for camera in rig.cameras],
        subject.prior,
        settings=settings,
        coarse=subject.step_template,
        points=subject.points,
        bones=_bones(subject, settings),
    )


def _bones(subject: Subject, settings: Settings) -> BoneLengths | None:
    """Lengths that the bones keep, where quads follow the skin: else their joints are not where the cage has them."""
    pairs = limb_bones(subject.joint_names)
    if subject.sizes is not None or not pairs or builtin_following(subject.body) is None:
        return None
    floor = settings.pair_shift * body_unit(subject.outline_template)
    return fit_bone_lengths(subject.cage_rig, subject.joint_binding, pairs, subject.prior, floor=floor)


@dataclass(frozen=True, eq=False)
class Found:
    """The subject in one frame, as it was found while looking for its size.

    Attributes:
        frame: which.
        pose: quads. latent: (d,) latent point.
        lead: by how much this pose beat its best rival.
        agreement: mean overlap of its silhouettes.
    """

    frame: int
    pose: QuadPose
    latent: Floats
    lead: float
    agreement: float = np.nan


def find_scale(
    subject: Subject,
    rig: Rig,
    observe: Callable[[int], Observation],
    frames: Sequence[int],
    *,
    up: Floats,
    settings: Settings | None = None,
) -> float:
    """Estimate the factor between subject and template from a few frames; see `find_scale_and_poses`."""
    return find_scale_and_poses(subject, rig, observe, frames, up=up, settings=settings)[0]


def find_scale_and_poses(
    subject: Subject,
    rig: Rig,
    observe: Callable[[int], Observation],
    frames: Sequence[int],
    *,
    up: Floats,
    settings: Settings | None = None,
    spreads: Sequence[float] = (0.05, 0.02),
) -> tuple[float, list[Found]]:
    """Estimate the factor between subject and template from a few frames, and say where the subject is in them.

    Each frame is found once at scale 1 (and at that of a child, where a person is not found so), then fitted at scales
    around it, towards where it overlaps more, until one overlaps more than those beside it; the mean overlap is
    maximised on a parabola through these three. ``spreads`` are the ratios of the scales tried, one pass each; where
    lengths are estimated afterwards, the first is enough.
    """
    looks = [observe(frame) for frame in frames]
    scale, found = 1.0, _found(subject, rig, looks, up, settings)
    if subject.body == "human" and _mean_overlap(found) < LYING:
        smaller = _found(scaled_subject(subject, CHILD), rig, looks, up, settings)
        if _mean_overlap(smaller) > _mean_overlap(found):
            scale, found = CHILD, smaller
    starts = [fit for fit, _ in found]
    for spread in spreads:
        scale, starts = refined_scale(subject, rig, looks, starts, scale, spread, settings)
    poses = [
        Found(int(frame), fit.pose, fit.latent, lead, fit.agreement)
        for frame, fit, (_, lead) in zip(frames, starts, found, strict=True)
    ]
    return scale, poses


def _found(
    subject: Subject, rig: Rig, looks: Sequence[Observation], up: Floats, settings: Settings | None
) -> list[tuple[FrameFit, float]]:
    """The subject in each of some frames, found from nothing, and its lead over its best rival."""
    finder = Finder(make_solver(subject, rig, settings), rig, up, poses=40)
    return [once("found", partial(finder.find, look, keep=8, finish=3)) for look in looks]


def _mean_overlap(found: Sequence[tuple[FrameFit, float]]) -> float:
    return float(np.mean([fit.agreement for fit, _ in found]))


def refined_scale(
    subject: Subject,
    rig: Rig,
    looks: Sequence[Observation],
    starts: Sequence[FrameFit],
    scale: float,
    spread: float,
    settings: Settings | None = None,
) -> tuple[float, list[FrameFit]]:
    """Refine the factor between subject and template in frames where the subject is known.

    Args:
        subject: of size 1.
        rig: cameras.
        looks: silhouettes of some frames.
        starts: the subject in them.
        scale: to begin with.
        spread: ratio of the scales tried, less one.
        settings: of the solver.

    Returns:
        The factor, and the fits at the best of the scales tried.
    """
    tried: dict[int, list[FrameFit]] = {}

    def overlap(step: int) -> float:
        if step not in tried:
            tried[step] = once("fitted", partial(_fits, subject, rig, settings, size(step), looks, starts))
        return float(np.mean([fit.agreement for fit in tried[step]]))

    def size(step: int) -> float:
        return scale * (1.0 + spread) ** step

    middle = 0
    for way in (1, -1):
        while overlap(middle + way) > overlap(middle) and 0.7 < size(middle + way) < 1.4:
            middle += way
    left, here, right = (overlap(middle + side) for side in (-1, 0, 1))
    bend = left - 2 * here + right
    offset = 0.5 * (left - right) / bend if bend < -1e-9 else 0.0
    best = max((middle, middle - 1, middle + 1), key=overlap)
    return float(size(middle) * (1.0 + spread) ** np.clip(offset, -1.0, 1.0)), tried[best]


def _fits(
    subject: Subject,
    rig: Rig,
    settings: Settings | None,
    scale: float,
    looks: Sequence[Observation],
    starts: Sequence[FrameFit],
) -> list[FrameFit]:
    solver = make_solver(scaled_subject(subject, scale), rig, settings)
    return [solver.fit(look, start.pose, start.latent) for look, start in zip(looks, starts, strict=True)]
