"""The subject's build, slender to stout, and its size: where a body comes in several builds, each is tried.

A sitting mouse is a ball twice as wide as the walker that the built-in body is. Lengths, girths and poses are refined
from the best build afterwards (`tracking.adapting.shape_search`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from tracking.adapting.scale_search import Found, find_scale_and_poses
from tracking.fitting.settings import Settings
from tracking.observations.contours import Observation
from tracking.subjects.shape import BodyShape, builds
from tracking.subjects.shaped import Shaper
from tracking.subjects.subject import Subject

__all__ = ["Build", "find_build"]

FITS = 0.88
"""Overlap from which on a build needs no rival. The sample mouse reaches it with its own build at the right size."""


@dataclass(frozen=True, eq=False)
class Build:
    """A build and where the subject is with it.

    Attributes:
        shape: lengths and girths, the size in them.
        found: the subject in the frames looked at.
    """

    shape: BodyShape
    found: tuple[Found, ...]

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
) -> Build:
    """Find the build and the size with which a built-in body overlaps the silhouettes of a few frames best.

    Builds are tried from slender to stout until one fits well, or the next fits worse.
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
    return best
