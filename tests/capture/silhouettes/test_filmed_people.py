"""The films that silhouettes are judged on: their truth, their shade, their empty scene."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.people.builds import Build
from benchmarks.people.filming import Actor, Sensor, film
from benchmarks.people.rooms import Lamp, Room
from benchmarks.people.textures import planks, tiles
from benchmarks.people.wardrobe import PARTS, Outfit, parts_of
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.cameras.ring import look_at
from capture.raycasting import cast_silhouette
from capture.recordings.video import read_frames

SIZE = (160, 120)


def _box_person() -> Build:
    """Return a box a metre high that stands on the floor, with a head bone above a trunk bone."""
    corners = np.array(
        [[x, y, z] for z in (2.0, 1000.0) for x, y in ((-150, -100), (150, -100), (150, 100), (-150, 100))]
    )
    quads = [[3, 2, 1, 0], [4, 5, 6, 7], *[[k, (k + 1) % 4, 4 + (k + 1) % 4, 4 + k] for k in range(4)]]
    faces = np.array([[q[0], q[1], q[2]] for q in quads] + [[q[0], q[2], q[3]] for q in quads])
    bones = ("upperleg01.L", "spine01", "eye.L")
    weights = np.zeros((8, 3))
    weights[:4, 0] = weights[4:, 1] = 1.0
    heads = np.array([[0.0, 0.0, 500.0], [0.0, 0.0, 800.0], [100.0, 0.0, 950.0]])
    return Build(corners, faces, bones, np.array([-1, 0, 1]), heads, weights)


ROOM = Room(
    "carpet",
    (0.4, 0.4, 0.4),
    ((0.5, 0.5, 0.5),),
    (Lamp((0.0, 0.0, 3200.0), (300.0, 300.0), (5.0,) * 3),),
    (0.5,) * 3,
    1,
)


@pytest.fixture(scope="module")
def filmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rig, Build]:
    """Return the folder of a film of two frames, its cameras and the body in it."""
    lens = PinholeLens(
        SIZE, np.array([[150.0, 0.0, 79.5], [0.0, 150.0, 59.5], [0.0, 0.0, 1.0]]), np.array([-0.2, 0.1, 0, 0])
    )
    rig = Rig((LensCamera("a", lens, look_at((3000.0, 500.0, 1800.0), (0.0, 0.0, 400.0))),))
    build, folder = _box_person(), tmp_path_factory.mktemp("film")
    actor = Actor(build, np.repeat(build.vertices[None], 3, axis=0), Outfit((0.05, 0.1, 0.5), (0.3, 0.05, 0.05)), 1)
    film(folder, rig, ROOM, actor, Sensor(noise=0.5, quality=12), 60.0)
    return folder, rig, build


def test_the_true_mask_is_that_of_rays_through_the_pixels(filmed: tuple[Path, Rig, Build]) -> None:
    folder, rig, build = filmed
    masks = np.unpackbits(np.load(folder / "truth.npz")["masks_a"], axis=2)[..., : SIZE[0]].astype(bool)
    cast = cast_silhouette(rig.cameras[0], build.vertices, build.faces)
    assert masks.shape == (2, SIZE[1], SIZE[0])
    # half of four rays against one through the middle: they differ along the edge only
    assert (masks[0] & cast).sum() / (masks[0] | cast).sum() > 0.95


def test_the_floor_is_darker_beside_the_person_and_as_it_was_elsewhere(filmed: tuple[Path, Rig, Build]) -> None:
    folder, rig, build = filmed
    _, empty = next(read_frames(folder / "videos" / "a_background.mp4", 0, 1))
    _, image = next(read_frames(folder / "videos" / "a.mp4", 0, 1))
    mask = cast_silhouette(rig.cameras[0], build.vertices, build.faces)
    ratio = image.mean(axis=2) / empty.mean(axis=2)
    beside = rig.cameras[0].project(np.array([[190.0, 0.0, 0.0], [1200.0, -900.0, 0.0]])).round().astype(int)
    assert not mask[tuple(beside.T[::-1])].any()
    near, far = (ratio[y - 1 : y + 2, x - 1 : x + 2].mean() for x, y in beside)
    assert near < 0.85
    assert far == pytest.approx(1.0, abs=0.04)  # exposure wanders by 1 %, the codec does the rest
    assert np.abs(image[mask].astype(float) - empty[mask]).mean() > 30.0


def test_a_film_is_the_same_twice(filmed: tuple[Path, Rig, Build], tmp_path: Path) -> None:
    folder, rig, build = filmed
    actor = Actor(build, np.repeat(build.vertices[None], 3, axis=0), Outfit((0.05, 0.1, 0.5), (0.3, 0.05, 0.05)), 1)
    film(tmp_path, rig, ROOM, actor, Sensor(noise=0.5, quality=12), 60.0)
    for name in ("a.mp4", "a_background.mp4"):
        assert (tmp_path / "videos" / name).read_bytes() == (folder / "videos" / name).read_bytes()


def test_sleeves_and_trousers_end_where_the_outfit_says() -> None:
    build = _box_person()
    wide = parts_of(build, Outfit((0.1, 0.1, 0.1), (0.1, 0.1, 0.1)))
    assert [PARTS[part] for part in wide] == 4 * ["legs"] + 4 * ["shirt"]


def test_floors_have_joints() -> None:
    for pattern, every in ((planks, 160.0), (tiles, 400.0)):
        places = np.array([[200.0, every, 0.0], [200.0, every - 12.0, 0.0], [200.0, every + 12.0, 0.0]])
        joint, before, after = pattern(places, np.array([0.4, 0.3, 0.2]), 1)
        assert (joint < 0.8 * np.minimum(before, after)).all()
