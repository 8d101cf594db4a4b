"""Silhouettes of a subject that sits, in all views together: looks learnt per camera, and what the others support.

Learning goes in rounds: looks of the current region against what is near it, a graph cut, its outline moved to the
image's edges, the hull of the other views as a prior (`support`), and again. The hull of the others also bounds the
region that looks are learnt from: a view that took the ground for the subject would otherwise learn just that from its
own cut, ever more surely. A frame is cut twice: by its camera's looks alone, then with the support of the other views'
first cuts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Singles
from capture.backgrounds.appearance import AppearanceModel, Surroundings, grey_of, look_tables, looks
from capture.discs import disc, grown
from capture.hull.agreement import mesh_silhouette
from capture.hull.implicit import implicit_hull
from capture.silhouettes.edges.graph_cut import least_cut
from capture.silhouettes.edges.image_edge import brighter_or_darker, on_image_edge
from capture.silhouettes.edges.thin_ends import follow_thin_end

__all__ = ["SITTING_MARGIN", "Cut", "learn_sitting", "others_bound", "support"]

#: Share of the image's longer side added around the silhouettes by default.
SITTING_MARGIN = 0.0025
_ROUNDS = 5
#: Share of the image's longer side that the other silhouettes may lack: they lie on the image's edge to a pixel or two.
_LOOSE = 0.0015
#: Share of the image's longer side that is left to doubt around a silhouette; looks of the ground are learnt from the
#: ring beyond it, this often as wide: ground farther off is lit otherwise.
_DOUBT = 0.01
_LEAST_DOUBT_PX = 8
_RING = 1.5
#: Log odds that the hull of the other views takes outside; px from its edge for inside and outside.
_AGAINST = 1.2
_FOR_PX, _AGAINST_PX = 2, 10
#: Of the ground next to a silhouette the hull is taken to hold this share at least.
_LEAST_COVERED = 0.05
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
        return cls(np.rint(16.0 * model.odds(looks(grey, model.place.change))).astype(np.int16), grey)

    def silhouette(self, model: AppearanceModel, prior: Singles | None = None) -> Bools:
        """Return (H, W) the silhouette, with the other views' log odds (H, W) if given."""
        odds = self.odds.astype(np.float32) / np.float32(16.0)
        if prior is not None:
            odds += prior[model.place.window]
        found = _on_edge(_main_part(least_cut(odds, self.grey), model.place.core), self.grey, model)
        return model.whole(follow_thin_end(found, self.grey))


def _on_edge(mask: Bools, grey: Bytes, model: AppearanceModel) -> Bools:
    """Return a cut (h, w) with its outline on the image's edge; specks that are left of where it was are dropped."""
    return _main_part(on_image_edge(mask, grey, _doubt_px(model.shape), model.sign), mask)


def _main_part(mask: Bools, core: Bools) -> Bools:
    """Return the part of a mask that covers most of the core."""
    count, labels = cv2.connectedComponents(mask.view(np.uint8))
    hits = np.bincount(labels[core & mask], minlength=count)
    hits[0] = 0
    return np.asarray(labels == hits.argmax()) if hits.any() else np.zeros_like(mask)


def others_bound(masks: Sequence[Bools], rig: Rig, index: int) -> Bools | None:
    """Return (H, W) the hull of the other views as a view sees it; None where they have none or it does not see it."""
    others = np.ones(len(masks), dtype=bool)
    others[index] = False
    # Their edges are uncertain too: pixels of theirs, which are more or fewer of this view's.
    loose = [grown(mask, round(_LOOSE * max(mask.shape))) for mask in masks]
    hull = implicit_hull(loose, rig, views=others, sharp=False, score=False)
    if hull.is_empty:
        return None
    drawn = mesh_silhouette(rig[index], hull.vertices, hull.faces)
    return drawn if drawn.any() else None


def support(bound: Bools | None, mask: Bools) -> Singles | None:
    """Return (H, W) what the hull of the other views (`others_bound`) adds to a view's log odds; None without one.

    The subject lies in the hull, and so does a share of the ground around it: the smaller that is next to the
    silhouette (H, W) so far, the more it says that a pixel lies inside. A hull that is open to the side from which this
    view looks says next to nothing.
    """
    if bound is None:
        return None
    near = grown(mask, _doubt_px(mask.shape)) & ~mask
    covered = float(bound[near].mean()) if near.any() else 1.0
    speaks = -np.log(max(covered, _LEAST_COVERED))
    inside = cv2.erode(bound.view(np.uint8), disc(_FOR_PX)).astype(np.float32)
    outside = 1.0 - grown(bound, _AGAINST_PX).astype(np.float32)
    odds = np.float32(speaks) * inside - np.float32(_AGAINST) * outside
    return np.asarray(cv2.GaussianBlur(odds, (0, 0), 1.5), dtype=np.float32)


def _doubt_px(shape: tuple[int, ...]) -> int:
    """Return how far around a silhouette of an image (H, W) is left to doubt, px."""
    return max(_LEAST_DOUBT_PX, round(_DOUBT * max(shape)))


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
        """Learn the looks from the regions and cut all images; return the masks (H, W)."""
        self.model = AppearanceModel(look_tables(self.codes, self.regions, self.near), self.place, self.shape)
        away = cv2.dilate(self.place.lively.view(np.uint8), disc(4)) == 0
        cuts = []
        for codes, grey, prior in zip(self.codes, self.greys, priors, strict=True):
            odds = self.model.odds(codes)
            if first:
                odds[away] -= _AWAY
            if prior is not None:
                odds += prior[self.place.window]
            found = _main_part(least_cut(odds, grey), self.place.core)
            cuts.append(found if found.any() else self.place.core)
        if not first:
            sign = brighter_or_darker(cuts, self.greys, _doubt_px(self.shape))
            self.model = replace(self.model, sign=sign)
            cuts = [_on_edge(cut, grey, self.model) for cut, grey in zip(cuts, self.greys, strict=True)]
        return [self.model.whole(cut) for cut in cuts]

    def settle(self, masks: Sequence[Bools], bounds: Sequence[Bools | None]) -> None:
        """Set the next regions: the masks (H, W) with some doubt around, as far as the others' bounds (H, W) go."""
        doubt = _doubt_px(self.shape)
        for number, (mask, bound) in enumerate(zip(masks, bounds, strict=True)):
            region = grown(mask[self.place.window], doubt)
            if bound is not None:
                bounded = region & grown(bound[self.place.window], doubt)
                region = bounded if bounded.any() else region
            wide = grown(region, round(_RING * doubt))
            self.regions[number], self.near[number] = region, self.place.around & wide & ~region


def _learner(images: Sequence[Bytes], place: Surroundings) -> _Learner:
    greys = [np.ascontiguousarray(grey_of(image)[place.window]) for image in images]
    margin = grown(place.lively, 15)
    count = len(greys)
    shape = (images[0].shape[0], images[0].shape[1])
    codes = [looks(grey, place.change) for grey in greys]
    return _Learner(place, shape, greys, codes, [place.lively] * count, [place.around & ~margin] * count)


def learn_sitting(
    images: Sequence[Sequence[Bytes]],
    places: Sequence[Surroundings | None],
    known: Sequence[Sequence[Bools]],
    count: int,
    rig: Rig | None,
) -> list[AppearanceModel | None]:
    """Learn the looks of a sitting subject in all cameras.

    Args:
        images: per camera, the same few frames; only those of sitting subjects are looked at.
        places: per camera where the subject sits; None: another model segments this camera.
        known: per camera the silhouettes of those frames where another model segments it, else empty.
        count: number of frames.
        rig: the cameras; without one the views do not support each other.
    """
    learners = [None if place is None else _learner(some, place) for some, place in zip(images, places, strict=True)]
    priors: list[list[Singles | None]] = [[None] * count for _ in images]
    for turn in range(_ROUNDS):
        masks = [
            list(known[index]) if learner is None else learner.learn(priors[index], first=turn == 0)
            for index, learner in enumerate(learners)
        ]
        bounds: list[list[Bools | None]] = [[None] * count for _ in images]
        # In the first round thin parts are still missing: the views would take them from each other.
        if rig is not None and len(rig) >= 3 and 0 < turn < _ROUNDS - 1:
            for frame in range(count):
                views = [some[frame] for some in masks]
                for index, learner in enumerate(learners):
                    if learner is not None:
                        bounds[index][frame] = others_bound(views, rig, index)
                        priors[index][frame] = support(bounds[index][frame], views[index])
        for learner, some, bound in zip(learners, masks, bounds, strict=True):
            if learner is not None:
                learner.settle(some, bound)
    return [None if learner is None else learner.model for learner in learners]
