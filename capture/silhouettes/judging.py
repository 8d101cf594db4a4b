"""What the views of one frame do to each other's silhouettes: confirm, give back, mend, flag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.image_changes import cropped
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats
from capture.backgrounds.background import Background
from capture.discs import disc
from capture.mask_boxes import box_of
from capture.recordings.masks import MaskFlag
from capture.silhouettes.cleanup import Holes, clean_mask_and_holes, holes_of
from capture.silhouettes.difference import FollowingModel, PlateModel
from capture.silhouettes.doubts import Doubt, standing_out
from capture.silhouettes.edges.hats import ThinParts, thin_structures
from capture.silhouettes.gaps import without_gaps
from capture.silhouettes.models import CameraModel, ModelOptions, SittingModel
from capture.silhouettes.preparation import Prepared
from capture.silhouettes.sitting import SITTING_MARGIN, Cut, others_bound, support
from capture.silhouettes.views.confirmation import Floor, confirmed
from capture.silhouettes.views.consensus import consensus
from capture.silhouettes.views.floor_light import Picture, lit_alike, lit_otherwise
from capture.silhouettes.views.lines_of_sight import Frame, Scene
from capture.silhouettes.views.ray_agreement import ray_agreement
from capture.silhouettes.views.restoration import seen_above
from capture.silhouettes.views.thin_parts import with_thin_parts
from capture.silhouettes.views.two_sided import two_sided

__all__ = ["Share", "frame_agreement", "judge_frame", "mask_flags", "own_margin"]

#: How often silhouettes are held against each other: what one loses, the next may lose, too; if it is this share.
_CONFIRMED, _LOST = 2, 0.005
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


def mask_flags(mask: Bools, window: tuple[slice, slice] | None = None) -> int:
    """Return what a mask says by itself; ``window``: rows and columns that hold all of it."""
    height, width = mask.shape
    x, y, w, h = box_of(mask, window)
    if w == 0:
        return int(MaskFlag.EMPTY)
    if (w, h) == (width, height) and mask.all():
        return int(MaskFlag.FULL)
    touches = min(x, y) < 2 or x + w > width - 2 or y + h > height - 2
    return int(MaskFlag.TOUCHES_BORDER) if touches else 0


@dataclass(eq=False)
class _CloseViews:
    """The views of one frame, each cut to where its subject is: the cost follows the subject's size, not the image's.

    ``masks`` (h, w) of windows of the images, ``rig`` the cameras of these, ``frames`` those of whole images, ``side``
    the longer side of these, px.
    """

    masks: list[Bools]
    doubts: Sequence[Doubt | None]
    windows: list[tuple[slice, slice]]
    rig: Rig
    frames: list[Frame]
    side: int

    @classmethod
    def of(cls, masks: Sequence[Bools], doubts: Sequence[Doubt | None], rig: Rig) -> _CloseViews:
        """Cut masks (H, W) and cameras to the windows of the doubts; views without one stay whole."""
        windows, cameras, frames, side = [], [], [], 1
        for mask, doubt, camera in zip(masks, doubts, rig, strict=True):
            height, width = mask.shape
            rows, columns = (slice(0, height), slice(0, width)) if doubt is None else doubt.window
            size = (columns.stop - columns.start, rows.stop - rows.start)
            whole = size == (width, height)
            cameras.append(camera if whole else cropped(camera, (columns.start, rows.start), size))
            frames.append((camera, (columns.start, rows.start)))
            windows.append((rows, columns))
            side = max(side, height, width)
        parts = [np.ascontiguousarray(mask[window]) for mask, window in zip(masks, windows, strict=True)]
        return cls(parts, doubts, windows, Rig(tuple(cameras)), frames, side)


def judge_frame(
    offset: int, shares: Sequence[Share], known: Prepared, rig: Rig | None, options: ModelOptions
) -> Floats:
    """Let the views judge one frame of a chunk: mend its masks and set its flags in place; return the agreement."""
    agreement = np.full(len(shares), np.nan)
    if rig is not None:
        _cut_again(offset, shares, known.models, rig)
        views = _CloseViews.of(
            [share.masks[offset] for share in shares], [share.doubts[offset] for share in shares], rig
        )
        scene, changed = Scene.of(views.masks, views.rig, views.frames), np.zeros(len(shares), dtype=bool)
        if options.repair:
            scene, changed = _confirm(views, known, scene)
        verdict = consensus(views.masks, views.rig, repair=options.repair, scene=scene)
        views.masks = verdict.masks
        for index, share in enumerate(shares):
            if changed[index] or verdict.repaired[index]:
                share.masks[offset][views.windows[index]] = views.masks[index]
                share.flags[offset] = (share.flags[offset] & MaskFlag.NO_FRAME) | mask_flags(
                    share.masks[offset], views.windows[index]
                )
            if verdict.repaired[index]:
                share.flags[offset] |= np.uint16(MaskFlag.REPAIRED)
            if verdict.contradicted[index]:
                share.flags[offset] |= np.uint16(MaskFlag.CONTRADICTED)
        agreement = _agreement(views, known.floor, scene)
    for share, model in zip(shares, known.models, strict=True):
        margin = own_margin(model, share.masks.shape[1:]) if options.margin_px is None else options.margin_px
        if margin > 0:
            share.masks[offset] = cv2.dilate(share.masks[offset].view(np.uint8), disc(margin)).view(np.bool_)
        share.doubts[offset] = None
    return agreement


def frame_agreement(masks: Sequence[Bools], doubts: Sequence[Doubt | None], rig: Rig, floor: Floor | None) -> Floats:
    """Return (C,) how the silhouettes (H, W) of a frame agree with the images and each other.

    With each other alone where no model says what differs: masks that are brought, keys, sitting subjects.
    """
    views = _CloseViews.of(masks, doubts, rig)
    return _agreement(views, floor, Scene.of(views.masks, views.rig, views.frames))


def _agreement(views: _CloseViews, floor: Floor | None, scene: Scene) -> Floats:
    evident: list[tuple[Bools, Bools] | None] = []
    for mask, doubt in zip(views.masks, views.doubts, strict=True):
        evident.append(None if doubt is None else doubt.evident(mask))
    scores = two_sided(views.masks, evident, views.rig, floor, views.side, scene)
    unknown = np.isnan(scores)
    return np.where(unknown, ray_agreement(views.masks, views.rig, scene), scores) if unknown.any() else scores


def _confirm(views: _CloseViews, known: Prepared, scene: Scene) -> tuple[Scene, Bools]:
    """Take out of the silhouettes that were found by difference what the other views do not confirm, in place.

    What looks like shade and is none is given back. Returns the scene of what is left, and (C,) which they are.
    """
    chosen = [isinstance(model, CameraModel) and isinstance(model.model, _DIFFERENCES) for model in known.models]
    if not any(chosen):
        return scene, np.array(chosen)
    holes: list[Holes | None] = [None] * len(views.masks)

    def elsewhere(index: int) -> Bools | None:
        doubt = views.doubts[index]
        return doubt.beyond & ~views.masks[index] if chosen[index] and doubt is not None else None

    for _ in range(_CONFIRMED):
        seen = confirmed(views.masks, views.rig, known.floor, views.side, scene, elsewhere)
        lost = 0.0
        for index, (model, mask, cut) in enumerate(zip(known.models, seen, chosen, strict=True)):
            if cut and isinstance(model, CameraModel):
                before = int(np.count_nonzero(views.masks[index]))
                doubt = views.doubts[index]
                plain = doubt.plain if doubt is not None and model.filmed else None
                views.masks[index], holes[index] = clean_mask_and_holes(mask, model.cleaning, plain)
                lost = max(lost, 1.0 - int(np.count_nonzero(views.masks[index])) / max(1, before))
        if lost < _LOST:
            break
    if known.floor is not None:
        scene = _restore(views, known.models, known.floor, holes)
    return scene, np.array(chosen)


def _restore(views: _CloseViews, models: Sequence[Model], floor: Floor, holes: Sequence[Holes | None]) -> Scene:
    """Give back what looks like shade and what is missing from the middle, where the other views have it, in place.

    ``holes``: of the masks, None where they are not known. Returns the scene of all that differs.
    """
    wide = []
    for doubt, mask, known in zip(views.doubts, views.masks, holes, strict=True):
        wide.append(mask if doubt is None else doubt.whole(mask, known or holes_of(mask)))
    scene = Scene.of(wide, views.rig, views.frames)
    # Where an empty scene was filmed the ground is known, and most that a gap shows there is contact shadow.
    filmed = [isinstance(model, CameraModel) and model.filmed for model in models]
    bare = _no_shade(views, wide, floor) if all(filmed) else None
    asked = np.logical_not(filmed).tolist()
    seen, inside = seen_above(views.masks, wide, views.rig, floor, views.side, scene, asked, bare)
    for index, doubt in enumerate(views.doubts):
        if doubt is not None and filmed[index]:
            views.masks[index] = standing_out(doubt, views.masks[index], seen[index])
        elif doubt is not None:
            views.masks[index] = without_gaps(doubt, views.masks[index], seen[index], inside[index])
    if all(filmed):
        return scene  # what is thin is looked for without an empty scene alone
    thin = [_thin(model, doubt, mask) for model, doubt, mask in zip(models, views.doubts, views.masks, strict=True)]
    if any((part.thin | part.broad).any() for part in thin):
        thin = _without_shade(views, thin, floor)
        views.masks = with_thin_parts(views.masks, thin, views.rig, floor, views.side, views.frames)
    return scene


def _no_shade(views: _CloseViews, wide: Sequence[Bools], floor: Floor) -> list[Bools] | None:
    """Return (h, w) what differs and is not lit as the floor behind it; None where floor or light are not known."""
    pictures = _pictures(views, floor)
    if pictures is None:
        return None
    asked = [differs & ~mask for differs, mask in zip(wide, views.masks, strict=True)]
    return lit_otherwise(asked, views.masks, pictures, views.frames, floor.marks)


def _without_shade(views: _CloseViews, parts: Sequence[ThinParts], floor: Floor) -> list[ThinParts]:
    """Return thin parts without what is only dark and lit as the floor behind it: where shades cross they are thin."""
    pictures = _pictures(views, floor)
    if pictures is None:
        return list(parts)
    asked = [part.dark & ~mask for part, mask in zip(parts, views.masks, strict=True)]
    shade = lit_alike(asked, views.masks, pictures, views.frames, floor.marks)
    return [replace(part, dark=part.dark & ~lit) for part, lit in zip(parts, shade, strict=True)]


def _pictures(views: _CloseViews, floor: Floor) -> list[Picture] | None:
    """Return the images and empty scenes of all views; None where the floor's marks or an empty scene are not known."""
    if not np.isfinite(floor.marks):
        return None
    pictures = []
    for doubt in views.doubts:
        if doubt is None:
            return None
        pictures.append(Picture(doubt.image, doubt.ground.centre, doubt.light.astype(np.float32), doubt.corner))
    return pictures


def _thin(model: Model, doubt: Doubt | None, mask: Bools) -> ThinParts:
    """Return what is thin around a silhouette found without an empty scene, in colour: paws, a tail.

    In grey nothing parts the sharp shadow of a tail or a leg from these.
    """
    plate = model.model if isinstance(model, CameraModel) and not model.filmed else None
    if doubt is None or not isinstance(plate, PlateModel) or doubt.image.shape[2] == 1 or not mask.any():
        return ThinParts.none(mask.shape)
    ground = Background(plate.background.centre[doubt.window], plate.background.spread[doubt.window])
    return thin_structures(doubt.image, ground, doubt.light, doubt.wide, mask, plate.smooth[doubt.window])


def _cut_again(offset: int, shares: Sequence[Share], models: Sequence[Model], rig: Rig) -> None:
    """Cut sitting subjects again with the support of the other views' first cuts, in place."""
    if len(shares) < 3 or not any(share.cuts[offset] for share in shares):
        return
    before = [share.masks[offset].copy() for share in shares]
    for index, (share, model) in enumerate(zip(shares, models, strict=True)):
        cut = share.cuts[offset]
        if cut is not None and isinstance(model, SittingModel):
            share.masks[offset] = cut.silhouette(model.looks, support(others_bound(before, rig, index), before[index]))
            share.flags[offset] = mask_flags(share.masks[offset])
            share.cuts[offset] = None
