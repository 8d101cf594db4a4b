"""What speaks for and against each pixel of a silhouette, beside the silhouette itself.

Two witnesses are learnt from some frames of the recording, for each camera: colours, and how near the edge of the
template a silhouette ends. In all of it the template is fitted to the other cameras alone. So what it says of a camera
is foretold, not copied; where it stands wrong, colours inside and outside of it are alike and say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Singles
from tracking.appearance.colours import FEATURES, Colours, learnt
from tracking.appearance.feet import View
from tracking.appearance.ground import extent
from tracking.fitting.pale_parts import pale_vertices
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import limbs_of
from tracking.observations.contours import Observation
from tracking.observations.rasteriser import fill_triangles
from tracking.quads.oriented_quads import QuadPose

__all__ = ["Drawn", "Lesson", "Seen", "Teacher", "Witnesses", "lesson"]

BAND = 0.25
"""Pixels outside of a silhouette that are learnt from, share of its extent."""
MOST_ROWS = 1000
"""Pixels of each kind that are kept of one camera's frame."""
LEAST_ROWS = 100
"""Pixels of a kind below which their colours say nothing."""
_FARTHEST, _STEPS = 0.2, 41
"""How far from the template's edge a pixel's place is told apart, share of the extent, and in how many steps."""
_KINDS = ("limbs", "body", "else")


@dataclass(frozen=True, eq=False)
class Drawn:
    """The template in the window of a view (h, w): all of it, and its limbs (a rodent's feet and tail)."""

    body: Bools
    limbs: Bools


class Seen:
    """A view around its silhouette: what is looked at, and what its pixels look like."""

    def __init__(self, view: View) -> None:
        self.window = view.window()
        self.mask: Bools = view.mask[self.window]
        self.size = extent(view.mask)
        self.rows: Singles = view.described(self.window)
        self.depth: Singles = _depth(self.mask, self.size)


def _depth(mask: Bools, size: float) -> Singles:
    """Return (h, w) how far inside a mask each pixel lies, negative outside; share of the extent."""
    inside, outside = (cv2.distanceTransform(one.view(np.uint8), cv2.DIST_L2, 5) for one in (mask, ~mask))
    return np.asarray((inside - outside) / np.float32(size), np.float32)


class Teacher:
    """A template that is fitted without some cameras, and drawn as they would see it."""

    def __init__(self, solver: FrameSolver, rig: Rig) -> None:
        self._solver, self._rig, template = solver, rig, solver.coarse
        self._binding, self._faces = template.binding, np.ascontiguousarray(template.faces)
        limbs = limbs_of(solver.cage_rig.quads)
        owner = limbs.of_points(template.binding)
        pale = pale_vertices(solver.cage_rig.quads, template.binding)
        wanted = ("tail",) if pale is not None else tuple(n for n in limbs.names if n not in ("trunk", "head"))
        limb = np.isin(owner, [k for k, name in enumerate(limbs.names) if name in wanted])
        limb = limb if pale is None else limb | pale
        self._limbs = np.ascontiguousarray(self._faces[limb[self._faces].all(axis=1)])

    def without(self, cameras: Sequence[int], seen: Observation, pose: QuadPose, latent: Floats) -> QuadPose:
        """Return the pose that the other cameras' silhouettes ask for; the given one where too few see it."""
        others = seen.without(cameras)
        if others.seen < 2:
            return pose
        return self._solver.fit(others, pose, latent, latent_steps=False, last_steps=3).pose

    def drawn(self, pose: QuadPose, camera: int, window: tuple[slice, slice]) -> Drawn:
        """Return the template in a window of a camera's image."""
        one: Camera = self._rig.cameras[camera]
        pixels = np.ascontiguousarray(one.project(self._solver.cage_rig.deform(self._binding, pose)), np.float64)
        images = []
        for faces in (self._faces, self._limbs):
            image = np.zeros((one.size[1], one.size[0]), np.uint8)
            fill_triangles(pixels, faces, 1, image)
            images.append(image.view(np.bool_)[window])
        return Drawn(images[0], images[1])


@dataclass(frozen=True, eq=False)
class Lesson:
    """What one view of a frame teaches.

    Attributes:
        inside, outside: pixels (n, `FEATURES`) of and around the silhouette, by what the template has there (`_KINDS`).
        near: (2, `_STEPS` + 1) pixels outside and inside of the silhouette by their place against the template's edge.
    """

    inside: tuple[Singles, ...]
    outside: tuple[Singles, ...]
    near: Floats


def lesson(seen: Seen, drawn: Drawn) -> Lesson:
    """Return what a view teaches, given the template that the other cameras ask for."""
    kinds = (drawn.limbs, drawn.body & ~drawn.limbs, ~drawn.body)
    band = ~seen.mask & (seen.depth > -BAND)
    place = _place(_depth(drawn.body, seen.size))
    near = np.stack([np.bincount(place[where], minlength=_STEPS + 1) for where in (band, seen.mask)])
    inside, outside = (tuple(_thinned(seen.rows[where & kind]) for kind in kinds) for where in (seen.mask, band))
    return Lesson(inside, outside, near.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Witnesses:
    """One camera's witnesses.

    Attributes:
        inside, outside: odds that a pixel of (around) the silhouette is the template's, by colours of limbs and of the
            body; None where there were too few to learn.
        near: (`_STEPS` + 1,) odds of a pixel by its place against the template's edge.
    """

    inside: tuple[Colours | None, ...]
    outside: tuple[Colours | None, ...]
    near: Singles

    @classmethod
    def learnt(cls, lessons: Sequence[Lesson]) -> Witnesses:
        """Learn from some frames of a camera."""
        near = 1.0 + sum((one.near for one in lessons), np.zeros((2, _STEPS + 1)))
        logs = np.log(near / near.sum(axis=1, keepdims=True))
        return cls(
            _colours([one.inside for one in lessons]),
            _colours([one.outside for one in lessons]),
            (logs[1] - logs[0]).astype(np.float32),
        )

    def colours(self, seen: Seen) -> Singles:
        """Return (h, w) log odds of each pixel by its colours."""
        rows = seen.rows.reshape(-1, FEATURES)
        mask = seen.mask.ravel()
        odds = np.zeros(len(rows), np.float32)
        for where, known in ((mask, self.inside), (~mask, self.outside)):
            told = [one.odds(rows[where]) for one in known if one is not None]
            if told:
                odds[where] = np.logaddexp.reduce(told) - np.log(len(told))
        return odds.reshape(seen.mask.shape)

    def shape(self, seen: Seen, drawn: Drawn) -> Singles:
        """Return (h, w) log odds of each pixel by where it lies on or beside the template."""
        return np.asarray(self.near[_place(_depth(drawn.body, seen.size))])


def _place(depth: Singles) -> np.ndarray:
    return np.asarray(np.digitize(depth, np.linspace(-_FARTHEST, _FARTHEST, _STEPS)))


def _colours(lessons: Iterable[tuple[Singles, ...]]) -> tuple[Colours | None, ...]:
    limbs, body, other = (np.concatenate(rows) for rows in zip(*lessons, strict=True))
    few = len(other) < LEAST_ROWS
    return tuple(None if few or len(one) < LEAST_ROWS else learnt(one, other) for one in (limbs, body))


def _thinned(rows: Singles) -> Singles:
    return np.ascontiguousarray(rows[:: max(1, -(-len(rows) // MOST_ROWS))])
