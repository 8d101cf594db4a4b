"""Feet that silhouettes lack, looked for in the images: what they look like, and which frames show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Singles
from calibration.foundation.spans import Span
from capture.recordings.recording import Footage
from tracking.adapting.scale_search import Found
from tracking.appearance.feet import TOGETHER, FeetInImages, FootPixels, View
from tracking.appearance.ground import ground_of
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import limbs_of
from tracking.limbs.evidence import LimbEvidence
from tracking.observations.contours import observe
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_trust import images_could_tell, limits_of
from tracking.sequence.track import Track
from vivarig.jobs.footage_images import images_at, images_of
from vivarig.redrawing.learning import Masks

__all__ = ["KnownFeet", "learn_feet", "with_feet"]

LACKING = 0.25
"""Share of the legs in the frames looked at that silhouettes contradict, from which on the images are asked."""
FEWEST = 4
"""Frames in which the subject must be known."""


@dataclass(frozen=True, eq=False)
class KnownFeet:
    """What the parts share: per camera the empty scene (H, W, 3), and what pixels of feet look like in some frames."""

    ground: tuple[Bytes | None, ...]
    pixels: tuple[FootPixels, ...]


def learn_feet(
    footage: Sequence[Footage], masks: Masks, rig: Rig, solver: FrameSolver, found: Sequence[Found]
) -> KnownFeet | None:
    """Learn the looks of a rodent's feet where it is known to be; None where silhouettes do not lack them.

    ``footage`` is that of the rig's cameras, in order.
    """
    if solver.posture is None or len(found) < FEWEST or not any(one.has_images for one in footage):
        return None
    limbs = limbs_of(solver.cage_rig.quads)
    feet = FeetInImages(solver, limbs, rig)
    evidence, wrong = LimbEvidence(solver, limbs), limits_of(limbs.names).search[0]
    silhouettes = [masks(tuple(rig.names), one.frame) for one in found]
    bad = [evidence.sight(observe(seen), one.pose).bad[feet.legs] for one, seen in zip(found, silhouettes, strict=True)]
    if np.mean(np.array(bad) > wrong) < LACKING:
        return None
    grounds: list[Bytes | None] = []
    pixels: list[FootPixels | None] = []
    for camera, one in enumerate(footage):  # one after the other: images are large
        seen = zip(found, images_at(one, [place.frame for place in found]), silhouettes, strict=True)
        shown = [(place, image, m) for place, image, m in seen if image is not None and m[camera].any()]
        if len(shown) < FEWEST:
            grounds.append(None)
            continue
        ground = ground_of([image for _, image, _ in shown], [m[camera] for *_, m in shown])
        for place, image, m in shown:
            view = View(image, m[camera], ground)
            pixels.append(feet.pixels(place.frame, camera, view, m, place.pose, place.latent))
        grounds.append(ground)
    return KnownFeet(tuple(grounds), tuple(one for one in pixels if one is not None))


def with_feet(
    track: Track,
    known: KnownFeet,
    footage: Sequence[Footage],
    masks: Masks,
    solver: FrameSolver,
    rig: Rig,
    at: Span,
) -> Track:
    """Return a track of the frames ``at`` with what the images show of feet that silhouettes leave in doubt.

    Asked are frames in which a foot that is shown would be believed. A part's are judged by colours of frames outside.
    """
    limbs = limbs_of(solver.cage_rig.quads)
    feet = FeetInImages(solver, limbs, rig)
    tracked: Bools = np.asarray(np.isfinite(track.centres).all(axis=(1, 2)))
    told = images_could_tell(track.limb_record, feet.legs, unit=solver.unit, limits=limits_of(limbs.names))
    asked = np.flatnonzero(tracked & told.any(axis=1))
    colours = feet.colours(known.pixels, range(at.first, at.stop))
    if not len(asked) or sum(one is not None for one in colours) < 2:
        return track
    wanted = _legs_around(told & tracked[:, None]) & tracked[:, None]
    rows = np.flatnonzero(wanted.any(axis=1)).tolist()
    scores: dict[int, Singles] = {}
    streams = [images_of(one, [at.first + row for row in rows]) for one in footage]
    for row, *images in zip(rows, *streams, strict=True):
        views = _views(images, masks(tuple(rig.names), at.first + row), known.ground)
        scores[row] = feet.scores(views, colours, QuadPose(track.rotations[row], track.centres[row]), wanted[row])
    shown: Floats = np.full(track.limb_record.bad.shape, np.nan)
    for row in (row for row in asked.tolist() if row in scores):
        together = [scores[k] for k in range(row - TOGETHER, row + TOGETHER + 1) if k in scores]
        seen = feet.shown(np.stack(together), QuadPose(track.rotations[row], track.centres[row]))
        shown[row, feet.legs] = np.where(told[row], seen, np.nan)
    return replace(track, limb_record=replace(track.limb_record, shown=shown))


def _legs_around(told: Bools) -> Bools:
    """(T, legs) legs that are asked for in a frame or in one that is looked at together with it."""
    around = np.zeros_like(told)
    for shift in range(-TOGETHER, TOGETHER + 1):
        rows = np.flatnonzero(told.any(axis=1)) + shift
        kept = (rows >= 0) & (rows < len(told))
        around[rows[kept]] |= told[rows[kept] - shift]
    return around


def _views(
    images: Sequence[Bytes | None], masks: Sequence[Bools], grounds: Sequence[Bytes | None]
) -> list[View | None]:
    views: list[View | None] = []
    for image, mask, ground in zip(images, masks, grounds, strict=True):
        views.append(None if image is None or ground is None else View(image, mask, ground))
    return views
