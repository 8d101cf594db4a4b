"""Silhouettes of a subject that sits, in all views together: looks learnt per camera, and what the others support.

Learning goes in rounds: looks of the current region against what is near it, a graph cut, the hull of the other
views as a prior (`support`), and again. A frame is cut twice: by its camera's looks alone, then with the support of
the other views' first cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.arrays import Bools, Bytes, Singles
from calibration.rig import Rig
from capture.background_appearance import AppearanceModel, Surroundings, disc, grey_of, look_tables, looks, surround
from capture.hull.agreement import mesh_silhouette
from capture.hull.implicit import implicit_hull
from capture.silhouettes.graph_cut import least_cut
from capture.silhouettes.thin_ends import follow_thin_end

__all__ = ["SITTING_MARGIN", "Cut", "learn_sitting", "support"]

#: Share of the image's longer side added around the silhouettes by default.
SITTING_MARGIN = 0.003
_ROUNDS = 5
#: Share of the image's longer side that is left to doubt around a silhouette; its surroundings reach this often as far.
_DOUBT = 0.01
_LEAST_DOUBT_PX = 8
_REACH = 4
#: Log odds that the hull of the other views adds inside, and takes outside; px of tolerance for either.
_FOR, _AGAINST = 0.3, 1.2
_FOR_PX, _AGAINST_PX = 2, 10
#: Log odds taken outside the lively region in the first round.
_AWAY = 2.0


@dataclass(frozen=True, eq=False)
class Cut:
    """A sitting subject in one image, before the other views were asked.

    Attributes:
        odds: (h, w) log odds in the model's window, sixteenths.
        grey: (h, w) the image in the window.
    """

    odds: NDArray[np.int16]
    grey: Bytes

    @classmethod
    def of(cls, model: AppearanceModel, image: Bytes) -> Cut:
        """Return the odds of an image (H, W) or (H, W, C)."""
        grey = model.grey(image)
        return cls(np.rint(16.0 * model.odds(looks(grey))).astype(np.int16), grey)

    def silhouette(self, model: AppearanceModel, prior: Singles | None = None) -> Bools:
        """Return (H, W) the silhouette, with the other views' log odds (H, W) if given."""
        odds = self.odds.astype(np.float32) / np.float32(16.0)
        if prior is not None:
            odds += prior[model.place.window]
        return model.whole(follow_thin_end(_main_part(least_cut(odds, self.grey), model.place.core), self.grey))


def _main_part(mask: Bools, core: Bools) -> Bools:
    """Return the part of a mask that covers most of the core."""
    count, labels = cv2.connectedComponents(mask.view(np.uint8))
    hits = np.bincount(labels[core & mask], minlength=count)
    hits[0] = 0
    return np.asarray(labels == hits.argmax()) if hits.any() else np.zeros_like(mask)


def support(masks: Sequence[Bools], rig: Rig, index: int) -> Singles | None:
    """Return (H, W) what the hull of the other views adds to a view's log odds; None where they have no hull."""
    others = np.ones(len(masks), dtype=bool)
    others[index] = False
    hull = implicit_hull(masks, rig, views=others, sharp=False, score=False)
    if hull.is_empty:
        return None
    drawn = mesh_silhouette(rig[index], hull.vertices, hull.faces).view(np.uint8)
    if not drawn.any():
        return None
    inside = cv2.dilate(drawn, disc(_FOR_PX)).astype(np.float32)
    outside = 1.0 - cv2.dilate(drawn, disc(_AGAINST_PX)).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(_FOR * inside - _AGAINST * outside, (0, 0), 1.5), dtype=np.float32)


@dataclass(eq=False)
class _Learner:
    place: Surroundings
    shape: tuple[int, int]
    greys: list[Bytes]
    codes: list[NDArray[np.int32]]
    regions: list[Bools]
    near: list[Bools]
    model: AppearanceModel | None = None

    def learn(self, priors: Sequence[Singles | None], *, first: bool) -> list[Bools]:
        """Learn the looks from the regions, cut all images, set the next regions; return the masks (H, W)."""
        self.model = AppearanceModel(look_tables(self.codes, self.regions, self.near), self.place, self.shape)
        doubt = max(_LEAST_DOUBT_PX, round(_DOUBT * max(self.shape)))
        away = cv2.dilate(self.place.lively.view(np.uint8), disc(4)) == 0
        masks = []
        for number, (codes, grey, prior) in enumerate(zip(self.codes, self.greys, priors, strict=True)):
            odds = self.model.odds(codes)
            if first:
                odds[away] -= _AWAY
            if prior is not None:
                odds += prior[self.place.window]
            found = _main_part(least_cut(odds, grey), self.place.core)
            if not found.any():
                found = self.place.core
            near = cv2.dilate(found.view(np.uint8), disc(doubt)).view(np.bool_)
            wide = cv2.dilate(found.view(np.uint8), disc(_REACH * doubt)).view(np.bool_)
            self.regions[number], self.near[number] = near, self.place.around & wide & ~near
            masks.append(self.model.whole(found))
        return masks


def _learner(images: Sequence[Bytes], region: Bools) -> _Learner:
    place = surround(region)
    greys = [np.ascontiguousarray(grey_of(image)[place.window]) for image in images]
    margin = cv2.dilate(place.lively.view(np.uint8), disc(15)).view(np.bool_)
    count = len(greys)
    shape = (region.shape[0], region.shape[1])
    return _Learner(
        place, shape, greys, [looks(grey) for grey in greys], [place.lively] * count, [place.around & ~margin] * count
    )


def learn_sitting(
    images: Sequence[Sequence[Bytes]],
    regions: Sequence[Bools | None],
    known: Sequence[Sequence[Bools]],
    count: int,
    rig: Rig | None,
) -> list[AppearanceModel | None]:
    """Learn the looks of a sitting subject in all cameras.

    Args:
        images: per camera, the same few frames; only those of sitting subjects are looked at.
        regions: per camera (H, W) the lively region; None: another model segments this camera.
        known: per camera the silhouettes of those frames where another model segments it, else empty.
        count: number of frames.
        rig: the cameras; without one the views do not support each other.
    """
    learners = [
        None if region is None else _learner(some, region) for some, region in zip(images, regions, strict=True)
    ]
    priors: list[list[Singles | None]] = [[None] * count for _ in images]
    for turn in range(_ROUNDS):
        masks = [
            list(known[index]) if learner is None else learner.learn(priors[index], first=turn == 0)
            for index, learner in enumerate(learners)
        ]
        # In the first round thin parts are still missing: the views would take them from each other.
        if rig is not None and len(rig) >= 3 and 0 < turn < _ROUNDS - 1:
            for frame in range(count):
                views = [some[frame] for some in masks]
                for index, learner in enumerate(learners):
                    if learner is not None:
                        priors[index][frame] = support(views, rig, index)
    return [None if learner is None else learner.model for learner in learners]
