"""The silhouette drawn from contour edges is that of all triangles filled."""

import numpy as np
import pytest
import trimesh
from example_rigs import ring

from calibration.cameras.camera import Camera
from calibration.cameras.camera_row import ROW
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from tracking.observations.contour_fill import MeshEdges, draw_silhouette, face_planes, fill_silhouette
from tracking.observations.rasteriser import cast_masks, fill_triangles


def drawn(camera: Camera, row: Floats, vertices: Floats, faces: Ints) -> Bools:
    mesh = MeshEdges.of(faces)
    image = np.full(camera.size[::-1], 9, np.uint8)  # what lies outside the bounds is not to be touched
    planes, columns = np.empty((4, len(faces))), np.ascontiguousarray(vertices.T)
    face_planes(columns, mesh.faces, planes)
    left, top, right, bottom, _ = draw_silhouette(
        columns, planes, mesh, row, image,
        np.empty((2, len(vertices))), np.empty(len(faces), np.bool_), np.empty(len(mesh.edges), np.int64),
    )  # fmt: skip
    inside = np.zeros(image.shape, bool)
    inside[top : bottom + 1, left : right + 1] = True
    assert (image[~inside] == 9).all() and image[inside].max(initial=0) <= 1
    return np.asarray(inside & (image == 1))


def bodies() -> tuple[Floats, Ints]:
    """A ring through which a camera can look, a ball inside it, and one that hides behind."""
    ring = trimesh.creation.torus(60.0, 15.0, major_sections=40, minor_sections=16)
    parts = [ring, *(trimesh.creation.icosphere(3, radius) for radius in (20.0, 30.0))]
    parts[2].apply_translation([0.0, 45.0, 10.0])
    whole = trimesh.util.concatenate(parts)
    return np.asarray(whole.vertices, float), np.asarray(whole.faces, np.int64)


@pytest.mark.parametrize("shift", [(0.0, 0.0, 0.0), (150.0, -60.0, 40.0), (380.0, 0.0, 0.0), (2000.0, 0.0, 0.0)])
def test_contours_fill_what_triangles_fill(shift: tuple[float, float, float]) -> None:
    rig: Rig = ring(4)
    vertices, faces = bodies()
    vertices = vertices + np.array(shift)
    for camera, row, wanted in zip(rig.cameras, rig.packed(), cast_masks(rig, vertices, faces), strict=True):
        found = drawn(camera, row, vertices, faces)
        assert np.count_nonzero(found != wanted) <= 2  # a pixel centre on an edge may fall either way


def test_a_face_turned_inside_out_is_refused() -> None:
    _, faces = bodies()
    faces[0] = faces[0, ::-1]
    with pytest.raises(InputError, match="not turned alike: at 3 edges"):
        MeshEdges.of(faces)


@pytest.mark.parametrize("far", [1e6, 1e19, 1e300, -1e19, np.inf, np.nan])
def test_points_far_outside_index_nothing(far: float) -> None:
    """Compiled code checks no index: a vertex anywhere must leave what lies around the image alone."""
    rng = np.random.default_rng(0)
    faces = np.array([[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]], np.int64)
    mesh = MeshEdges.of(faces)
    for _ in range(50):
        guarded = np.full((40, 60), 7, np.uint8)
        image = guarded[10:30, 10:50]
        pixels = rng.uniform(-20, 60, (2, 4))
        pixels[rng.integers(2), rng.integers(4)] = far
        camera, planes = rng.uniform(-1, 1, ROW), rng.uniform(-1, 1, (4, 4))  # faces look anywhere
        fill_silhouette(pixels, planes, mesh, camera, image, np.zeros(4, bool), np.zeros(len(mesh.edges), np.int64))
        fill_triangles(np.ascontiguousarray(pixels.T), faces, 1, image)
        guarded[10:30, 10:50] = 7
        assert (guarded == 7).all()
