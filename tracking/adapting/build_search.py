"""The subject's build, slender to stout, and its size: where a body comes in several builds, each is tried.

A sitting mouse is a ball twice as wide as the walker that the built-in body is. A person may wear a skirt, in which the
bare body is found anywhere, and far too large. Lengths, girths and poses are refined from the best build afterwards
(`tracking.adapting.shape_search`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from tracking.adapting.scale_search import Found, find_scale_and_poses
from tracking.fitting.settings import Settings
from tracking.observations.contours import Observation
from tracking.subjects.garments import WEARERS, Skirt, dressed
from tracking.subjects.shape import BodyShape, builds
from tracking.subjects.shaped import Shaper
from tracking.subjects.subject import Subject

__all__ = ["FITS", "Build", "find_build"]

FITS = 0.88
"""Overlap from which on a build needs no rival. The sample mouse reaches it with its own build at the right size."""

TRIED_ON = (Skirt(0.45, 0.20, 0.28), Skirt(0.60, 0.20, 0.30), Skirt(0.75, 0.20, 0.32))
"""Skirts that are tried on."""
WORN = 0.02
"""Rise of the overlap from which on one of them is worn: a bare person's overlap falls by 0.1, that of a person in a
skirt rises by 0.05 to 0.08."""


@dataclass(frozen=True, eq=False)
class Build:
    """A build and where the subject is with it.

    Attributes:
        shape: lengths and girths, the size in them.
        found: the subject in the frames looked at.
        skirt: that it wears, roughly; None for none.
    """

    shape: BodyShape
    found: tuple[Found, ...]
    skirt: Skirt | None = None

    @property
    def plain(self) -> bool:
        """Whether it is the built-in build, whatever the size."""
        return len({*self.shape.lengths.values(), *self.shape.girths.values()}) == 1

    @property
    def overlap(self) -> float:
        """Mean overlap of the silhouettes in the frames looked at."""
        return float(np.mean([one.agreement for one in self.found]))


def find_build(
    builtin: Subject,
    rig: Rig,
    observe: Callable[[int], Observation],
    frames: Sequence[int],
    *,
    up: Floats,
    settings: Settings | None = None,
    spreads: Sequence[float] = (0.05,),
    more: Sequence[int] = (),
) -> Build:
    """Find the build and the size with which a built-in body overlaps the silhouettes of a few frames best.

    Builds are tried from slender to stout until one fits well, or the next fits worse. Where none fits a body that
    wears clothes, skirts are tried on, in the frames of ``more`` too.
    """
    best: Build | None = None
    shaper: Shaper | None = None
    for shape in builds(builtin.body):
        if best is None:
            subject = builtin
        else:
            shaper = shaper or Shaper(builtin)
            subject = shaper.make(shape, whole=False).subject
        scale, found = find_scale_and_poses(subject, rig, observe, frames, up=up, settings=settings, spreads=spreads)
        trial = Build(shape.scaled(scale), tuple(found))
        if best is not None and trial.overlap <= best.overlap:
            break
        best = trial
        if best.overlap >= FITS:
            break
    assert best is not None
    if best.overlap < FITS and builtin.body in WEARERS:
        return _dressed_build(builtin, rig, observe, sorted({*frames, *more}), best, up, settings, spreads)
    return best


def _dressed_build(
    builtin: Subject,
    rig: Rig,
    observe: Callable[[int], Observation],
    frames: Sequence[int],
    bare: Build,
    up: Floats,
    settings: Settings | None,
    spreads: Sequence[float],
) -> Build:
    """Return the best of some skirts, or the bare build where they gain too little."""
    find = partial(find_scale_and_poses, rig=rig, observe=observe, frames=frames, up=up, settings=settings)
    if set(frames) != {one.frame for one in bare.found}:
        scale, found = find(builtin, spreads=spreads)
        bare = Build(BodyShape.uniform(builtin.body, scale), tuple(found))
    trials = []
    for skirt in TRIED_ON:
        scale, found = find(dressed(builtin, skirt), spreads=spreads)
        trials.append(Build(BodyShape.uniform(builtin.body, scale), tuple(found), skirt))
    best = max(trials, key=lambda build: build.overlap)
    return best if best.overlap > bare.overlap + WORN else bare
