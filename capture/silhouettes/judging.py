"""What the views of one frame do to each other's silhouettes: confirm, give back, mend, flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats
from capture.backgrounds.appearance import disc
from capture.recordings.masks import MaskFlag
from capture.silhouettes.cleanup import clean_mask
from capture.silhouettes.difference import FollowingModel, PlateModel
from capture.silhouettes.doubts import Doubt, standing_out
from capture.silhouettes.models import CameraModel, ModelOptions, SittingModel
from capture.silhouettes.preparation import Prepared
from capture.silhouettes.sitting import SITTING_MARGIN, Cut, others_bound, support
from capture.silhouettes.views.confirmation import Floor, confirmed
from capture.silhouettes.views.consensus import consensus
from capture.silhouettes.views.ray_agreement import ray_agreement
from capture.silhouettes.views.restoration import seen_above
from capture.silhouettes.views.two_sided import two_sided

__all__ = ["Share", "frame_agreement", "judge_frame", "mask_flags", "own_margin"]

#: How often silhouettes are held against each other: what one loses, the next may lose, too.
_CONFIRMED = 2
#: Models that find a subject by its difference from the ground take shade and mirror images for it.
_DIFFERENCES = (PlateModel, FollowingModel)
Model = CameraModel | SittingModel | None


@dataclass(eq=False)
class Share:
    """A camera's share of a chunk: masks (n, H, W), flags (n,), and what a sitting subject is cut again from.

    ``images`` are kept where mattes are wanted, ``doubts`` where the other views may tell shade from skin.
    """

    masks: Bools
    flags: NDArray[np.uint16]
    cuts: list[Cut | None]
    images: list[Bytes | None]
    doubts: list[Doubt | None]


def own_margin(model: Model, shape: tuple[int, ...]) -> int:
    """Return the pixels that are added around silhouettes (H, W) of a model unless the user says otherwise."""
    return round(SITTING_MARGIN * max(shape)) if isinstance(model, SittingModel) else 0


def mask_flags(mask: Bools) -> int:
    """Return what a mask says by itself."""
    height, width = mask.shape
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    if w == 0:
        return int(MaskFlag.EMPTY)
    if (w, h) == (width, height) and mask.all():
        return int(MaskFlag.FULL)
    touches = min(x, y) < 2 or x + w > width - 2 or y + h > height - 2
    return int(MaskFlag.TOUCHES_BORDER) if touches else 0


def judge_frame(
    offset: int, shares: Sequence[Share], known: Prepared, rig: Rig | None, options: ModelOptions
) -> Floats:
    """Let the views judge one frame of a chunk: mend its masks and set its flags in place; return the agreement."""
    agreement = np.full(len(shares), np.nan)
    if rig is not None:
        _cut_again(offset, shares, known.models, rig)
        if options.repair:
            _confirm(offset, shares, known, rig)
        verdict = consensus([share.masks[offset] for share in shares], rig, repair=options.repair)
        for index, share in enumerate(shares):
            if verdict.repaired[index]:
                share.masks[offset] = verdict.masks[index]
                share.flags[offset] = mask_flags(share.masks[offset]) | MaskFlag.REPAIRED
            if verdict.contradicted[index]:
                share.flags[offset] |= np.uint16(MaskFlag.CONTRADICTED)
        masks, doubts = [share.masks[offset] for share in shares], [share.doubts[offset] for share in shares]
        agreement = frame_agreement(masks, doubts, known.models, rig, known.floor)
    for share, model in zip(shares, known.models, strict=True):
        margin = own_margin(model, share.masks.shape[1:]) if options.margin_px is None else options.margin_px
        if margin > 0:
            share.masks[offset] = cv2.dilate(share.masks[offset].view(np.uint8), disc(margin)).view(np.bool_)
        share.doubts[offset] = None
    return agreement


def frame_agreement(
    masks: Sequence[Bools], doubts: Sequence[Doubt | None], models: Sequence[Model], rig: Rig, floor: Floor | None
) -> Floats:
    """Return (C,) how the silhouettes (H, W) of a frame agree with the images and each other.

    With each other alone where no model says what differs: masks that are brought, keys, sitting subjects.
    """
    evident: list[tuple[Bools, Bools] | None] = []
    for mask, doubt, model in zip(masks, doubts, models, strict=True):
        if doubt is None or not isinstance(model, CameraModel) or not isinstance(model.model, PlateModel):
            evident.append(None)
            continue
        whole = np.zeros((2, *mask.shape), dtype=bool)
        whole[0][doubt.window], whole[1][doubt.window] = doubt.evident(model.model, model.cleaning)
        evident.append((whole[0], whole[1]))
    scores = two_sided(masks, evident, rig, floor)
    unknown = np.isnan(scores)
    return np.where(unknown, ray_agreement(masks, rig), scores) if unknown.any() else scores


def _confirm(offset: int, shares: Sequence[Share], known: Prepared, rig: Rig) -> None:
    """Take out of the silhouettes that were found by difference what the other views do not confirm, in place."""
    chosen = [isinstance(model, CameraModel) and isinstance(model.model, _DIFFERENCES) for model in known.models]
    if not any(chosen):
        return
    for _ in range(_CONFIRMED):
        seen = confirmed([share.masks[offset] for share in shares], rig, known.floor)
        for share, model, mask, cut in zip(shares, known.models, seen, chosen, strict=True):
            if cut and isinstance(model, CameraModel):
                weak = mask.copy()
                share.masks[offset] = clean_mask(weak, weak, model.cleaning)
    if known.floor is not None:
        _restore(offset, shares, known.models, rig, known.floor)
    for share, cut in zip(shares, chosen, strict=True):
        if cut:
            share.flags[offset] = (share.flags[offset] & MaskFlag.NO_FRAME) | mask_flags(share.masks[offset])


def _restore(offset: int, shares: Sequence[Share], models: Sequence[Model], rig: Rig, floor: Floor) -> None:
    """Give back what looks like shade but stands out, and that the other views see clear of the floor, in place."""
    doubts = [share.doubts[offset] for share in shares]
    masks = [share.masks[offset] for share in shares]
    wide = [mask if doubt is None else doubt.whole(mask) for doubt, mask in zip(doubts, masks, strict=True)]
    for share, model, doubt, seen in zip(shares, models, doubts, seen_above(masks, wide, rig, floor), strict=True):
        plate = model.model if isinstance(model, CameraModel) else None
        if doubt is not None and isinstance(plate, PlateModel) and not plate.states:
            share.masks[offset] = standing_out(doubt, share.masks[offset], seen, plate)


def _cut_again(offset: int, shares: Sequence[Share], models: Sequence[Model], rig: Rig) -> None:
    """Cut sitting subjects again with the support of the other views' first cuts, in place."""
    if len(shares) < 3 or not any(share.cuts[offset] for share in shares):
        return
    before = [share.masks[offset].copy() for share in shares]
    for index, (share, model) in enumerate(zip(shares, models, strict=True)):
        cut = share.cuts[offset]
        if cut is not None and isinstance(model, SittingModel):
            share.masks[offset] = cut.silhouette(model.looks, support(others_bound(before, rig, index)))
            share.flags[offset] = mask_flags(share.masks[offset])
            share.cuts[offset] = None
