"""X-ray images of the studio: closed forms, watertight lengths, the intensifier's map."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.ring import look_at
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from capture.raycasting import SurfaceScene
from capture.studio.scene.surfaces import icosphere
from capture.studio.xray.intensifier import Intensifier
from capture.studio.xray.xray_images import METAL, Beads, Solid, XrayOptions, XrayView


def source(size: tuple[int, int] = (200, 160)) -> LensCamera:
    lens = PinholeLens(size, np.array([[900.0, 0, 99.0], [0, 900.0, 81.0], [0, 0, 1]]))
    return LensCamera("x", lens, look_at((500.0, 0.0, 30.0), (0.0, 0.0, 30.0)), kind="xray")


def bent(camera: LensCamera) -> Intensifier:
    return Intensifier(camera.size, np.array([101.0, 78.0]), 95.0, pincushion=0.08, twist=0.05)


def cylinder_chords(view: XrayView, radius: float, half: float) -> Floats:
    """Closed form: length (H, W) of each ray inside the upright cylinder |xy| < radius, |z - 30| < half."""
    d = view.rays.directions.astype(np.float64)
    d /= np.linalg.norm(d, axis=2, keepdims=True)
    o = view.rays.origin - np.array([0.0, 0.0, 30.0])
    a = d[..., 0] ** 2 + d[..., 1] ** 2
    b = d[..., 0] * o[0] + d[..., 1] * o[1]
    root = np.sqrt(np.maximum(b**2 - a * (o[0] ** 2 + o[1] ** 2 - radius**2), 0.0))
    first, last = (-b - root) / a, (-b + root) / a
    with np.errstate(divide="ignore"):
        ends = np.stack([(-half - o[2]) / d[..., 2], (half - o[2]) / d[..., 2]])
    return np.maximum(np.minimum(last, ends.max(axis=0)) - np.maximum(first, ends.min(axis=0)), 0.0)


@pytest.mark.parametrize("distorted", [False, True])
def test_uniform_cylinder_has_the_intensity_of_the_closed_form(distorted: bool) -> None:
    camera = source()
    view = XrayView(camera, XrayOptions(), intensifier=bent(camera) if distorted else None)
    radius, half, attenuation = 22.0, 25.0, 0.03
    mesh = trimesh.creation.cylinder(radius=radius, height=2 * half, sections=2000)
    mesh.apply_translation([0.0, 0.0, 30.0])
    intensity = view.transmission([Solid(mesh.vertices, mesh.faces, attenuation)]).astype(np.float64)
    wanted = np.exp(-attenuation * cylinder_chords(view, radius, half))
    assert (wanted < 0.3).sum() > 2500  # the cylinder fills much of the picture
    assert np.abs(intensity / wanted - 1.0).max() < 1e-3


def test_lengths_agree_with_all_intersections_of_a_ray_caster() -> None:
    camera = source((80, 64))
    view = XrayView(camera, XrayOptions())
    mesh = trimesh.creation.torus(20.0, 6.0)
    mesh.apply_transform(trimesh.transformations.rotation_matrix(0.7, [1.0, 0.4, 0.2]))
    mesh.apply_translation([0.0, 2.0, 25.0])
    depth = view.optical_depth([Solid(mesh.vertices, mesh.faces, 1.0)])
    scene = SurfaceScene([(mesh.vertices, mesh.faces)])
    rays, distances = scene.all_hits(view.rays.origin, view.rays.directions.reshape(-1, 3))
    reference = np.zeros(depth.size)
    odd = np.zeros(depth.size, dtype=bool)
    for ray in np.unique(rays):
        along = np.sort(distances[rays == ray].astype(np.float64))
        odd[ray] = len(along) % 2 == 1
        reference[ray] = np.diff(along)[::2].sum()
    same = ~odd
    assert same.mean() > 0.99  # the ray caster may count an edge twice; ours may not
    assert np.abs(depth.ravel() - reference)[same].max() < 2e-2  # float32 distances of 500 mm


def test_a_ray_through_edges_and_corners_is_counted_once() -> None:
    """A box whose edges, diagonals and corners lie exactly on pixel rays: any slip leaves 500 mm, not 40."""
    lens = PinholeLens((101, 101), np.array([[400.0, 0, 50.0], [0, 400.0, 50.0], [0, 0, 1]]))
    camera = LensCamera("x", lens, look_at((400.0, 0.0, 0.0), (0.0, 0.0, 0.0)), kind="xray")
    mesh = trimesh.creation.box(extents=(40.0, 40.0, 40.0)).subdivide().subdivide()
    depth = XrayView(camera, XrayOptions()).optical_depth([Solid(mesh.vertices, mesh.faces, 1.0)])
    assert depth.min() >= -1e-9
    assert depth.max() < 42.0
    assert abs(depth[50, 50] - 40.0) < 1e-4


def test_bead_chord_is_exact_and_beads_are_darkest_at_their_projected_centre() -> None:
    camera = source()
    view = XrayView(camera, XrayOptions(), intensifier=bent(camera))
    centre = np.array([[3.0, -8.0, 36.0]])
    radius = np.array([4.0])
    image = view.transmission([], [Beads(centre, radius, 0.1)]).astype(np.float64)
    depth = -np.log(image) / 0.1
    towards = centre[0] - view.rays.origin
    # mean over the pixel of a chord near the middle of the ball: 2 sqrt(r^2 - d^2)
    row, column = np.unravel_index(np.argmax(depth), depth.shape)
    ray = view.rays.directions[row, column].astype(np.float64)
    ray /= np.linalg.norm(ray)
    gap = np.linalg.norm(np.cross(towards, ray))
    assert abs(depth[row, column] - 2.0 * np.sqrt(radius[0] ** 2 - gap**2)) < 0.02
    weight = depth.sum()
    rows, columns = np.mgrid[0 : depth.shape[0], 0 : depth.shape[1]]
    found = np.array([(columns * depth).sum(), (rows * depth).sum()]) / weight
    # The centroid of a ball's shadow lies a hair off its centre's image (perspective and bent image).
    assert np.abs(found - view.observed(centre)[0]).max() < 0.03


def test_bone_in_tissue_adds_up_whatever_the_order() -> None:
    camera = source()
    view = XrayView(camera, XrayOptions())
    outer = icosphere(20.0, (0.0, 0.0, 30.0), subdivisions=4)
    inner = icosphere(8.0, (2.0, 3.0, 31.0), subdivisions=4)
    solids = [Solid(*outer, 0.02), Solid(*inner, 0.04)]
    both = view.transmission(solids)
    np.testing.assert_allclose(both, view.transmission(solids[::-1]), rtol=1e-12)
    product = view.transmission(solids[:1]) * view.transmission(solids[1:])
    assert np.allclose(both, product, rtol=1e-6)


def test_intensifier_map_and_its_inverse() -> None:
    intensifier = Intensifier((768, 768), np.array([380.0, 390.0]), 370.0, pincushion=0.12, twist=-0.06)
    pixels = np.random.default_rng(1).uniform(0, 767, (5000, 2))
    assert np.abs(intensifier.remove(intensifier.apply(pixels)) - pixels).max() < 1e-9
    assert np.abs(intensifier.apply(intensifier.centre) - intensifier.centre).max() == 0.0
    # Pincushion stretches the rim against the centre, the S turns it: both by about the stated amounts.
    rim = intensifier.apply(intensifier.centre + np.array([370.0, 0.0])) - intensifier.centre
    near = intensifier.apply(intensifier.centre + np.array([0.37, 0.0])) - intensifier.centre
    assert np.isclose(np.hypot(*rim) / 370.0 - np.hypot(*near) / 0.37, 0.12)
    assert np.isclose(np.arctan2(rim[1], rim[0]) - np.arctan2(near[1], near[0]), -0.06)
    # The ideal image is the one nearest to the observed: the best similarity between them is nearly the identity.
    disc = pixels[np.linalg.norm(pixels - intensifier.centre, axis=1) < 370.0] - intensifier.centre
    ideal = disc @ np.array([1.0, 1j])
    seen = (intensifier.apply(disc + intensifier.centre) - intensifier.centre) @ np.array([1.0, 1j])
    assert abs(np.vdot(ideal, seen) / np.vdot(ideal, ideal) - 1.0) < 0.005
    with pytest.raises(InputError, match="pincushion"):
        Intensifier((10, 10), np.zeros(2), 5.0, pincushion=0.6)


def test_noise_is_that_of_the_counted_photons_and_repeats() -> None:
    camera = source()
    view = XrayView(camera, XrayOptions(photons=2000.0, seed=3))
    flat = np.full((160, 200), 0.6, dtype=np.float32)
    image = view.expose(flat, frame=4).astype(np.float64)
    assert np.isclose(image.mean() / 215.0, 0.6, rtol=2e-3)
    assert np.isclose(image.std() / image.mean(), 1.0 / np.sqrt(0.6 * 2000.0), rtol=0.05)
    assert np.array_equal(view.expose(flat, frame=4), view.expose(flat, frame=4))
    assert not np.array_equal(view.expose(flat, frame=4), view.expose(flat, frame=5))


def test_scatter_keeps_the_light_of_an_even_field() -> None:
    view = XrayView(source(), XrayOptions(scatter=0.3))
    image = view.expose(np.full((160, 200), 0.5, dtype=np.float32), frame=0)
    assert np.ptp(image.astype(int)) == 0
    shadow = np.full((160, 200), 1.0, dtype=np.float32)
    shadow[60:100, 80:120] = 0.0
    assert view.expose(shadow, frame=0)[80, 100] > 30  # the glow fills the deepest shadow


def test_metal_is_darker_than_bone_of_the_same_size() -> None:
    assert METAL > 10 * 0.06
