"""Ray queries against closed forms, and bad meshes."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.ring import look_at
from calibration.foundation.errors import InputError
from capture.raycasting import SurfaceScene, cast_silhouette
from capture.studio.scene.surfaces import icosphere


def test_first_hit_of_a_box_is_exact() -> None:
    box = trimesh.creation.box(extents=(2.0, 4.0, 6.0))
    scene = SurfaceScene([(box.vertices, box.faces)])
    origins = np.array([[10.0, 0.3, 0.2], [0.1, 10.0, 0.2], [0.1, 0.2, 10.0], [10.0, 5.0, 0.0]])
    directions = np.array([[-1.0, 0, 0], [0, -1, 0], [0, 0, -1], [-1, 0, 0]])
    hits = scene.first_hits(origins, directions)
    assert hits.found.tolist() == [True, True, True, False]
    assert np.allclose(hits.distance[:3], [9.0, 8.0, 7.0], atol=1e-5)
    assert np.isinf(hits.distance[3])
    corners = np.asarray(box.vertices)[box.faces[hits.triangle[:3]]]
    v, w = hits.barycentric[:3, :1], hits.barycentric[:3, 1:]
    points = (1 - v - w) * corners[:, 0] + v * corners[:, 1] + w * corners[:, 2]
    assert np.allclose(points, origins[:3] + hits.distance[:3, None] * directions[:3], atol=1e-5)


def test_occlusion_ends_at_the_lamp() -> None:
    ball = icosphere(1.0, (0.0, 0.0, 5.0))
    scene = SurfaceScene([ball])
    origin, towards = np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]])
    assert scene.occluded(origin, towards).all()
    assert not scene.occluded(origin, 3.0 * towards, reach=1.0).any()  # the lamp is before the ball
    assert scene.occluded(origin, 9.0 * towards, reach=1.0).all()


def test_meshes_are_told_apart() -> None:
    scene = SurfaceScene([icosphere(1.0, (0.0, 0.0, 5.0)), icosphere(1.0, (0.0, 0.0, -5.0))])
    hits = scene.first_hits((0.0, 0.0, 0.0), np.array([[0.0, 0, 1], [0, 0, -1], [1, 0, 0]]))
    assert hits.mesh.tolist() == [0, 1, -1]


def test_signed_distance_of_a_ball() -> None:
    scene = SurfaceScene([icosphere(10.0, subdivisions=5)])
    points = np.random.default_rng(0).uniform(-15, 15, (500, 3))
    wanted = np.linalg.norm(points, axis=1) - 10.0
    assert np.abs(scene.signed_distances(points) - wanted).max() < 0.01  # the mesh lies up to 0.006 inside the ball
    clear = np.abs(wanted) > 0.01
    assert clear.sum() > 490 and np.array_equal(scene.inside(points)[clear], wanted[clear] < 0)


def test_silhouette_of_a_ball_is_the_pixels_in_its_cone() -> None:
    lens = PinholeLens((160, 120), np.array([[200.0, 0, 79.5], [0, 200.0, 59.5], [0, 0, 1]]), [-0.2, 0.05, 0, 0])
    camera = LensCamera("c", lens, look_at((50.0, 20.0, 30.0), (0.0, 0.0, 0.0)))
    mask = cast_silhouette(camera, *icosphere(10.0, subdivisions=5))
    columns, rows = np.meshgrid(np.arange(160.0), np.arange(120.0))
    origins, rays = camera.rays(np.stack([columns, rows], axis=-1))
    towards = -camera.centre
    distance = np.linalg.norm(towards)
    angle = np.arccos(np.clip(rays @ towards / distance, -1, 1)) - np.arcsin(10.0 / distance)
    sure = np.abs(angle) > 1e-4
    assert np.array_equal(mask[sure], angle[sure] < 0)
    assert origins.shape == (120, 160, 3)


@pytest.mark.parametrize(
    ("vertices", "faces", "message"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], "vertices"),
        (np.zeros((3, 3)), [[0, 1, 3]], "face index 3"),
        (np.full((3, 3), np.nan), [[0, 1, 2]], "finite"),
    ],
)
def test_bad_meshes_are_named(vertices: np.ndarray, faces: list[list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SurfaceScene([(vertices, faces)])
