"""Write what the studio filmed as a recording folder that every command accepts."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig, save_rig
from capture.recordings.recording import Footage, Recording, save_recording
from capture.recordings.video import write_video
from capture.studio.films.film import CameraFilm
from capture.studio.scene.truth import FILE, Truth, save_truth

__all__ = ["write_films"]

Progress = Callable[[int, int], None]


# Thirteen parameters: what is filmed, then keywords of how it is written.
def write_films(
    folder: Path | str,
    films: list[CameraFilm],
    rig: Rig,
    truth: Truth,
    *,
    name: str,
    subject: str,
    quality: int = 16,
    background_frames: int = 20,
    vertex_step: float = 0.0,
    other: tuple[Footage, ...] = (),
    other_truth: Mapping[str, Mapping[str, NDArray[Any]]] | None = None,
    workers: int = 1,
    on_progress: Progress | None = None,
) -> Recording:
    """Render all films and write videos, backgrounds, rig.toml, truth.h5 and recording.toml; return the recording.

    Args:
        quality: H.264 quality (CRF): 0 is lossless, 18 looks lossless.
        background_frames: length of each clip of the empty stage.
        vertex_step: see `save_truth`.
        other: footage made otherwise (X-ray), already in the folder, with ``other_truth`` per camera.
        workers: processes that film one camera each; the files do not depend on it.
    """
    place = Path(folder)
    total = sum(len(film.instants) + background_frames for film in films)
    footage: dict[str, Footage] = {item.name: item for item in other}
    cameras: dict[str, Mapping[str, NDArray[Any]]] = dict(other_truth or {})
    tasks = [(replace(film), place / "videos", quality, background_frames) for film in films]
    done = 0
    for number, film in enumerate(_written(tasks, workers)):
        done += len(film.instants) + background_frames
        if on_progress is not None:
            on_progress(done, total)
        key, videos = films[number].camera.name, place / "videos"
        footage[key] = Footage(key, videos / f"{key}.mp4", videos / f"{key}_background.mp4")
        cameras[key] = {"frames": np.asarray(film.instants)}
    save_rig(rig, place / "rig.toml")
    order = {key: cameras[key] for key in rig.names}
    save_truth(place / FILE, replace(truth, cameras=order), vertex_step=vertex_step)
    recording = Recording(
        folder=place,
        name=name,
        rate_hz=truth.rate_hz,
        subject=subject,
        rig=rig,
        footage=tuple(footage[key] for key in rig.names),
    )
    save_recording(recording)
    return recording


_Task: TypeAlias = tuple[CameraFilm, Path, int, int]


def _written(tasks: list[_Task], workers: int) -> Iterator[CameraFilm]:
    """Film every camera, in order, and yield each when its videos are written."""
    if workers <= 1 or len(tasks) <= 1:
        for task in tasks:
            yield _write_camera(task)
        return
    # Fresh processes: the ray caster's threads do not survive a fork.
    quiet = (signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    with ProcessPoolExecutor(
        min(workers, len(tasks)), mp_context=get_context("spawn"), initializer=signal.signal, initargs=quiet
    ) as pool:
        yield from pool.map(_write_camera, tasks)


def _write_camera(task: _Task) -> CameraFilm:
    """Write the background clip and the video of one camera; return the film as it came, without what it cached."""
    film, videos, quality, background_frames = task
    rate = film.surface.rate_hz
    busy = replace(film)  # what it caches is freed with it, so memory does not grow with the cameras
    name = film.camera.name
    write_video(videos / f"{name}_background.mp4", busy.background(background_frames), rate, quality=quality)
    images = (busy.image(index)[0] for index in range(len(busy.instants)))
    write_video(videos / f"{name}.mp4", images, rate, quality=quality)
    return film
