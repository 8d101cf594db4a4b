"""Whether the images show a rodent's feet where the track puts them, silhouettes or not.

Silhouettes lose feet: bare skin before a pale floor looks like shade of it. What a foot looks like in a camera is
learnt from the recording: from some frames in which the template stands roughly, fitted without that camera, so that
nothing confirms itself; a frame is judged by colours of other frames. Then the foot is moved about: if few places
around show skin as well as its own, in the cameras together, and two cameras by themselves say so too, it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from capture.backgrounds.background import light_gain
from tracking.appearance.colours import FEATURES, Colours, described, learnt
from tracking.appearance.ground import extent, grown
from tracking.fitting.pale_parts import pale_vertices
from tracking.fitting.solver import FrameSolver
from tracking.limbs.chains import Limbs
from tracking.limbs.drawing import projected
from tracking.limbs.feet_apart import in_one_place
from tracking.observations.contours import observe
from tracking.observations.rasteriser import fill_triangles
from tracking.quads.oriented_quads import QuadPose

__all__ = ["TOGETHER", "FeetInImages", "FootPixels", "View", "shown_share"]

REACH, STEP = 170.0, 34.0
"""How far around a foot other places are tried, and how far apart, thousandths of the size."""
TOGETHER = 2
"""Frames before and after whose images are looked at together."""
POINTS = 24
"""Points of a foot that are looked at."""
ROOM = 0.4
"""Room around the silhouette that is looked at, share of its extent."""
NEAR, FAR, CLEAR = 0.05, 0.25, 0.06
"""Ground to learn from lies within this share of the extent of the template's outline, and clear of its feet."""
MOST_ROWS = 1500
"""Pixels of each kind that are kept of one camera's frame."""
MOST_ODDS = 3.0
_LOOKED_AT = 12_000
"""Pixels of an image that its light is measured by."""
LEAST_ROWS = 100
"""Pixels of feet in a camera below which its colours say nothing."""
SEEN, VIEW_SHARE, VIEWS = 0.5, 0.3, 2
"""Odds at a foot, and share of better places, from which on a camera by itself shows it; and how many must."""


@dataclass(frozen=True, eq=False)
class View:
    """One camera's image (H, W, 3), its silhouette (H, W), and the empty scene (H, W, 3)."""

    image: Bytes
    mask: Bools
    ground: Bytes

    def window(self) -> tuple[slice, slice]:
        """Return the rows and columns around the silhouette that are looked at."""
        room = round(ROOM * extent(self.mask))
        x, y, width, height = cv2.boundingRect(self.mask.view(np.uint8))
        return slice(max(y - room, 0), y + height + room), slice(max(x - room, 0), x + width + room)

    def described(self, window: tuple[slice, slice]) -> Singles:
        """Return (h, w, `FEATURES`) what the pixels of a window look like."""
        step = max(1, int(np.sqrt(self.mask.size / _LOOKED_AT)))
        some, then = (np.ascontiguousarray(one[::step, ::step]) for one in (self.image, self.ground))
        light = light_gain(some, then.astype(np.float32)).astype(np.float32)
        ground: Singles = self.ground[window].astype(np.float32) * light
        outside = ~grown(np.ascontiguousarray(self.mask[window]), NEAR)  # the window holds all of it, with room
        return described(self.image[window], ground, outside, 0.12 * extent(self.mask))


@dataclass(frozen=True, eq=False)
class FootPixels:
    """Pixels (n, `FEATURES`) of one camera's frame where the template of the other cameras has feet, and of ground."""

    frame: int
    view: int
    feet: Singles
    ground: Singles


class FeetInImages:
    """Looks for the feet of one solver's template in images; made for rodents alone."""

    def __init__(self, solver: FrameSolver, limbs: Limbs, rig: Rig) -> None:
        self._solver, self._rig, self._cameras = solver, rig, rig.packed()
        template = solver.coarse
        pale = pale_vertices(solver.cage_rig.quads, template.binding)
        assert pale is not None
        owner = limbs.of_points(template.binding)
        self._binding, self._faces = template.binding, np.ascontiguousarray(template.faces)
        self._bare = pale[self._faces].all(axis=1)
        self.legs: Ints = np.array([k for k, name in enumerate(limbs.names) if name.endswith("_limb")], np.int64)
        self._points = [_some(np.flatnonzero(pale & (owner == leg))) for leg in self.legs]
        steps = np.arange(-REACH, REACH + 1.0, STEP)
        around = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
        away = np.linalg.norm(around, axis=1)
        # (P, 3) places, the foot's own first
        self._places: Floats = (around[np.argsort(away, kind="stable")] * solver.unit)[: int((away <= REACH).sum())]

    def pixels(
        self, frame: int, index: int, view: View, masks: Sequence[Bools], pose: QuadPose, latent: Floats
    ) -> FootPixels | None:
        """Return pixels of one camera to learn from, by the template fitted to the others' silhouettes (H, W)."""
        others = observe(list(masks), used=np.arange(len(masks)) != index)
        if others.seen < 2 or not view.mask.any():
            return None
        fit = self._solver.fit(others, pose, latent, latent_steps=False, last_steps=3)
        body, feet = self._drawn(fit.pose, self._rig.cameras[index])
        window = view.window()
        body, feet, mask = body[window], feet[window], view.mask[window]
        size = extent(view.mask)
        off, clear = (cv2.distanceTransform((~one).view(np.uint8), cv2.DIST_L2, 5) / size for one in (body, feet))
        around = ~mask & (off > NEAR) & (off < FAR) & (clear > CLEAR)
        rows = view.described(window)
        return FootPixels(frame, index, _thinned(rows[feet & ~mask]), _thinned(rows[around]))

    def colours(self, known: Sequence[FootPixels], beside: range) -> list[Colours | None]:
        """Learn each camera's colours from frames that are not ``beside``; None where there are too few feet."""
        learned: list[Colours | None] = []
        for view in range(len(self._rig)):
            used = [one for one in known if one.view == view and one.frame not in beside]
            feet, ground = sum(len(one.feet) for one in used), sum(len(one.ground) for one in used)
            if min(feet, ground) < LEAST_ROWS:
                learned.append(None)
                continue
            learned.append(learnt(np.concatenate([u.feet for u in used]), np.concatenate([u.ground for u in used])))
        return learned

    def scores(
        self, views: Sequence[View | None], colours: Sequence[Colours | None], pose: QuadPose, asked: Bools
    ) -> Singles:
        """Return (legs, C, P) how much each camera sees of skin in each place of each foot; NaN where it says nothing.

        NaN, too, for legs that are not ``asked`` (legs,) for.

        Within the silhouette, where fur covers a foot or a foot stands before fur, nothing is said; at its rim nothing
        is said against a foot.
        """
        out = np.full((len(self.legs), len(views), len(self._places)), np.nan, np.float32)
        vertices = self._solver.cage_rig.deform(self._binding, pose)
        for index, (view, colour) in enumerate(zip(views, colours, strict=True)):
            if view is None or colour is None or not view.mask.any():
                continue
            window = view.window()
            rows = view.described(window)
            odds = colour.odds(rows.reshape(-1, FEATURES)).reshape(rows.shape[:2])
            odds = np.clip(cv2.GaussianBlur(odds, (0, 0), 0.8), -MOST_ODDS, MOST_ODDS)
            mask = view.mask[window]
            deep = cv2.erode(mask.view(np.uint8), np.ones((5, 5), np.uint8)).view(np.bool_)
            odds = np.where(mask, np.where(deep, 0.0, np.maximum(odds, 0.0)), odds).astype(np.float32)
            corner = np.array([window[1].start, window[0].start], np.float64)
            for leg, points in enumerate(self._points):
                if not asked[leg]:
                    continue
                tried = vertices[points][None] + self._places[:, None]
                at = (projected(tried.reshape(-1, 3), self._cameras[index]) - corner).astype(np.float32)
                at = np.nan_to_num(at, nan=-1.0).reshape(len(self._places), -1, 2)
                seen = cv2.remap(odds, at, None, cv2.INTER_LINEAR, borderValue=-MOST_ODDS)
                out[leg, index] = seen.mean(axis=1)
        return out

    def shown(self, scores: Singles, pose: QuadPose) -> Floats:
        """Return (legs,) the share of places that show a foot of a pose better than its own; see `shown_share`.

        1 for feet that stand in one place: of a paw in the images nobody knows whose it is.
        """
        vertices = self._solver.cage_rig.deform(self._binding, pose)
        feet = np.array([vertices[points].mean(axis=0) for points in self._points])
        return np.where(in_one_place(feet, self._solver.unit), 1.0, shown_share(scores))

    def _drawn(self, pose: QuadPose, camera: Camera) -> tuple[Bools, Bools]:
        """Return (H, W) the template and its feet as a camera would see them."""
        pixels = np.ascontiguousarray(camera.project(self._solver.cage_rig.deform(self._binding, pose)), np.float64)
        drawings = []
        for faces in (self._faces, np.ascontiguousarray(self._faces[self._bare])):
            image = np.zeros((camera.size[1], camera.size[0]), np.uint8)
            fill_triangles(pixels, faces, 1, image)
            drawings.append(image.view(np.bool_))
        return drawings[0], drawings[1]


def shown_share(scores: Singles) -> Floats:
    """Return (legs,) the share of places that show a foot better than its own; 1 where too few cameras show it.

    ``scores`` (frames, legs, C, P) of frames that are looked at together, the own place first.
    """
    known = np.isfinite(scores)
    mean = np.where(known, scores, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    own = mean[:, :, :1]
    sure = (own[:, :, 0] > SEEN) & ((mean > own).mean(axis=2) < VIEW_SHARE)
    total = mean.sum(axis=1)
    share = (total > total[:, :1]).mean(axis=1)
    return np.where(sure.sum(axis=1) >= VIEWS, share, 1.0)


def _some(indices: Ints) -> Ints:
    return indices[:: max(1, -(-len(indices) // POINTS))]


def _thinned(rows: Singles) -> Singles:
    return np.ascontiguousarray(rows[:: max(1, -(-len(rows) // MOST_ROWS))])
