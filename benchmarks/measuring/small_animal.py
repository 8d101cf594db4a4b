"""A long recording that is cheap to work on: a legless animal of few vertices in small images, by its silhouettes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.measuring.recording_cuts import there_and_back
from calibration.cameras.rig import save_rig
from calibration.cameras.ring import ring_rig
from calibration.foundation.arrays import Floats, Ints
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import write_video
from tracking.observations.rasteriser import cast_masks
from tracking.own_bodies.joints_file import BodyPlan
from tracking.own_bodies.making import own_subject
from tracking.subjects.subject import save_subject

__all__ = ["small_recording"]

_RINGS, _AROUND = 13, 10
_LENGTH, _THICK = 200.0, 24.0
_JOINTS = ("tail", "belly", "chest", "head")
_CLIP = 120
_RATE_HZ = 120.0


def _skin(bend: float = 0.0, turn: float = 0.0, place: Floats | None = None) -> tuple[Floats, Ints]:
    """Vertices (V, 3), mm, and faces of a body that is bent sideways, turned about the vertical and put somewhere."""
    along = np.linspace(-0.5, 0.5, _RINGS) * _LENGTH
    shape = np.sin(np.pi * (np.arange(_RINGS) + 0.7) / (_RINGS + 0.4)) ** 0.6
    radius = _THICK * shape * np.where(along > 0, 1.0, 0.8)  # thinner behind: its ends can be told apart
    angle = 2 * np.pi * np.arange(_AROUND) / _AROUND
    heading = bend * along / _LENGTH
    step = np.gradient(along)
    middle = np.stack([np.cumsum(step * np.cos(heading)), np.cumsum(step * np.sin(heading))], axis=1)
    middle -= middle[_RINGS // 2]
    side = np.stack([-np.sin(heading), np.cos(heading)], axis=1)
    flat = middle[:, None] + radius[:, None, None] * np.cos(angle)[None, :, None] * side[:, None]
    high = _THICK + radius[:, None] * np.sin(angle)[None]
    rings = np.concatenate([flat, high[..., None]], axis=2).reshape(-1, 3)
    ends = np.array([[*middle[k], _THICK] for k in (0, -1)])
    points = np.concatenate([rings, ends])
    cosine, sine = np.cos(turn), np.sin(turn)
    points = points @ np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    faces = []
    for ring in range(_RINGS - 1):
        for k in range(_AROUND):
            a, b = ring * _AROUND + k, ring * _AROUND + (k + 1) % _AROUND
            faces += [(a, a + _AROUND, b), (b, a + _AROUND, b + _AROUND)]
    last, count = (_RINGS - 1) * _AROUND, _RINGS * _AROUND
    for k in range(_AROUND):
        faces += [(count, k, (k + 1) % _AROUND), (count + 1, last + (k + 1) % _AROUND, last + k)]
    return points if place is None else points + place, np.array(faces)


def _plan() -> BodyPlan:
    at = np.array([[-0.38, 0.0], [-0.1, 0.0], [0.15, 0.0], [0.4, 0.0]]) * _LENGTH
    places = np.concatenate([at, np.full((4, 1), _THICK)], axis=1)
    # The chest is the root: the tail hangs on the belly, the belly on the chest.
    order = [2, 1, 0, 3]
    names = tuple(_JOINTS[index] for index in order)
    return BodyPlan(names, np.array([-1, 0, 1, 0]), places[order], np.full(4, np.nan))


def small_recording(place: Path, frames: int, *, cameras: int = 3, size: tuple[int, int] = (80, 60)) -> Recording:
    """Make the recording of so many frames, a short clip played there and back, unless it is there."""
    if (place / "recording.toml").is_file():
        return load_recording(place)
    place.mkdir(parents=True, exist_ok=True)
    vertices, faces = _skin()
    subject, _ = own_subject(place / "newt", vertices, faces, _plan(), "newt.obj")
    save_subject(subject, place / "newt")
    rig = ring_rig(
        cameras, radius=900.0, height=[350.0, 600.0], target=(0.0, 0.0, _THICK), size=size, field_mm=2.2 * _LENGTH,
        first_angle=0.3,
    )  # fmt: skip
    save_rig(rig, place / "rig.toml")
    time = np.arange(_CLIP) / _CLIP
    clip = []
    for share in time:
        where = np.array([40.0 * share, 20.0 * np.sin(2 * np.pi * share), 0.0])
        clip.append(cast_masks(rig, _skin(1.2 * np.sin(6 * np.pi * share), 0.8 * share, where)[0], faces))
    footage = []
    for index, name in enumerate(rig.names):
        path = place / f"{name}_masks.mkv"
        images = [np.where(masks[index], 255, 0).astype(np.uint8) for masks in clip]
        write_video(path, (images[k] for k in there_and_back(_CLIP, frames)), _RATE_HZ, codec="ffv1")
        footage.append(Footage(name, path, masks=path))
    settings = {"track": {"scale": 1.0, "texture": False}, "hull": {"voxel_mm": 10.0}}
    save_recording(Recording(place, "newt", _RATE_HZ, "newt", rig, tuple(footage), settings=settings))
    return load_recording(place)
