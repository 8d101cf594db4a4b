"""Film a moving surface with every camera of a rig, and keep what is needed to judge the pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.errors import InputError
from capture.raycasting import SurfaceScene
from capture.studio.light.light_images import LightPicture, LightView, SubjectPose
from capture.studio.light.sensor import Sensor
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.stage import Stage, build_stage
from capture.studio.scene.surfaces import MovingSurface

__all__ = ["CameraFilm", "check_rig", "clock", "film_cameras"]

#: Most instants that one exposure is averaged over.
BLUR_SAMPLES = 16
#: Takes, which tell apart the noise of recordings of one seed.
SUBJECT_TAKE, EMPTY_TAKE = 0, 1

Progress = Callable[[int, int], None]


def clock(options: StudioOptions, camera: int, frames: int) -> Floats:
    """Return the instants (n,) at which a camera's images were taken, in frames of the recording.

    With ``time_offset`` each camera's clock is shifted by its own constant; with ``dropped_frames`` some are missing.
    """
    rng = np.random.default_rng([options.seed, 401, camera])
    shift = rng.uniform(-options.time_offset, options.time_offset)
    lost = rng.uniform(size=frames) < options.dropped_frames
    lost[0] = False  # a recording starts with a frame
    return np.arange(frames, dtype=np.float64)[~lost] + round(float(shift), 3)


@dataclass(frozen=True, eq=False)
class CameraFilm:
    """One light camera filming: images are rendered when asked for.

    Attributes:
        camera: the camera.
        number: its place in the rig.
        stage: what stands still.
        surface: the subject.
        options: the difficulties.
    """

    camera: Camera
    number: int
    stage: Stage
    surface: MovingSurface
    options: StudioOptions

    @cached_property
    def view(self) -> LightView:
        """The camera on the stage."""
        return LightView(self.camera, self.stage)

    @cached_property
    def sensor(self) -> Sensor:
        """The camera's sensor."""
        return Sensor(self.number, self.camera.size, self.options)

    @cached_property
    def instants(self) -> Floats:
        """(n,) when each image is taken, in frames of the recording."""
        return clock(self.options, self.number, len(self.surface))

    def picture(self, instant: float) -> LightPicture:
        """Render the light at ``instant`` (frames), averaged over the time the shutter is open."""
        opening = self.options.motion_blur
        if opening == 0.0:
            return self.view.picture(SubjectPose(self.surface, self.surface.at(instant)))
        first, last = instant - 0.5 * opening, instant + 0.5 * opening
        ends = [self.camera.project(self.surface.at(t)) for t in (first, last)]
        moved = np.linalg.norm(ends[1] - ends[0], axis=1)
        farthest = float(np.nanmax(moved)) if np.isfinite(moved).any() else 0.0
        count = int(np.clip(np.ceil(farthest), 1, BLUR_SAMPLES))
        pictures = [
            self.view.picture(SubjectPose(self.surface, self.surface.at(t)))
            for t in first + (np.arange(count) + 0.5) / count * (last - first)
        ]
        return LightPicture(
            light=np.mean([p.light for p in pictures], axis=0, dtype=np.float32),
            coverage=np.mean([p.coverage for p in pictures], axis=0, dtype=np.float32),
        )

    def image(self, index: int, rate_hz: float | None = None) -> tuple[Bytes, Bools]:
        """Return image number ``index`` of the video and its true silhouette (H, W)."""
        picture = self.picture(float(self.instants[index]))
        image = self.sensor.expose(
            picture.light,
            frame=index,
            frames=len(self.instants),
            rate_hz=self.surface.rate_hz if rate_hz is None else rate_hz,
        )
        return image, picture.mask

    def background(self, count: int) -> Iterator[Bytes]:
        """Yield ``count`` images of the empty stage."""
        for index in range(count):
            yield self.sensor.expose(
                self.view.plate, frame=index, frames=count, rate_hz=self.surface.rate_hz, take=EMPTY_TAKE
            )


def film_cameras(
    rig: Rig, surface: MovingSurface, options: StudioOptions, *, floor_radius: float | None = None
) -> list[CameraFilm]:
    """Set up the stage for the subject and one `CameraFilm` per light camera, after `check_rig`."""
    check_rig(rig, surface)
    stage = build_stage(surface.extent, options, floor_radius=floor_radius)
    return [
        CameraFilm(camera, number, stage, surface, options)
        for number, camera in enumerate(rig.cameras)
        if camera.kind == "light"
    ]


def check_rig(rig: Rig, surface: MovingSurface, *, step: int = 10) -> Ints:
    """Return in how many of the looked-at frames each camera sees the subject (C,); refuse a rig that cannot film it.

    Looks at every ``step``-th frame.
    """
    frames = range(0, len(surface), step)
    seen = np.zeros(len(rig), dtype=np.int64)
    for index in frames:
        vertices = surface.at(float(index))
        scene = SurfaceScene([(vertices, surface.faces)])
        inside = np.flatnonzero(scene.inside(np.stack([camera.centre for camera in rig.cameras])))
        if len(inside):
            names = ", ".join(f"'{rig.names[i]}'" for i in inside)
            raise InputError(f"camera {names} is inside the body at frame {index}; move it, or the subject's path")
        for number, camera in enumerate(rig.cameras):
            pixels = camera.project(vertices)
            width, height = camera.size
            with np.errstate(invalid="ignore"):
                within = (pixels > -0.5).all(axis=1) & (pixels[:, 0] < width - 0.5) & (pixels[:, 1] < height - 0.5)
            seen[number] += bool(within.any())
    if not seen.any():
        low, high = surface.frames.min(axis=(0, 1)), surface.frames.max(axis=(0, 1))
        where = " to ".join("(" + ", ".join(f"{v:.0f}" for v in corner) + ")" for corner in (low, high))
        raise InputError(
            f"no camera of {', '.join(rig.names)} ever sees the subject, which stays within {where} mm; "
            "aim the rig there (target, radius, field of view)"
        )
    return seen
