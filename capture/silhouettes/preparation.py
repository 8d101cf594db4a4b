"""The models of all cameras of a recording, made and tuned together before the first frame is segmented."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bytes
from calibration.foundation.errors import InputError
from capture.backgrounds.background import fitting_frames, spread_frames
from capture.backgrounds.belt_scene import BeltScene, BeltView, find_belt_scene
from capture.recordings.recording import Footage
from capture.silhouettes.models import CameraModel, ModelOptions, SittingModel, SittingSubject, camera_model
from capture.silhouettes.shade import learn_shade
from capture.silhouettes.sitting import learn_sitting
from capture.silhouettes.views.confirmation import Floor

__all__ = ["Prepared", "Source", "prepare_models"]

#: Frames spread over the recording from which models are learnt, and on how many of them the views are compared.
_SAMPLES = 48
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


def prepare_models(
    sources: Sequence[Source], start: int, last: int, options: ModelOptions, rig: Rig | None, pool: Executor
) -> Prepared:
    """Make the models of all cameras, learnt together where there is a rig."""
    brought = [source.footage.masks is not None and options.model in ("auto", "masks") for source in sources]
    if options.model == "masks" and not all(brought):
        name = sources[brought.index(False)].footage.name
        raise InputError(f"camera '{name}': the masks model needs masks in recording.toml")

    first = max([start, *(-source.offset for source in sources)])
    most = min([_SAMPLES, *(fitting_frames(source.size) for source in sources)])

    belts: list[BeltScene | None] = [None] * len(sources)

    def make(index: int) -> tuple[CameraModel | SittingSubject | None, list[Bytes]]:
        if brought[index]:
            return None, []
        source = sources[index]
        video, begin, end = source.footage.source, first + source.offset, last + source.offset
        found = None if source.belt is None else find_belt_scene(video, source.belt, most, start=begin, stop=end)
        if found is not None:
            # Pictures of the empty scene show the belt at other moments.
            source = replace(source, footage=replace(source.footage, background=None))
            belts[index], images = found
        else:
            images = spread_frames(video, most, start=begin, stop=end)
        few = images[:: max(1, -(-len(images) // _TUNED))].copy()
        model = camera_model(source.footage, options, images)
        return model, _as_streamed(few, model)

    # The images of one large camera are held at a time, of small ones as many as there are threads.
    large = most * max(3 * width * height for width, height in (source.size for source in sources)) > _LARGE_BYTES
    made = list(map(make, range(len(sources))) if large else pool.map(make, range(len(sources))))
    models, few = [model for model, _ in made], [images for _, images in made]
    if any(isinstance(model, SittingSubject) for model in models):
        return Prepared(_learnt(models, few, rig), None, tuple(belts))
    ready = [model for model in models if isinstance(model, CameraModel)]
    if len(ready) < len(models) or any(model.in_order for model in ready):
        return Prepared([one if isinstance(one, CameraModel) else None for one in models], None, tuple(belts))
    learnt, floor = learn_shade(ready, few, rig, pool)
    return Prepared(list(learnt), floor, tuple(belts))


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
