"""Light images of the studio: closed forms, exact silhouettes, shadows, determinism, each difficulty by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import trimesh

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.ring import look_at
from calibration.foundation.arrays import Floats, Singles
from calibration.foundation.errors import InputError
from capture.raycasting import cast_silhouette
from capture.studio.light.light_images import LightView, SubjectPose
from capture.studio.light.sensor import Sensor
from capture.studio.scene.options import StudioOptions
from capture.studio.scene.stage import build_stage
from capture.studio.scene.surfaces import MovingSurface, icosphere, mesh_edges, shading_normals

INTRINSICS = np.array([[520.0, 0.0, 161.3], [0.0, 515.0, 118.8], [0.0, 0.0, 1.0]])
BARREL = np.array([-0.28, 0.10, 0.0011, -0.0008, 0.01])


def lens_camera(distortion: Floats = BARREL, eye: tuple[float, float, float] = (180.0, 60.0, 120.0)) -> LensCamera:
    lens = PinholeLens((320, 240), INTRINSICS, distortion)
    return LensCamera("cam", lens, look_at(eye, (0.0, 0.0, 20.0)))


def rim_crossing(camera: LensCamera, centre: Floats, radius: float, inner: Floats, outer: Floats) -> Floats:
    """Closed form: where on the pixel segments from ``inner`` to ``outer`` (n, 2) the sphere's rim lies, 0 to 1.

    A ray meets the sphere if its angle to the centre is below asin(R / d).
    """
    towards = centre - camera.centre
    distance = np.linalg.norm(towards)
    least = np.sqrt(1.0 - (radius / distance) ** 2)
    low, high = np.zeros(len(inner)), np.ones(len(inner))
    for _ in range(40):
        middle = 0.5 * (low + high)
        _, rays = camera.rays(inner + middle[:, None] * (outer - inner))
        meets = rays @ (towards / distance) > least
        low, high = np.where(meets, middle, low), np.where(meets, high, middle)
    return 0.5 * (low + high)


def rim_errors(camera: LensCamera, centre: Floats, radius: float, coverage: Singles) -> Floats:
    """Distance of the image's edge from the closed form across the edge, px, on every image row and column.

    On one row the covered length right of the centre is where the edge lies, averaged over the row's height.
    """
    errors = []
    sub = (np.arange(64) + 0.5) / 64 - 0.5
    middle = np.rint(camera.project(centre)).astype(int)
    image = coverage.astype(np.float64)
    for along in (0, 1):
        lines = image if along == 0 else image.T
        for line in range(len(lines)):
            if lines[line, middle[along]] < 1.0:
                continue
            for step in (1, -1):
                reach = lines[line, middle[along] :: step]
                measured = reach.sum() - 0.5  # from the centre pixel's middle to the edge
                inner = np.empty((64, 2))
                inner[:, along], inner[:, 1 - along] = middle[along], line + sub
                outer = inner.copy()
                outer[:, along] += step * (len(reach) - 1)
                true = rim_crossing(camera, centre, radius, inner, outer) * (len(reach) - 1)
                slope = abs(true[-1] - true[0])
                if slope < 1.0:  # steeper edges are measured on the other axis
                    errors.append((measured - true.mean()) / np.hypot(1.0, slope))
    return np.array(errors)


@pytest.mark.parametrize("fisheye", [False, True])
def test_sphere_edge_is_at_the_closed_form_through_a_distorted_lens(fisheye: bool) -> None:
    camera = lens_camera()
    if fisheye:
        lens = FisheyeLens((320, 240), INTRINSICS, np.array([0.05, -0.02, 0.003, 0.0]))
        camera = replace(camera, lens=lens)
    centre, radius = np.array([4.0, -3.0, 22.0]), 21.0
    vertices, faces = icosphere(radius, centre, subdivisions=6)
    view = LightView(camera, build_stage(40.0, StudioOptions()))
    coverage = view.picture(SubjectPose(MovingSurface.still(vertices, faces), vertices)).coverage
    errors = rim_errors(camera, centre, radius, coverage)
    assert len(errors) > 200
    assert np.abs(errors).max() < 0.05
    assert abs(errors.mean()) < 0.003  # no bias: a misplaced pixel centre or a shrunk mesh would show here at once


def blob(subdivisions: int = 4) -> tuple[Floats, np.ndarray]:
    """A lumpy closed body standing on the floor."""
    vertices, faces = icosphere(1.0, subdivisions=subdivisions)
    lumps = 1.0 + 0.25 * np.sin(3.0 * vertices[:, 0] + 1.0) * np.cos(4.0 * vertices[:, 1])
    return vertices * lumps[:, None] * np.array([24.0, 12.0, 14.0]) + np.array([0.0, 0.0, 20.0]), faces


def test_true_mask_is_the_projection_of_the_skin_to_subpixel() -> None:
    camera = lens_camera()
    vertices, faces = blob()
    picture = LightView(camera, build_stage(50.0, StudioOptions())).picture(
        SubjectPose(MovingSurface.still(vertices, faces), vertices)
    )
    cast = cast_silhouette(camera, vertices, faces)
    differ = picture.mask != cast
    # A pixel's centre and the larger part of its area may lie on two sides of the edge, but only close to half.
    assert differ.sum() < 0.01 * cast.sum()
    assert np.abs(picture.coverage[differ] - 0.5).max() < 0.2
    assert abs(float(picture.coverage.sum()) / cast.sum() - 1.0) < 2e-3


def test_a_wire_thinner_than_a_pixel_is_not_lost() -> None:
    camera = lens_camera(np.zeros(0))
    wire = trimesh.creation.cylinder(radius=0.06, height=60.0, sections=12)
    wire.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, [0.0, 1.0, 0.3]))
    wire.apply_translation([0.0, 0.0, 20.0])
    wire = wire.subdivide_to_size(1.0)
    vertices = np.asarray(wire.vertices, dtype=np.float64)
    picture = LightView(camera, build_stage(50.0, StudioOptions())).picture(
        SubjectPose(MovingSurface.still(vertices, wire.faces), vertices)
    )
    ends = camera.project(vertices[[vertices[:, 0].argmin(), vertices[:, 0].argmax()]])
    length = np.linalg.norm(ends[1] - ends[0])
    width = 2 * 0.06 * 520.0 / np.linalg.norm(camera.centre - [0.0, 0.0, 20.0])
    assert width < 0.4
    assert abs(picture.coverage.sum() / (length * width) - 1.0) < 0.1


def still_view(**numbers: float) -> tuple[LightView, MovingSurface, Sensor]:
    options = StudioOptions(**numbers)
    surface = MovingSurface.still(*blob(3))
    half = np.array([[260.0, 0.0, 80.6], [0.0, 257.5, 59.4], [0.0, 0.0, 1.0]])  # a quarter of the pixels is enough
    camera = replace(lens_camera(), lens=PinholeLens((160, 120), half, BARREL))
    return LightView(camera, build_stage(50.0, options)), surface, Sensor(0, camera.size, options)


@pytest.mark.parametrize(
    "numbers",
    [
        {"shadows": 0.7},
        {"texture": 0.5},
        {"floor_texture": 0.5},
        {"uneven_light": 0.4},
        {"noise": 3.0},
        {"defocus": 1.5},
        {"vignetting": 0.4},
        {"clutter": 60},
        {"reflections": 0.3},
        {"flicker": 0.2},
        {"lamps": 4},
    ],
)
def test_each_difficulty_by_itself_changes_the_picture_and_repeats(numbers: dict[str, float]) -> None:
    plain_view, surface, plain_sensor = still_view()
    pose = SubjectPose(surface, surface.at(0.0))
    plain = plain_sensor.expose(plain_view.picture(pose).light, frame=1, frames=10, rate_hz=120.0)
    view, surface, sensor = still_view(**numbers)
    first = sensor.expose(view.picture(pose).light, frame=1, frames=10, rate_hz=120.0)
    again_view, _, again_sensor = still_view(**numbers)
    again = again_sensor.expose(again_view.picture(pose).light, frame=1, frames=10, rate_hz=120.0)
    assert not np.array_equal(plain, first)
    assert np.array_equal(first, again)


def test_colour_pictures_have_three_channels() -> None:
    view, surface, sensor = still_view(colour=True)
    image = sensor.expose(view.picture(SubjectPose(surface, surface.at(0.0))).light, frame=0)
    assert image.shape == (120, 160, 3)


def test_without_the_subject_the_picture_is_the_plate() -> None:
    view, surface, _ = still_view(shadows=0.8, floor_texture=0.3, clutter=30)
    far = surface.at(0.0) + np.array([0.0, 0.0, 5000.0])
    behind = SubjectPose(surface, far + np.array([50000.0, 0.0, 0.0]))
    assert np.array_equal(view.picture(behind).light, view.plate)


def test_a_shadow_falls_where_the_lamp_throws_it() -> None:
    view, surface, _ = still_view(shadows=1.0, lamps=1)
    centre = surface.at(0.0).mean(axis=0)
    lamp = view.stage.lamps[0].position
    spot = lamp + (centre - lamp) * lamp[2] / (lamp[2] - centre[2])
    picture = view.picture(SubjectPose(surface, surface.at(0.0)))
    column, row = np.rint(view.camera.project(spot)).astype(int)
    assert picture.coverage[row, column] == 0.0  # the floor is seen there
    ambient = view._still.layers[0][row, column]
    assert np.allclose(picture.light[row, column], ambient, rtol=1e-5)


def test_a_mirror_image_stands_behind_the_far_wall() -> None:
    view, surface, _ = still_view(reflections=0.4)
    assert view.stage.walls is not None
    half, _ = view.stage.walls
    lit = view.picture(SubjectPose(surface, surface.at(0.0))).light
    changed = np.abs(lit - view.plate)[..., 0] > 1e-3
    # The camera looks along -x mostly: the wall x = -half mirrors the body at x -> -2 half - x.
    mirrored = surface.at(0.0) * np.array([-1.0, 1.0, 1.0]) + np.array([-2.0 * half, 0.0, 0.0])
    column, row = np.rint(view.camera.project(mirrored.mean(axis=0))).astype(int)
    assert changed[row, column]


def test_noise_has_the_stated_strength_at_mid_grey() -> None:
    sensor = Sensor(0, (320, 240), StudioOptions(noise=4.0))
    grey = np.full((240, 320, 1), 128.0 / 235.0, dtype=np.float32)
    image = sensor.expose(grey, frame=3).astype(float)
    assert abs(image.std() - 4.0) < 0.1
    assert abs(image.mean() - 128.0) < 0.1
    assert not np.array_equal(image, Sensor(1, (320, 240), StudioOptions(noise=4.0)).expose(grey, frame=3))


def test_gain_drifts_to_the_stated_share() -> None:
    sensor = Sensor(0, (4, 4), StudioOptions(gain_drift=0.25))
    assert sensor.gain(0, 11, 60.0) == 1.0
    assert np.isclose(sensor.gain(10, 11, 60.0), 1.25)


def test_surface_between_frames_is_exact_at_frames_and_for_even_motion() -> None:
    vertices, faces = icosphere(1.0, subdivisions=1)
    frames = vertices[None] + np.arange(6.0)[:, None, None] * np.array([2.0, 0.0, 0.0])
    surface = MovingSurface(frames, faces, 100.0, vertices, np.full_like(vertices, 0.3))
    assert np.array_equal(surface.at(3.0), frames[3])
    assert np.allclose(surface.at(2.3), vertices + np.array([4.6, 0.0, 0.0]))
    assert np.allclose(surface.at(0.4), vertices + np.array([0.8, 0.0, 0.0]))


def test_edges_of_a_closed_mesh_have_two_faces() -> None:
    _, faces = icosphere(1.0, subdivisions=2)
    edges = mesh_edges(faces)
    assert len(edges) == 3 * len(faces) // 2
    assert (edges >= 0).all()
    for a, b, f, g in edges[:50]:
        assert {a, b} <= set(faces[f]) and {a, b} <= set(faces[g])


def test_normals_of_a_ball_point_outwards() -> None:
    vertices, faces = icosphere(3.0, subdivisions=4)
    assert np.einsum("ij,ij->i", shading_normals(vertices, faces), vertices / 3.0).min() > 0.999


@pytest.mark.parametrize("wrong", [{"noise": -1.0}, {"shadows": 2.0}, {"lamps": 0}, {"motion_blur": float("nan")}])
def test_options_out_of_range_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        StudioOptions(**wrong)
