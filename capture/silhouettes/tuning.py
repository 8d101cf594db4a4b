"""Parameters chosen by the agreement between views, on a few frames spread over the recording.

A silhouette that the other views contradict is wrong; so of several settings the one whose silhouettes agree best
is taken. The defaults stay unless another setting is clearly better: agreement alone cannot see a shadow on the
floor, which is a consistent (if flat) object in all views.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bytes, Floats
from capture.silhouettes.difference import PlateModel
from capture.silhouettes.models import CameraModel
from capture.silhouettes.ray_agreement import ray_agreement

__all__ = ["tune"]

_CLEARLY = 0.03
_FLOORS = (0.35, 0.7, 1.0)
_HIGH = (6.0, 14.0)


def _with_floor(model: CameraModel, floor: float) -> CameraModel:
    if isinstance(model.model, PlateModel):
        return replace(model, model=replace(model.model, shadow_floor=floor))
    return model


def _with_high(model: CameraModel, high: float) -> CameraModel:
    share = model.cleaning.low / model.cleaning.high
    return replace(model, cleaning=replace(model.cleaning, low=share * high, high=high))


def tune(
    models: Sequence[CameraModel], samples: Sequence[Sequence[Bytes]], rig: Rig, pool: Executor, *, floors: bool = True
) -> tuple[list[CameraModel], float]:
    """Return the models with the settings that agree best, and their mean agreement.

    Args:
        models: one per camera.
        samples: per camera, images of the same frames.
        floors: whether the shadow floor may change.
    """
    frames = range(min(len(images) for images in samples))

    def score(trial: Sequence[CameraModel]) -> Floats:
        """Return (C,) the views' agreement."""

        def one(frame: int) -> Floats:
            masks = [model.silhouette(images[frame]) for model, images in zip(trial, samples, strict=True)]
            # A view without silhouette agrees with nothing.
            return np.nan_to_num(ray_agreement(masks, rig))

        return np.asarray(np.mean(list(pool.map(one, frames)), axis=0))

    best, top = list(models), score(models)
    changes: list[Callable[[CameraModel], CameraModel]] = []
    if floors:
        changes += [lambda model, floor=floor: _with_floor(model, floor) for floor in _FLOORS]  # type: ignore[misc]
    changes += [lambda model, high=high: _with_high(model, high) for high in _HIGH]  # type: ignore[misc]
    for change in changes:
        if top.min() > 1.0 - 2 * _CLEARLY:  # nothing can be clearly better then
            break
        trial = [change(model) for model in best]
        reached = score(trial)
        # What one view shows too much of lowers its own agreement, what it misses that of all others.
        mends_worst = reached.min() > top.min() + 2 * _CLEARLY and reached.mean() >= top.mean()
        if reached.mean() > top.mean() + _CLEARLY or mends_worst:
            best, top = trial, reached
    return best, float(top.mean())
