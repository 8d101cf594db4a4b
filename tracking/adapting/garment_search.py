"""Whether a person wears a skirt, and its measures, from the outlines of a few frames.

Skirts of some lengths and widths are laid over the body where it was found without. A bare person's silhouettes lose by
any of them; those of a person in a skirt gain, though her legs still stand where they fill the cloth. Then poses and
measures take turns: poses are fitted, and found anew, with the skirt on, and its measures follow its outlines by least
squares. What its outlines still leave is how little they are to be believed (`Skirt.spread`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameFit
from tracking.observations.contour_fill import MeshEdges
from tracking.observations.contours import Observation
from tracking.quads.template import Template, body_unit
from tracking.subjects.garments import WEARERS, Skirt, dressed
from tracking.subjects.subject import Subject
from tracking.terms.silhouette import OutlineMatcher

__all__ = ["find_skirt", "measured_skirt"]

LENGTHS, HEMS, WAIST = (0.3, 0.45, 0.6, 0.75, 0.9), (0.24, 0.32), 0.2
"""Skirts that are laid on: lengths, half widths at the hem and at the hips, as shares of the leg's length."""
PROMISING = -0.01
"""Gain in overlap from which on a skirt laid over the body, as that stands, is fitted."""
MEASURES = ("length", "waist", "hem", "top", "depth", "follows")
LEAST, MOST = (0.15, 0.1, 0.12, 0.01, 0.5, 0.05), (1.05, 0.35, 0.7, 0.4, 1.3, 1.0)
"""Bounds of the measures."""
HOLD = (0.3, 0.3, 0.4, 1.0, 0.2, 0.4)
"""How far the measures lie from the skirt laid on, 1 sigma of the logarithm."""
STEP = 0.15
"""Largest step of a logarithm."""
LEAST_SPREAD = 15.0
"""Spread of any skirt's outlines, at least: cloth swings."""


def find_skirt(
    subject: Subject, rig: Rig, looks: Mapping[int, Observation], fits: Mapping[int, FrameFit]
) -> Skirt | None:
    """Return the skirt that silhouettes speak for, as it is laid on; None where they speak against any.

    Args:
        subject: the body, bare.
        rig: cameras.
        looks: silhouettes of each frame.
        fits: the body in each.
    """
    if subject.body not in WEARERS or not fits:
        return None
    trials = [Skirt(length, WAIST, hem) for length, hem in product(LENGTHS, HEMS)]
    bare = _overlap(subject.step_template, subject, rig, looks, fits)
    overlaps = [_overlap(dressed(subject, skirt).step_template, subject, rig, looks, fits) for skirt in trials]
    best = int(np.argmax(overlaps))
    return trials[best] if overlaps[best] > bare + PROMISING else None


def _overlap(
    template: Template, subject: Subject, rig: Rig, looks: Mapping[int, Observation], fits: Mapping[int, FrameFit]
) -> float:
    """Overlap of a template's silhouettes, median of the frames: in some the body was not found rightly."""
    matcher = _matcher(template, rig)
    overlaps = [
        np.nanmean(matcher.overlaps(subject.cage_rig.deform(template.binding, fit.pose), matcher.pack(looks[frame])))
        for frame, fit in fits.items()
    ]
    return float(np.median(overlaps))


def _matcher(template: Template, rig: Rig) -> OutlineMatcher:
    return OutlineMatcher(MeshEdges.of(template.faces), rig.packed(), [camera.size for camera in rig.cameras])


def measured_skirt(
    subject: Subject,
    skirt: Skirt,
    rig: Rig,
    looks: Mapping[int, Observation],
    fits: Mapping[int, FrameFit],
    settings: Settings,
    *,
    steps: int = 3,
) -> Skirt:
    """Return the skirt whose outlines lie on those of some frames best, the body in them as it stands.

    Args:
        subject: the body, bare.
        skirt: to begin with.
        rig: cameras.
        looks: silhouettes of each frame.
        fits: the body in each.
        settings: of the solver.
        steps: how many.
    """
    first = np.log([getattr(skirt, name) for name in MEASURES])
    logs = first
    left = np.zeros(0)
    for _ in range(steps):
        now = _of(skirt, logs)
        residuals, slopes, weights = _outlines(subject, now, rig, looks, fits, settings)
        if not len(residuals):
            return skirt
        scale = max(2.0 * float(np.median(np.abs(residuals))), settings.robust[-1])
        weights = weights / (1.0 + (residuals / scale) ** 2) ** 2 / settings.contour_sigma**2
        hold = np.array(HOLD) ** -2.0
        hessian = slopes.T @ (weights[:, None] * slopes) + np.diag(hold)
        gradient = slopes.T @ (weights * residuals) + hold * (logs - first)
        logs = logs + np.clip(-np.linalg.solve(hessian, gradient), -STEP, STEP)
        logs = np.clip(logs, np.log(LEAST), np.log(MOST))
        left = residuals
    spread = max(1.4826 * float(np.median(np.abs(left))), LEAST_SPREAD)
    return replace(_of(skirt, logs), spread=spread)


def _of(skirt: Skirt, logs: Floats) -> Skirt:
    return replace(skirt, **dict(zip(MEASURES, np.exp(logs).tolist(), strict=True)))


def _outlines(
    subject: Subject,
    skirt: Skirt,
    rig: Rig,
    looks: Mapping[int, Observation],
    fits: Mapping[int, FrameFit],
    settings: Settings,
) -> tuple[Floats, Floats, Floats]:
    """Residuals (N,) of the skirt's outlines, thousandths, their slopes (N, 6) by the measures' logarithms, weights."""
    here = dressed(subject, skirt).outline_template
    matcher, unit = _matcher(here, rig), body_unit(subject.outline_template)
    flesh = len(subject.outline_template.vertices)
    logs = np.log([getattr(skirt, name) for name in MEASURES])
    small, reach = 1e-3, settings.reach * settings.robust[0] * unit
    moved = [dressed(subject, _of(skirt, logs + small * axis)) for axis in np.eye(len(MEASURES))]
    more = np.array([one.outline_template.binding - here.binding for one in moved]) / small
    residuals, slopes, weights = [], [], []
    for frame, fit in fits.items():
        carriers = subject.cage_rig.carriers(fit.pose)
        matches = matcher.match(
            here.binding @ carriers, matcher.pack(looks[frame]), reach=reach, model_samples=settings.samples
        )
        ours = (matches.pairs >= flesh).all(axis=1)
        pairs, directions = matches.pairs[ours], matches.directions[ours]
        fields = more @ carriers  # (K, V, 3)
        middles = 0.5 * (fields[:, pairs[:, 0]] + fields[:, pairs[:, 1]])
        slopes.append(np.einsum("kni,ni->nk", middles, directions) / unit)
        residuals.append(matches.residuals[ours] / unit)
        weights.append(matches.weights[ours] / (settings.contour_length * unit))
    return np.concatenate(residuals), np.concatenate(slopes), np.concatenate(weights)
