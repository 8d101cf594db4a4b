"""People filmed in rooms by rays: soft shadows of lamps, shade where they touch the floor, a lens, noise, a codec.

Nothing here is the studio's (`capture/studio`), so what is told from these films is not told by its makers' own
pictures. Light is linear inside and shown with a gamma of 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from benchmarks.people.builds import Build
from benchmarks.people.rooms import Room, colours_of, lamp_points, room_mesh
from benchmarks.people.wardrobe import Outfit, painted, parts_of
from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.geometry.meshes import vertex_normals
from capture.raycasting import SurfaceScene, cast_silhouette
from capture.recordings.video import write_video

__all__ = ["Actor", "Sensor", "film", "true_masks"]

#: What reaches some places from each point of the lamps (k, n), and along each way from the sky (k, m).
Shares = tuple[Floats, Floats]

#: Points across each lamp, ways to the sky, rays start so far off a surface (mm).
LAMP_ACROSS, SKY_WAYS, OFF_MM = 4, 160, 3.0
#: Places inside a pixel (and moments of the open shutter) at which the person is seen; the room is seen at as many.
SAMPLES = np.array([[-0.375, -0.125], [0.125, -0.375], [0.375, 0.125], [-0.125, 0.375]])
#: Shade on the room is worked out at every second pixel along both axes.
STEP = 2
#: A room darkens its own corners within this distance only: farther walls give light themselves.
ROOM_REACH_MM = 900.0
#: A person takes the sky from what is within this distance.
PERSON_REACH_MM = 1500.0
PLATE_FRAMES = 20
#: The brightest places of an empty room are exposed to this share of full light.
BRIGHT = 0.5


@dataclass(frozen=True, eq=False)
class Actor:
    """A dressed person: build, surface (T + 1, V, 3) in mm, and what is worn."""

    build: Build
    surface: Floats
    outfit: Outfit
    seed: int


@dataclass(frozen=True)
class Sensor:
    """Share of a frame's time that the shutter is open, blur and noise (px, grey levels), wandering exposure, CRF."""

    shutter: float = 0.0
    blur_px: float = 0.5
    noise: float = 2.0
    wander: float = 0.01
    quality: int = 21


@dataclass(frozen=True, eq=False)
class Light:
    """Points that give light (n, 3) and how much (n, 3), and the light from everywhere (3,) along some ways (m, 3)."""

    points: Floats
    lights: Floats
    sky: Floats
    ways: Floats

    def shares(self, places: Floats, normals: Floats) -> Shares:
        """Return what reaches places (k, 3) if nothing is between: of each point (k, n) and each way (k, m)."""
        to = self.points - places[:, None]
        far = np.linalg.norm(to, axis=2)
        falls = np.einsum("kni,ki->kn", to, normals) / far
        lamps = np.maximum(falls, 0.0) * np.maximum(to[..., 2] / far, 0.0) / (far / 1000.0) ** 2
        sky = np.maximum(normals @ self.ways.T, 0.0) * 4.0 / len(self.ways)
        return lamps, sky

    def arriving(self, lamps: Floats, sky: Floats) -> Floats:
        """Return the light (k, 3) that these shares bring."""
        return np.asarray(lamps @ self.lights + sky.sum(axis=1, keepdims=True) * self.sky)

    def open_shares(
        self, scene: SurfaceScene, places: Floats, normals: Floats, shares: Shares, *, reach_mm: float = np.inf
    ) -> Shares:
        """Return shares (k, n), (k, m) without what a scene is in the way of; of the sky within a reach only."""
        starts = places + OFF_MM * normals
        lamps, sky = (one.copy() for one in shares)
        at, point = np.nonzero(lamps)
        lamps[at, point] *= ~scene.occluded(starts[at], self.points[point] - starts[at], reach=0.999)
        at, way = np.nonzero(sky)
        sky[at, way] *= ~scene.occluded(starts[at], self.ways[way], reach=reach_mm)
        return lamps, sky


def light_of(room: Room, across: int, ways: int) -> Light:
    """Return a room's light with so many points across each lamp and ways to the sky."""
    height = 1.0 - 2.0 * (np.arange(ways) + 0.5) / ways
    turn = np.arange(ways) * np.pi * (3.0 - np.sqrt(5.0))
    wide = np.sqrt(1.0 - height**2)
    spread = np.stack([wide * np.cos(turn), wide * np.sin(turn), height], axis=1)
    return Light(*lamp_points(room.lamps, across), np.array(room.sky), spread)


@dataclass(frozen=True, eq=False)
class EmptyView:
    """The empty room as one camera sees it.

    Attributes:
        camera: it.
        image: (H, W, 3) light, linear.
        places, normals: (k, 3) what every second pixel shows.
        shares: what reaches those places in the empty room.
        light: it.
    """

    camera: Camera
    image: Floats
    places: Floats
    normals: Floats
    shares: Shares
    light: Light


def _grid(camera: Camera, step: int, shift: Floats) -> Floats:
    width, height = camera.size
    columns, rows = np.meshgrid(np.arange(0, width, step), np.arange(0, height, step))
    return np.stack([columns.ravel(), rows.ravel()], axis=1) + shift


def _room_hits(scene: SurfaceScene, camera: Camera, pixels: Floats) -> tuple[Floats, Floats, Ints]:
    """Return the places, normals towards the camera (k, 3) and triangles (k,) that pixels (k, 2) show."""
    origins, ways = camera.rays(pixels)
    hits = scene.first_hits(origins, ways)
    corners, faces = room_mesh()
    a, b, c = (corners[faces[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    normal = normals[hits.triangle]
    normal *= -np.sign(np.einsum("ki,ki->k", normal, ways))[:, None]
    return origins + ways * hits.distance[:, None], normal, hits.triangle


def empty_view(room: Room, camera: Camera, light: Light) -> EmptyView:
    """Return the empty room as a camera sees it."""
    scene = SurfaceScene([room_mesh()])
    places, normals, _ = _room_hits(scene, camera, _grid(camera, STEP, np.zeros(2)))
    shares = light.open_shares(scene, places, normals, light.shares(places, normals), reach_mm=ROOM_REACH_MM)
    lit = _enlarged(light.arriving(*shares), camera)
    image = np.zeros_like(lit)
    for shift in SAMPLES:
        at, _, triangle = _room_hits(scene, camera, _grid(camera, 1, shift))
        image += colours_of(room, at, triangle).reshape(image.shape) * lit / len(SAMPLES)
    return EmptyView(camera, image, places, normals, shares, light)


def _enlarged(values: Floats, camera: Camera) -> Floats:
    """Return values (k, 3) of every second pixel for all pixels (H, W, 3)."""
    width, height = camera.size
    small = values.reshape(-(-height // STEP), -(-width // STEP), 3)
    to = np.float32([[STEP, 0, 0], [0, STEP, 0]])
    return np.asarray(cv2.warpAffine(small, to, (width, height), borderMode=cv2.BORDER_REPLICATE))


def _shade(view: EmptyView, surface: Floats, faces: Ints) -> Floats:
    """Return (H, W, 3) how much of its light the room keeps beside the person."""
    scene = SurfaceScene([(surface, faces)])
    off = np.maximum(surface.min(axis=0) - view.places, view.places - surface.max(axis=0))
    near = np.linalg.norm(np.maximum(off, 0.0), axis=1) < PERSON_REACH_MM
    lamps, sky = view.shares
    none = np.zeros((len(sky), 0)), np.zeros((np.count_nonzero(near), 0))
    lamps_left, _ = view.light.open_shares(scene, view.places, view.normals, (lamps, none[0]))
    asked = (none[1], sky[near])
    _, sky_left = view.light.open_shares(scene, view.places[near], view.normals[near], asked, reach_mm=PERSON_REACH_MM)
    before = view.light.arriving(lamps, sky)
    after = before + (lamps_left - lamps) @ view.light.lights
    after[near] += (sky_left - sky[near]).sum(axis=1, keepdims=True) * view.light.sky
    return _enlarged(after / np.maximum(before, 1e-9), view.camera)


def _seen(
    actor: Actor, surface: Floats, camera: Camera, pixels: Floats, light: Light, part: Ints
) -> tuple[Bools, Floats]:
    """Return which pixels (k, 2) show the person, and its light (k, 3) there, zero elsewhere."""
    faces = actor.build.faces
    scene = SurfaceScene([(surface, faces)])
    origins, ways = camera.rays(pixels)
    hits = scene.first_hits(origins, ways)
    found, light_seen = hits.found, np.zeros((len(pixels), 3))
    corner = faces[hits.triangle[found]]
    v, w = hits.barycentric[found].astype(float).T
    weights = np.stack([1.0 - v - w, v, w], axis=1)
    normal = np.einsum("kc,kci->ki", weights, vertex_normals(surface, faces)[corner])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9)
    rest = np.einsum("kc,kci->ki", weights, actor.build.vertices[corner])
    nearest = part[corner[np.arange(len(corner)), weights.argmax(axis=1)]]
    places = (origins + ways * hits.distance[:, None])[found]
    shares = light.open_shares(scene, places, normal, light.shares(places, normal))
    lit = light.arriving(*shares)
    light_seen[found] = painted(rest, nearest, actor.outfit, actor.seed) * lit
    return found, light_seen


def _person(actor: Actor, frame: int, sensor: Sensor, camera: Camera, light: Light) -> tuple[Floats, Floats]:
    """Return how much of each pixel the person covers (H, W), and the person's light there (H, W, 3)."""
    width, height = camera.size
    cover, colour = np.zeros((height, width)), np.zeros((height, width, 3))
    now, then = actor.surface[frame], actor.surface[frame + 1]
    pixels = camera.project(np.concatenate([now, then]))
    low = np.clip(np.floor(np.nanmin(pixels, axis=0)).astype(int) - 2, 0, [width, height])
    high = np.clip(np.ceil(np.nanmax(pixels, axis=0)).astype(int) + 3, 0, [width, height])
    columns, rows = np.meshgrid(np.arange(low[0], high[0]), np.arange(low[1], high[1]))
    window = np.stack([columns.ravel(), rows.ravel()], axis=1)
    part = parts_of(actor.build, actor.outfit)
    for number, shift in enumerate(SAMPLES):
        moment = sensor.shutter * number / len(SAMPLES)
        surface = (1.0 - moment) * now + moment * then
        found, lit = _seen(actor, surface, camera, window + shift, light, part)
        cover[rows.ravel(), columns.ravel()] += found / len(SAMPLES)
        colour[rows.ravel(), columns.ravel()] += lit / len(SAMPLES)
    return cover, colour


def _developed(image: Floats, gain: float, sensor: Sensor, rng: np.random.Generator) -> Bytes:
    """Return light (H, W, 3) as a camera's picture, BGR."""
    blurred = cv2.GaussianBlur(image, (0, 0), sensor.blur_px)
    grey = 255.0 * np.clip(gain * blurred, 0.0, 1.0) ** (1.0 / 2.2)
    noisy = grey + rng.normal(0.0, sensor.noise, grey.shape)
    return np.asarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8)[..., ::-1])


def _gains(exposure: float, frames: int, wander: float, rng: np.random.Generator) -> Floats:
    """Return (T,) the exposure of each frame, which wanders slowly."""
    turns, phase = rng.uniform(0.5, 3.0, 3), rng.uniform(0.0, 6.28, 3)
    waves = np.sin(np.linspace(0.0, 2.0 * np.pi, frames)[:, None] * turns + phase).mean(axis=1)
    return np.asarray(exposure * (1.0 + wander * waves))


def film(folder: Path, rig: Rig, room: Room, actor: Actor, sensor: Sensor, rate_hz: float) -> None:
    """Write videos and clips of the empty room into ``folder``, and the true masks, ``truth.npz``."""
    frames = len(actor.surface) - 1
    light, on_person = light_of(room, LAMP_ACROSS, SKY_WAYS), light_of(room, 2, SKY_WAYS // 6)
    (folder / "videos").mkdir(parents=True, exist_ok=True)
    for number, camera in enumerate(rig):
        view = empty_view(room, camera, light)
        rng = np.random.default_rng([room.seed, actor.seed, number])
        exposure = BRIGHT / float(np.percentile(view.image.mean(axis=2), 97))

        def empty() -> Iterator[Bytes]:
            for gain in _gains(exposure, PLATE_FRAMES, sensor.wander, rng):  # noqa: B023
                yield _developed(view.image, float(gain), sensor, rng)  # noqa: B023

        def peopled() -> Iterator[Bytes]:
            for frame, gain in enumerate(_gains(exposure, frames, sensor.wander, rng)):  # noqa: B023
                shade = _shade(view, actor.surface[frame], actor.build.faces)  # noqa: B023
                cover, colour = _person(actor, frame, sensor, camera, on_person)  # noqa: B023
                yield _developed(view.image * shade * (1.0 - cover[..., None]) + colour, float(gain), sensor, rng)  # noqa: B023

        videos = folder / "videos"
        write_video(videos / f"{camera.name}_background.mp4", empty(), rate_hz, quality=sensor.quality)
        write_video(videos / f"{camera.name}.mp4", peopled(), rate_hz, quality=sensor.quality)
    np.savez_compressed(folder / "truth.npz", **true_masks(rig, actor, sensor))


def true_masks(rig: Rig, actor: Actor, sensor: Sensor) -> dict[str, Bytes]:
    """Return the true masks of each camera by name, packed along x: what pixels' middles show in mid-exposure.

    Those of the samples that an image is made of would count half-covered pixels, which are an eighth of a pixel more.
    """
    moment = sensor.shutter * (len(SAMPLES) - 1) / (2 * len(SAMPLES))
    moments = (1.0 - moment) * actor.surface[:-1] + moment * actor.surface[1:]
    faces = actor.build.faces
    return {
        f"masks_{camera.name}": np.packbits([cast_silhouette(camera, one, faces) for one in moments], axis=2)
        for camera in rig
    }
