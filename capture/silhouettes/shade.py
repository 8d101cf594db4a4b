"""What shadows look like in a scene, and where its floor is, learnt from a few frames of all views.

A pixel that is darker than the background by a factor is shade or subject. How far the hue of shade strays is measured
on darkened pixels that are surely no subject: those that the other views contradict (without a rig: those away from
what is surely the subject). A matt floor keeps its hue to a fraction of the noise, and skin before it is told by
its own; coloured lamps and metal make shades of many hues.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Singles
from capture.discs import grown
from capture.hull.bounds import Box
from capture.hull.implicit import implicit_hull
from capture.silhouettes.difference import FollowingModel, PlateModel
from capture.silhouettes.models import CameraModel
from capture.silhouettes.noise_beside import NearGround, believed_noise, beside, hue_beside, noise_beside
from capture.silhouettes.views.confirmation import SLACK, Floor, confirmed
from capture.silhouettes.views.floor_texture import pixel_at, textured_height

__all__ = ["learn_shade"]

#: The hue limit is this many times the distance within which this share of the shade lies, and within these, sigma.
_TIMES, _SHARE = 2.0, 0.9
_LEAST_LIMIT, _MOST_LIMIT = 3.0, 12.0
#: Pixels of shade that must have been seen; ratios that may be shade of any scene.
_PIXELS = 300
_LIGHTEST = 0.97
#: Pixels along the image's longer side that are looked at, about.
_LOOKED_AT = 640
#: Share of the image's longer side around a silhouette where shade is not looked for.
_CLEAR = 0.01
_ROUNDS = 2
#: The floor is known if half of the hulls' lowest points lie within this share of the subject's height.
_STEADY = 0.35
_BELOW = 0.03
#: Marks on the floor are looked for within this share of the subject's height, and believed within this share of its
#: longest side: who lies down is no smaller.
_REACH, _NEAR = 0.3, 0.12
#: This share of the hull's surface is left below the plane that is clear of shade.
_CLEAR_OF = 0.05


def learn_shade(
    models: Sequence[CameraModel], samples: Sequence[Sequence[Bytes]], rig: Rig | None, pool: Executor
) -> tuple[list[CameraModel], Floor | None]:
    """Return the models with hue limits learnt from images of the same frames per camera, and the floor if it shows."""
    begun, floor = [_as_it_begins(model) for model in models], None
    learnt = begun
    scenes = _empty_scenes(learnt)
    marks: list[float | None] = []
    for _ in range(_ROUNDS):
        masks = list(pool.map(_silhouettes, learnt, samples))
        if rig is not None and len(rig) >= 3:
            frames = [list(views) for views in zip(*masks, strict=False)]
            floor = floor_of(frames, rig, scenes, marks)
            seen = list(pool.map(confirmed, frames, [rig] * len(frames), [floor] * len(frames)))
            masks = [list(views) for views in zip(*seen, strict=True)]
        # Always of the models as they were: what they learnt of noise and hue is not to build upon itself.
        told = list(pool.map(_Told.by, begun, samples, masks))
        times = believed_noise([1.0 if one is None else one.noise for one in told])
        learnt = [_believing(*each) for each in zip(begun, told, times, strict=True)]
    return [_going_on(model, limited) for model, limited in zip(models, learnt, strict=True)], floor


def _as_it_begins(model: CameraModel) -> CameraModel:
    """Return a model that follows its scene as it is at first: looking at some frames must not move it."""
    return replace(model, model=model.model.now()) if isinstance(model.model, FollowingModel) else model


def _going_on(model: CameraModel, limited: CameraModel) -> CameraModel:
    """Return the model with noise and hue limit learnt; one that follows its scene goes on with these."""
    if isinstance(model.model, FollowingModel) and isinstance(limited.model, PlateModel):
        model.model.believe(limited.model.noise_times, limited.model.hue_limit)
        return model
    return limited


def _silhouettes(model: CameraModel, images: Sequence[Bytes]) -> list[Bools]:
    return [model.silhouette(image) for image in images]


@dataclass(frozen=True, eq=False)
class _Told:
    """What images with silhouettes tell of a camera.

    Attributes:
        noise: how many times its noise it has beside what moves.
        ground: within how many sigma most of the ground there keeps its hue.
        shade: how far the hue of shade strays, sigma; 0: none was seen.
    """

    noise: float
    ground: float
    shade: float

    @classmethod
    def by(cls, model: CameraModel, images: Sequence[Bytes], masks: Sequence[Bools]) -> _Told | None:
        """Measure it around silhouettes (H, W) of images; None for models that know no background."""
        plate = model.model
        if not isinstance(plate, PlateModel):
            return None
        hues: list[Singles] = []
        grounds: list[NearGround] = []
        for image, mask in zip(images, masks, strict=False):
            step = max(1, round(max(mask.shape) / _LOOKED_AT))
            measures = away, ratio, hue = plate.shade_measures(image, step)
            clear = ~grown(mask, max(3, round(_CLEAR * max(mask.shape))))
            darker = (ratio > plate.shadow_floor) & (ratio < _LIGHTEST) & (away > model.cleaning.low)
            hues.append(hue[darker & clear[::step, ::step]])
            grounds.append(NearGround.of(measures, beside(mask, model.still), step))
        shade = np.concatenate(hues)
        strays = float(np.quantile(shade, _SHARE)) if len(shade) >= _PIXELS else 0.0
        # In grey a codec's noise counts as shade as it is; to believe in more of it only loses limbs.
        grey = plate.background.centre.shape[2] == 1 and plate.shadow_floor < 1.0
        noise = 1.0 if grey else noise_beside(grounds, model.cleaning.low)
        return cls(noise, hue_beside(grounds), strays)


def _believing(model: CameraModel, told: _Told | None, times: float) -> CameraModel:
    """Return a model with so many times its noise, and with the hue limit of its shade."""
    plate = model.model
    if told is None or not isinstance(plate, PlateModel):
        return model
    if plate.background.centre.shape[2] > 1 and plate.shadow_floor < 1.0:
        plate = replace(plate, hue_limit=_hue_limit(told, times))
    return replace(model, model=plate.noisier(times))


def _hue_limit(told: _Told, times: float) -> float:
    """Return how far the hue of shade may stray where the noise is believed to be so many times what it was.

    Ground that keeps its hue better than it keeps its light needs less room for it.
    """
    least = float(np.clip(_TIMES * told.ground, _LEAST_LIMIT, _LEAST_LIMIT * times))
    return float(np.clip(_TIMES * told.shade, least, _MOST_LIMIT)) / times


def _empty_scenes(models: Sequence[CameraModel]) -> list[Singles]:
    """Return the empty scenes (H, W, C) of all cameras; none if a model has none."""
    plates = [model.model for model in models]
    scenes = [plate.background.centre for plate in plates if isinstance(plate, PlateModel)]
    return scenes if len(scenes) == len(models) else []


def floor_of(
    frames: Sequence[Sequence[Bools]],
    rig: Rig,
    scenes: Sequence[Singles] = (),
    marks: list[float | None] | None = None,
) -> Floor | None:
    """Return the floor that the subject stands on in most of some frames' silhouettes; None if it does not show.

    Floors are planes of constant z, below (or, where z points down, above) the subject, on whose side the cameras are.
    Silhouettes hold shade and mirror images at the feet, or lack these; so marks on the floor in the empty ``scenes``
    (H, W, C) of the rig's cameras say how high it is, if they show. ``marks``: how high they were found to be before;
    filled where that is not known yet.
    """
    hulls = [implicit_hull(list(masks), rig, sharp=False, score=False) for masks in frames]
    hulls = [hull for hull in hulls if not hull.is_empty]
    levels = [0.01, _CLEAR_OF, 1.0 - _CLEAR_OF, 0.99]
    spans = np.array([np.quantile(hull.vertices[:, 2], levels) for hull in hulls])
    if len(spans) < 3:
        return None
    height = float(np.median(spans[:, 3] - spans[:, 0]))
    sides = [np.ptp(np.quantile(hull.vertices, (levels[0], levels[3]), axis=0), axis=0).max() for hull in hulls]
    cameras = np.array([camera.centre[2] for camera in rig])
    for up, ends, clear in ((1, spans[:, 0], spans[:, 1]), (-1, -spans[:, 3], -spans[:, 2])):
        near, middle, far = np.quantile(ends, [0.25, 0.5, 0.75])
        if (up * cameras > middle).all() and far - near < _STEADY * height:
            corners = np.concatenate([hull.vertices[:, :2] for hull in hulls])
            lowest = up * float(near)
            low, high = (np.append(side(corners, axis=0), lowest) for side in (np.min, np.max))
            area, near = Box(low, high), _NEAR * float(np.median(sides))
            marked = _marked_height(scenes, rig, area, (_REACH * height, near), [] if marks is None else marks)
            level = lowest - up * _BELOW * height if marked is None else marked - up * _slack(rig, area)
            return Floor(level, up, up * float(np.median(clear)), np.nan if marked is None else marked)
    return None


def _marked_height(
    scenes: Sequence[Singles], rig: Rig, area: Box, within: tuple[float, float], marks: list[float | None]
) -> float | None:
    """Return the z of the marks on the floor, if they show about where a subject is lowest.

    ``within``: how far from there they are looked for, and believed, mm.
    """
    reach, near = within
    if not marks:  # looked for once: the scenes stay the same, whatever is found of the subject
        marks.append(textured_height(scenes, rig, area, reach) if scenes else None)
    found = marks[0]
    return found if found is not None and abs(found - float(area.centre[2])) < near else None


def _slack(rig: Rig, area: Box) -> float:
    """Return the distance by which views may miss each other, mm."""
    return SLACK * max(max(camera.size) for camera in rig) * pixel_at(rig, area)
