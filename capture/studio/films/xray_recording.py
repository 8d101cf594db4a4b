"""X-ray films and the X-ray calibration session: plate and cube."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bytes
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes, write_text
from calibration.geometry.transforms import RigidTransform
from capture.recordings.recording import Footage
from capture.recordings.video import write_video
from capture.studio.films.acting import Performance
from capture.studio.light.light_images import LightView, SubjectPose
from capture.studio.light.sensor import Sensor
from capture.studio.xray.phantoms import BeadBox, GridPlate, grid_transmission
from capture.studio.xray.xray_images import XrayView

__all__ = ["cube_text", "write_cube_session", "write_xray_films"]

GRID_TAKE, CUBE_TAKE = 1, 2


def xray_truth(view: XrayView, frames: int) -> dict[str, NDArray[Any]]:
    """Return what truth.h5 keeps of an X-ray camera: times, and the map of its intensifier both as numbers and net."""
    numbers: dict[str, NDArray[Any]] = {"frames": np.arange(frames, dtype=np.float64)}
    tube = view.intensifier
    if tube is not None:
        numbers["intensifier_centre"] = np.asarray(tube.centre)
        numbers["intensifier"] = np.array([tube.radius, tube.pincushion, tube.twist, tube.vignetting])
        numbers["ideal_px"], numbers["observed_px"] = tube.map_table()
    return numbers


def write_xray_films(
    folder: Path | str,
    views: Sequence[XrayView],
    performance: Performance,
    *,
    quality: int = 12,
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> tuple[tuple[Footage, ...], Mapping[str, Mapping[str, NDArray[Any]]]]:
    """Film a performance with X-ray views into videos/; return their footage and their part of the truth.

    With several ``workers`` the frames of a view are shared among processes; the images do not depend on it.
    """
    place = Path(folder)
    total, done = len(views) * len(performance), 0
    footage, truth = [], {}
    assert performance.actor.bones  # meshed here once, and handed on to the workers
    for view in views:

        def images(seen: XrayView = view) -> Iterator[Bytes]:
            nonlocal done
            for image in _films(seen, performance, workers):
                yield image
                done += 1
                if on_progress is not None:
                    on_progress(done, total)

        video = place / "videos" / f"{view.camera.name}.mp4"
        write_video(video, images(), performance.rate_hz, quality=quality)
        footage.append(Footage(view.camera.name, video, kind="xray"))
        truth[view.camera.name] = xray_truth(view, len(performance))
    return tuple(footage), truth


def _films(view: XrayView, performance: Performance, workers: int) -> Iterator[Bytes]:
    """Yield the view's images in order, from ``workers`` processes."""
    frames = range(len(performance))
    if workers <= 1:
        yield from (_film((view, performance, frame)) for frame in frames)
        return
    blocks = [(view, performance, list(frames[k::workers])) for k in range(workers)]
    quiet = (signal.SIGINT, signal.SIG_IGN)  # the parent decides when to stop
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=signal.signal, initargs=quiet
    ) as pool:
        parts = list(pool.map(_film_block, blocks))
    for frame in frames:
        yield parts[frame % workers][frame // workers]


def _film_block(task: tuple[XrayView, Performance, list[int]]) -> list[Bytes]:
    view, performance, frames = task
    return [_film((view, performance, frame)) for frame in frames]


def _film(task: tuple[XrayView, Performance, int]) -> Bytes:
    view, performance, frame = task
    passed = view.transmission(performance.solids(frame), [performance.beads(frame)])
    return view.expose(passed, frame=frame)


def cube_text(box: BeadBox) -> str:
    """Return the cube file as XMALab reads it: a header line, then X,Y,Z,name in millimetres."""
    rows = [
        ",".join([*(f"{value:.2f}" for value in point), name])
        for name, point in zip(box.names, box.points, strict=True)
    ]
    return "\n".join(["x y z", *rows]) + "\n"


def write_cube_session(
    folder: Path | str,
    views: Sequence[XrayView],
    plates: Sequence[GridPlate],
    box: BeadBox,
    poses: Sequence[RigidTransform],
    *,
    light_views: Sequence[tuple[LightView, Sensor]] = (),
) -> None:
    """Write grid/CAMERA.png, cube/CAMERA/NN.png per pose of the cube (light cameras too) and cube.csv, lossless.

    Args:
        plates: one per X-ray view.
        poses: ``world_from_cube``; the first defines the world.
    """
    if len(plates) != len(views):
        raise InputError(f"wanted one grid plate per X-ray view, got {len(plates)} for {len(views)}")
    place = Path(folder)
    for view, plate in zip(views, plates, strict=True):
        if view.intensifier is None:
            raise InputError(f"camera '{view.camera.name}': a grid image needs an intensifier")
        grid = view.expose(grid_transmission(view.intensifier, plate), frame=0, take=GRID_TAKE)
        _write_png(place / "grid" / f"{view.camera.name}.png", grid)
        for number, pose in enumerate(poses):
            passed = view.transmission(box.acrylic(pose), [box.beads(pose)])
            image = view.expose(passed, frame=number, take=CUBE_TAKE)
            _write_png(place / "cube" / view.camera.name / f"{number + 1:02d}.png", image)
    for light, sensor in light_views:
        for number, pose in enumerate(poses):
            surface = box.surface(pose)
            picture = light.picture(SubjectPose(surface, surface.at(0.0)))
            image = sensor.expose(picture.light, frame=number, take=CUBE_TAKE)
            _write_png(place / "cube" / light.camera.name / f"{number + 1:02d}.png", image)
    write_text(place / "cube.csv", cube_text(box))


def _write_png(path: Path, image: Bytes) -> None:
    good, data = cv2.imencode(".png", image, [cv2.IMWRITE_PNG_COMPRESSION, 9])
    if not good:
        raise InputError(f"{path}: the image could not be encoded")
    write_bytes(path, data.tobytes())
