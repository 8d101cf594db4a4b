"""The models of all cameras of a recording, made and tuned together before the first frame is segmented."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from contextvars import Context, copy_context
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bytes
from calibration.foundation.errors import InputError
from calibration.foundation.once import once
from capture.backgrounds.background import fitting_frames, noise_over, spread_frames, spread_frames_beside, steadied
from capture.backgrounds.belt_scene import BeltScene, BeltView, find_belt_scene
from capture.recordings.recording import Footage
from capture.recordings.seen_frames import SeenFrames
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.models import CameraModel, ModelOptions, SittingModel, SittingSubject, camera_model
from capture.silhouettes.shade import learn_shade
from capture.silhouettes.sitting import learn_sitting
from capture.silhouettes.views.confirmation import Floor
from capture.silhouettes.views.free_ground import free_of_subject, mended_ground
from capture.silhouettes.views.ray_agreement import ray_agreement

__all__ = ["Prepared", "Source", "learn_camera", "prepare_models"]

#: Frames spread over the recording from which models are learnt, and on how many of them the views are compared.
_SAMPLES = 48
_ROUNDS = 2
#: Silhouettes that agree as well as this, on the mean, are of one body: no camera's ground holds much of it. Shade and
#: mirror images are still in them: a mouse that walks has 0.76, people 0.99; a mouse that sits on bedding 0.5 at most.
_ONE_BODY = 0.6
_TUNED = 6
_LARGE_BYTES = 100_000_000


@dataclass(frozen=True, eq=False)
class Source:
    """A light camera of a recording.

    Attributes:
        footage: where its images are.
        frames: how many there are.
        size: (width, height) px.
        offset: its frame number at the recording's frame 0.
        belt: the treadmill under it, where the recording names one.
    """

    footage: Footage
    frames: int
    size: tuple[int, int]
    offset: int
    belt: BeltView | None = None


@dataclass(frozen=True, eq=False)
class Prepared:
    """What is known of a recording before its first frame is segmented.

    Attributes:
        models: one per camera; None where masks are brought.
        floor: the plane that the subject stands on, where it shows.
        belts: the moving belt that each camera sees; none for those that see none.
    """

    models: list[CameraModel | SittingModel | None]
    floor: Floor | None
    belts: tuple[BeltScene | None, ...] = ()

    def belt(self, camera: int) -> BeltScene | None:
        """Return the belt that a camera sees."""
        return self.belts[camera] if self.belts else None


@dataclass(frozen=True, eq=False)
class _Learnt:
    """What one camera shows by itself: its model, None where masks are brought; a few images; the belt it sees."""

    model: CameraModel | SittingSubject | None
    few: list[Bytes]
    belt: BeltScene | None = None


Show = Callable[[SeenFrames, SeenFrames], None]


def learn_camera(
    sources: Sequence[Source],
    camera: int,
    start: int,
    last: int,
    options: ModelOptions,
    beside: Collection[int] = (),
    show: Show = lambda filmed, taken: None,
) -> _Learnt:
    """Learn the model of one camera by itself; made once where steps are kept, so that many workers can.

    ``show`` is shown images of the recording's frames ``beside``, if they came by: as filmed, and as the model takes
    them.
    """
    return once(f"camera {camera}", partial(_learn_camera, sources, camera, start, last, options, beside, show))


def _learn_camera(
    sources: Sequence[Source],
    camera: int,
    start: int,
    last: int,
    options: ModelOptions,
    beside: Collection[int],
    show: Show,
) -> _Learnt:
    if _brought(sources, options)[camera]:
        return _Learnt(None, [])
    source, first, most = sources[camera], _first(sources, start), _most(sources)
    video, begin, end = source.footage.source, first + source.offset, last + source.offset
    found = None if source.belt is None else find_belt_scene(video, source.belt, most, start=begin, stop=end)
    belt: BeltScene | None = None
    others: dict[int, tuple[Bytes, Bytes]] = {}
    if found is not None:
        # Pictures of the empty scene show the belt at other moments.
        source = replace(source, footage=replace(source.footage, background=None))
        belt, images = found
    else:
        asked = [frame + source.offset for frame in beside]
        images, others = spread_frames_beside(video, most, asked, start=begin, stop=end)
    few = images[:: max(1, -(-len(images) // _TUNED))].copy()
    model = camera_model(source.footage, options, images)
    if others:
        filmed, grey = ({index: both[k] for index, both in others.items()} for k in (0, 1))
        as_filmed = SeenFrames(Path(video), filmed, gray=False)
        show(as_filmed, SeenFrames(Path(video), grey, gray=True) if model.grey else as_filmed)
    return _Learnt(model, _as_streamed(few, model), belt)


def _brought(sources: Sequence[Source], options: ModelOptions) -> list[bool]:
    """Return for which cameras masks are brought that are to be used."""
    brought = [source.footage.masks is not None and options.model in ("auto", "masks") for source in sources]
    if options.model == "masks" and not all(brought):
        name = sources[brought.index(False)].footage.name
        raise InputError(f"camera '{name}': the masks model needs masks in recording.toml")
    return brought


def _first(sources: Sequence[Source], start: int) -> int:
    """Return the first frame from ``start`` on that all cameras have."""
    return max([start, *(-source.offset for source in sources)])


def _most(sources: Sequence[Source]) -> int:
    """Return how many frames of a camera are looked at, at most."""
    return min([_SAMPLES, *(fitting_frames(source.size) for source in sources)])


def prepare_models(
    sources: Sequence[Source],
    start: int,
    last: int,
    options: ModelOptions,
    rig: Rig | None,
    pool: Executor,
    on_progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Make the models of all cameras, learnt together where there is a rig.

    ``on_progress``: called with (cameras learnt, cameras in all).
    """
    _brought(sources, options)

    def make(camera: int, where: Context) -> _Learnt:
        return where.run(learn_camera, sources, camera, start, last, options)

    # The images of one large camera are held at a time, of small ones as many as there are threads.
    large = _most(sources) * max(3 * source.size[0] * source.size[1] for source in sources) > _LARGE_BYTES
    contexts = [copy_context() for _ in sources]  # threads know what is kept, too
    made: list[_Learnt] = []
    for one in (map if large else pool.map)(make, range(len(sources)), contexts):
        made.append(one)
        if on_progress is not None:
            on_progress(len(made), len(sources))
    models, few, belts = [one.model for one in made], [one.few for one in made], [one.belt for one in made]
    if rig is not None and len(rig) >= 3 and not any(belts):
        images_of = partial(_spread_images, sources, start, last)
        models = _as_views_know(models, few, rig, images_of, map if large else pool.map)
    if any(isinstance(model, SittingSubject) for model in models):
        return Prepared(_learnt(models, few, rig), None, tuple(belts))
    ready = [model for model in models if isinstance(model, CameraModel)]
    if len(ready) < len(models):
        return Prepared([one if isinstance(one, CameraModel) else None for one in models], None, tuple(belts))
    learnt, floor = learn_shade(ready, few, rig, pool)
    return Prepared(list(learnt), floor, tuple(belts))


def _as_views_know(
    models: Sequence[CameraModel | SittingSubject | None],
    few: Sequence[Sequence[Bytes]],
    rig: Rig,
    images_of: Callable[[int, CameraModel], Bytes],
    mapped: Callable[..., Any],
) -> list[CameraModel | SittingSubject | None]:
    """Return the models of a subject that moves where a camera says that it sits and the views together know better.

    Who comes towards a camera keeps its place there, and looks to that camera like one that sits. One that does sit
    leaves ghosts in every view, which no other view confirms. Where no camera says so, each keeps its own ground: of
    one who boxes on the spot the views say that floor is free which is never seen but in shade.
    """
    if not any(isinstance(model, SittingSubject) for model in models):
        return list(models)
    moving = [model.moving if isinstance(model, SittingSubject) else model for model in models]
    able = [model for model in moving if model is not None and not model.in_order]
    if len(able) < len(models):
        return list(models)
    mended = _mended_by_views(able, rig, images_of, mapped)
    return list(mended) if _agree(mended, few, rig) else list(models)


def _agree(models: Sequence[CameraModel], few: Sequence[Sequence[Bytes]], rig: Rig) -> bool:
    """Return whether the silhouettes that models find in a few images of all cameras are those of one body."""
    cut = [[model.silhouette(image) for image in images] for model, images in zip(models, few, strict=True)]
    found = np.array([ray_agreement(masks, rig) for masks in zip(*cut, strict=False)])
    return bool(np.isfinite(found).any() and np.nanmean(found) >= _ONE_BODY)


def _spread_images(sources: Sequence[Source], start: int, last: int, camera: int, model: CameraModel) -> Bytes:
    """Return images (n, H, W, C) of a camera spread over the recording as its model takes them, under one light."""
    source, first = sources[camera], _first(sources, start)
    video, begin, end = source.footage.source, first + source.offset, last + source.offset
    return steadied(spread_frames(video, _most(sources), start=begin, stop=end, gray=model.grey))


def _mended_by_views(
    models: Sequence[CameraModel], rig: Rig, images_of: Callable[[int, CameraModel], Bytes], mapped: Callable[..., Any]
) -> list[CameraModel]:
    """Return the models with grounds mended, that were found in the recording itself, where the views know better.

    Images are read again for each step: those of all cameras at a time would be the largest thing held.
    """
    found = [model.name == "moving" and isinstance(model.model, PlateModel) for model in models]
    if not any(found):
        return list(models)

    def cut(camera: int, model: CameraModel) -> list[Bytes]:
        images = _as_streamed(images_of(camera, model), model)
        return [np.packbits(model.silhouette(image), axis=1) for image in images]

    def mend(camera: int, model: CameraModel, free: Sequence[Bytes]) -> CameraModel:
        if not found[camera] or not isinstance(model.model, PlateModel):
            return model
        images, plate = images_of(camera, model), model.model
        shows = np.unpackbits(np.stack(free), axis=2, count=images.shape[2]).view(np.bool_)
        ground = mended_ground(plate.background, images[: len(shows)], shows, noise_over(images))
        return replace(model, model=replace(plate, background=ground))

    def free_in(views: Sequence[Bytes]) -> list[Bytes]:
        sizes = [camera.size[0] for camera in rig]
        masks = [np.unpackbits(one, axis=1, count=n).view(np.bool_) for one, n in zip(views, sizes, strict=True)]
        return [np.packbits(one, axis=1) for one in free_of_subject(masks, rig)]

    known = list(models)
    for _ in range(_ROUNDS):
        masks = list(mapped(cut, range(len(known)), known))
        free = list(mapped(free_in, zip(*masks, strict=False)))
        known = list(mapped(mend, range(len(known)), known, zip(*free, strict=True)))
    return known


def _as_streamed(images: Bytes, model: CameraModel | SittingSubject) -> list[Bytes]:
    """Return images (n, H, W, C) as the stream will give them."""
    return [image[:, :, 0] if model.grey or image.shape[2] == 1 else image for image in images]


def _learnt(
    models: Sequence[CameraModel | SittingSubject | None], few: Sequence[Sequence[Bytes]], rig: Rig | None
) -> list[CameraModel | SittingModel | None]:
    """Return the models with sitting subjects learnt. The views support each other if all have silhouettes to show."""
    count = min(len(images) for images in few if images)
    images = [list(some[:count]) for some in few]
    places = [model.place if isinstance(model, SittingSubject) else None for model in models]
    showing = all(model is not None and not (isinstance(model, CameraModel) and model.in_order) for model in models)
    known = [
        [model.silhouette(image) for image in some] if isinstance(model, CameraModel) and showing else []
        for model, some in zip(models, images, strict=True)
    ]
    learnt = learn_sitting(images, places, known, count, rig if showing else None)
    done: list[CameraModel | SittingModel | None] = []
    for model, looks in zip(models, learnt, strict=True):
        if isinstance(model, SittingSubject):
            assert looks is not None
            done.append(SittingModel(looks, model.grey))
        else:
            done.append(model)
    return done
