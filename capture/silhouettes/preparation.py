"""The models of all cameras of a recording, made and tuned together before the first frame is segmented."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bytes
from calibration.foundation.errors import InputError
from capture.recordings.recording import Footage
from capture.recordings.video import read_frames
from capture.silhouettes.models import CameraModel, ModelOptions, SittingModel, SittingSubject, camera_model
from capture.silhouettes.sitting import learn_sitting
from capture.silhouettes.tuning import tune

__all__ = ["Source", "prepare_models"]

#: Frames spread over the recording from which models learn what moves, and on how many of them they are tuned.
_SAMPLES = 12
_TUNED = 4
#: Samples are taken from this many frames at most: reading them means decoding what lies between.
_MOST_FRAMES = 2000


@dataclass(frozen=True, eq=False)
class Source:
    """A light camera of a recording.

    Attributes:
        footage: where its images are.
        frames: how many there are.
        size: (width, height) px.
        offset: its frame number at the recording's frame 0.
    """

    footage: Footage
    frames: int
    size: tuple[int, int]
    offset: int


def prepare_models(
    sources: Sequence[Source], start: int, last: int, options: ModelOptions, rig: Rig | None, pool: Executor
) -> list[CameraModel | SittingModel | None]:
    """Make the models of all cameras, tuned to each other where there is a rig; None where masks are brought."""
    brought = [source.footage.masks is not None and options.model in ("auto", "masks") for source in sources]
    if options.model == "masks" and not all(brought):
        name = sources[brought.index(False)].footage.name
        raise InputError(f"camera '{name}': the masks model needs masks in recording.toml")
    step = max(1, -(-min(last - start, _MOST_FRAMES) // _SAMPLES))

    def sampled(index: int) -> list[Bytes]:
        if brought[index]:
            return []
        source = sources[index]
        begin = max(0, start + source.offset)
        end = min(begin + min(last - start, _MOST_FRAMES), source.frames)
        return [image for _, image in read_frames(source.footage.source, begin, end, step, ahead=False)]

    def make(index: int) -> CameraModel | SittingSubject | None:
        if brought[index]:
            return None
        return camera_model(sources[index].footage, sources[index].frames, options, samples[index])

    samples = list(pool.map(sampled, range(len(sources))))
    models = list(pool.map(make, range(len(sources))))
    few = [_few(images, model) for images, model in zip(samples, models, strict=True)]
    if any(isinstance(model, SittingSubject) for model in models):
        return _learnt(models, few, rig)
    ready = [model for model in models if isinstance(model, CameraModel)]
    if rig is not None and len(ready) == len(models) >= 3 and not any(model.in_order for model in ready):
        tuned, _ = tune(ready, few, rig, pool, floors=options.shadow_floor is None)
        return list(tuned)
    return list(ready) if len(ready) == len(models) else [m if isinstance(m, CameraModel) else None for m in models]


def _few(images: list[Bytes], model: CameraModel | SittingSubject | None) -> list[Bytes]:
    """Return the images for tuning, as the stream will give them."""
    chosen = images[:: max(1, len(images) // _TUNED)]
    grey = model is not None and model.grey
    return [image[:, :, 0] if grey and image.ndim == 3 else image for image in chosen]


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
