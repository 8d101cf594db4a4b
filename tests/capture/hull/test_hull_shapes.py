"""Hulls of a sphere, a torus and a cube against the intersection of their analytic cones."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import trimesh
from scipy.ndimage import gaussian_filter, maximum_filter, minimum_filter
from skimage.measure import find_contours

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform
from capture.hull import HullFlag, distance_image, exact_hull, hull_field, implicit_hull, mesh_silhouette, overlap
from capture.hull.agreement import mesh_silhouettes, silhouette_agreement
from capture.hull.bounds import box_of_half_spaces
from capture.hull.contours import mask_contours
from capture.hull.distance import Outside
from capture.hull.marching import extent_of
from capture.hull.marching_tables import triangle_table

VOXEL = 3.0


def looking_at_origin(centre: np.ndarray) -> RigidTransform:
    forward = -centre / np.linalg.norm(centre)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    rotation = np.stack([right, np.cross(forward, right), forward])
    return RigidTransform(rotation, -rotation @ centre)


def ring(count: int, *, focal: float = 800.0, size: tuple[int, int] = (480, 400), distance: float = 600.0) -> Rig:
    cameras = []
    for index in range(count):
        turn, rise = 2.399963 * index, np.deg2rad(-50 + 120 * (index + 0.5) / count)
        centre = distance * np.array([np.cos(turn) * np.cos(rise), np.sin(turn) * np.cos(rise), np.sin(rise)])
        intrinsics = np.array([[focal, 0, (size[0] - 1) / 2], [0, focal, (size[1] - 1) / 2], [0, 0, 1]])
        lens = PinholeLens(size, intrinsics, np.array([-0.1, 0.02, 0, 0, 0]))
        cameras.append(LensCamera(f"cam{index:02d}", lens, looking_at_origin(centre)))
    return Rig(tuple(cameras))


SPHERE_CENTRE, SPHERE_RADIUS = np.array([3.0, -2.0, 5.0]), 70.0
TORUS_RADIUS, TUBE_RADIUS = 60.0, 22.0
CUBE_HALF = 55.0


def hits_sphere(origins: np.ndarray, rays: np.ndarray) -> np.ndarray:
    towards = SPHERE_CENTRE - origins
    along = (towards * rays).sum(axis=1)
    return (towards * towards).sum(axis=1) - along**2 < SPHERE_RADIUS**2


def hits_cube(origins: np.ndarray, rays: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        first, second = (-CUBE_HALF - origins) / rays, (CUBE_HALF - origins) / rays
    return np.minimum(first, second).max(axis=1) < np.maximum(first, second).min(axis=1)


def hits_torus(origins: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Whether f(t) = (|x|^2 + R^2 - r^2)^2 - 4 R^2 (x^2 + y^2) falls below 0 at one of its extremes along the ray."""
    foot = origins - (origins * rays).sum(axis=1, keepdims=True) * rays
    square = (foot * foot).sum(axis=1)
    near = np.flatnonzero(square < (TORUS_RADIUS + TUBE_RADIUS) ** 2)
    foot, rays, k = foot[near], rays[near], square[near] + TORUS_RADIUS**2 - TUBE_RADIUS**2
    four = 4 * TORUS_RADIUS**2
    b = 2 * k - four * (rays[:, 0] ** 2 + rays[:, 1] ** 2)
    c = -four * 2 * (foot[:, 0] * rays[:, 0] + foot[:, 1] * rays[:, 1])
    d = k * k - four * (foot[:, 0] ** 2 + foot[:, 1] ** 2)
    # f = t^4 + b t^2 + c t + d; Cardano's formula for f' = 4 (t^3 + b/2 t + c/4) = 0.
    half, third = (c / 8).astype(complex), b / 6
    root = np.sqrt(half**2 + third**3)
    u = np.where(np.abs(root - half) > np.abs(root + half), root - half, -root - half) ** (1 / 3)
    hit = np.zeros(len(square), dtype=bool)
    for turn in (1, np.exp(2j * np.pi / 3), np.exp(-2j * np.pi / 3)):
        t = (turn * u - third / np.where(u == 0, 1, turn * u)).real  # of a complex root: some t, whose f counts too
        hit[near] |= t**4 + b * t**2 + c * t + d < 0
    return hit


SHAPES = {"sphere": hits_sphere, "torus": hits_torus, "cube": hits_cube}


def silhouette(camera: LensCamera, hits: object) -> np.ndarray:
    width, height = camera.size
    # Only rays near the shape are worth casting: all shapes lie within 100 mm of the origin.
    grid = np.stack(np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float)), axis=-1).reshape(-1, 2)
    origins, rays = camera.rays(grid)
    return SHAPES[hits](np.array(origins), rays).reshape(height, width)  # type: ignore[index]


def cone_volume(rig: Rig, name: str, step: float = 2.5) -> float:
    """Volume of the intersection of the analytic cones, by counting one random point in each cell of a grid."""
    axis = np.arange(-90.0, 90.0, step)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    points = points + np.random.default_rng(0).uniform(0.0, step, points.shape)
    inside = np.ones(len(points), dtype=bool)
    for camera in rig:
        rays = points[inside] - camera.centre
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        inside[inside] = SHAPES[name](np.broadcast_to(camera.centre, rays.shape), rays)
    return float(inside.sum()) * step**3


def surface_points(name: str, rng: np.random.Generator) -> np.ndarray:
    if name == "cube":
        return np.clip(rng.normal(size=(200, 3)) * 100, -CUBE_HALF, CUBE_HALF)
    if name == "sphere":
        points = rng.normal(size=(200, 3))
        return SPHERE_CENTRE + SPHERE_RADIUS * points / np.linalg.norm(points, axis=1, keepdims=True)
    a, b = rng.uniform(0, 2 * np.pi, (2, 200))
    r = TORUS_RADIUS + TUBE_RADIUS * np.cos(b)
    return np.stack([r * np.cos(a), r * np.sin(a), TUBE_RADIUS * np.sin(b)], axis=1)


@pytest.fixture(scope="module")
def torus_views() -> tuple[Rig, list[np.ndarray]]:
    rig = ring(8)
    return rig, [silhouette(camera, "torus") for camera in rig]


@pytest.mark.parametrize("views", [8, 16, 32])
@pytest.mark.parametrize("name", ["sphere", "torus", "cube"])
def test_hull_contains_the_shape_and_has_the_volume_of_the_cones(
    name: str, views: int, rng: np.random.Generator
) -> None:
    rig = ring(views)
    masks = [silhouette(camera, name) for camera in rig]
    hull = implicit_hull(masks, rig, voxel_mm=VOXEL)
    mesh = trimesh.Trimesh(hull.vertices, hull.faces, process=False)
    assert mesh.is_watertight and mesh.is_winding_consistent
    assert hull.flags == 0 and hull.views_used.all()
    # Some 10,000 cells at the surface count by chance: the reference volume is good to one part in a thousand.
    assert hull.volume == pytest.approx(cone_volume(rig, name), rel=0.01)
    outside = -trimesh.proximity.signed_distance(mesh, surface_points(name, rng))
    assert outside.max() < VOXEL / 2
    assert hull.agreement.min() > 0.98


def test_torus_keeps_its_hole_in_both_engines(torus_views: tuple[Rig, list[np.ndarray]]) -> None:
    rig, masks = torus_views
    for hull in (implicit_hull(masks, rig, voxel_mm=VOXEL), exact_hull(masks, rig)):
        mesh = trimesh.Trimesh(hull.vertices, hull.faces, process=False)
        assert mesh.is_watertight
        assert mesh.euler_number == 0  # one handle
        assert mesh.volume == pytest.approx(hull.volume, rel=1e-9)


def test_engines_agree(torus_views: tuple[Rig, list[np.ndarray]]) -> None:
    rig, masks = torus_views
    fine, exact = implicit_hull(masks, rig, voxel_mm=1.5), exact_hull(masks, rig)
    assert fine.volume == pytest.approx(exact.volume, rel=0.01)
    assert exact.agreement.min() > 0.99


def test_field_is_a_distance_near_the_surface() -> None:
    rig = ring(16)
    field = hull_field([silhouette(camera, "sphere") for camera in rig], rig, voxel_mm=VOXEL)
    assert field is not None
    index = np.stack(np.meshgrid(*map(np.arange, field.values.shape), indexing="ij"), axis=-1)
    points = field.origin + field.spacing * index
    distance = np.linalg.norm(points - SPHERE_CENTRE, axis=-1) - SPHERE_RADIUS
    near = np.abs(distance) < 6
    # The hull of 16 views of a sphere is a little larger than the sphere, never smaller.
    error = field.values[near] - distance[near]
    assert error.max() < 1.0 and error.min() > -8.0 and np.median(np.abs(error)) < 3.0


def test_partial_view_does_not_carve_outside_its_frame() -> None:
    rig = ring(8)
    masks = [silhouette(camera, "sphere") for camera in rig]
    whole = implicit_hull(masks, rig, voxel_mm=VOXEL)
    # The same cameras, one of them with a frame that shows the left half of the sphere only.
    width = int(rig[0].project(SPHERE_CENTRE)[0])
    old = rig[0]
    assert isinstance(old, LensCamera)
    narrow = LensCamera(
        old.name, PinholeLens((width, old.size[1]), old.lens.intrinsics, old.lens.distortion), old.camera_from_world
    )
    cut = Rig((narrow, *list(rig)[1:]))
    for engine in (implicit_hull, exact_hull):
        hull = engine([masks[0][:, :width], *masks[1:]], cut)
        assert hull.flags & HullFlag.PARTLY_OUT_OF_VIEW
        # With seven complete views the volume must stay near the full one, not fall to half.
        assert 0.98 * whole.volume < hull.volume < 1.15 * whole.volume


def test_robust_mode_tolerates_a_wrong_view() -> None:
    rig = ring(8)
    masks = [silhouette(camera, "sphere") for camera in rig]
    whole = implicit_hull(masks, rig, voxel_mm=VOXEL)
    masks[2] = masks[2] & (np.arange(masks[2].shape[1]) < masks[2].shape[1] // 2)
    assert implicit_hull(masks, rig, voxel_mm=VOXEL).volume < 0.7 * whole.volume
    robust = implicit_hull(masks, rig, voxel_mm=VOXEL, tolerated=1)
    assert robust.volume > 0.99 * whole.volume
    left_out = implicit_hull(masks, rig, voxel_mm=VOXEL, views=np.arange(8) != 2)
    assert left_out.flags & HullFlag.VIEW_LEFT_OUT and left_out.volume > 0.99 * whole.volume


def counted(rig: Rig, masks: list[np.ndarray], tolerated: int, points: np.ndarray) -> np.ndarray:
    """Whether points (n, 3) belong to the hull, view by view: at most so many have it outside, and two have it inside.

    A silhouette that touches its frame's border says nothing about points outside the frame; an empty one says nothing.
    """
    denied, confirmed = np.zeros((2, len(points)), dtype=int)
    for camera, mask in zip(rig, masks, strict=True):
        if not mask.any():
            continue
        pixels = np.round(np.nan_to_num(camera.project(points), nan=-1e6)).astype(int)
        framed = (pixels >= 0).all(axis=1) & (pixels < camera.size).all(axis=1)
        inside = np.zeros(len(points), dtype=bool)
        inside[framed] = mask[pixels[framed, 1], pixels[framed, 0]]
        rim = np.concatenate([mask[[0, -1]].ravel(), mask[:, [0, -1]].ravel()])
        denied += ~inside & (framed | ~rim.any())
        confirmed += inside
    return (denied <= tolerated) & (confirmed >= 2)


@pytest.mark.parametrize("views", [3, 4, 6])
@pytest.mark.parametrize("tolerated", [0, 1, 2])
@pytest.mark.parametrize("fault", ["none", "empty", "half", "moved", "border"])
def test_tolerated_views_are_those_that_counting_finds(views: int, tolerated: int, fault: str) -> None:
    """The field's sign against a count of the views at each point of a grid that is not next to the surface."""
    rig = ring(views, focal=400.0, size=(240, 200))
    masks = [silhouette(camera, "cube") for camera in rig]
    columns = np.arange(240)
    if fault == "empty":
        masks[0] = np.zeros_like(masks[0])
    elif fault == "half":
        masks[0] = masks[0] & (columns < 120)
    elif fault == "moved":
        masks[0] = np.roll(masks[0], 30, axis=1)
    elif fault == "border":
        masks[0] = masks[0] | (masks[0].any(axis=1)[:, None] & (columns < 120))
    field = hull_field(masks, rig, voxel_mm=8.0, tolerated=tolerated)
    assert field is not None
    axes = [field.origin[axis] + field.spacing * np.arange(field.values.shape[axis]) for axis in range(3)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    inside = counted(rig, masks, tolerated, points).reshape(field.values.shape)
    clear = maximum_filter(inside, 3) == minimum_filter(inside, 3)
    assert np.count_nonzero(inside[clear]) > 100
    assert (inside[clear] == (field.values[clear] < 0)).all()
    # And nothing lies beyond the grid.
    wide = np.stack(np.meshgrid(*[np.arange(-400.0, 400.0, 20.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    beyond = ((wide < field.origin) | (wide > [axis[-1] for axis in axes])).any(axis=1)
    assert not counted(rig, masks, tolerated, wide[beyond]).any()


@pytest.mark.parametrize("engine", [implicit_hull, exact_hull])
def test_bad_silhouettes_say_why(engine: object) -> None:
    rig = ring(4)
    masks = [silhouette(camera, "sphere") for camera in rig]
    nothing = [np.zeros_like(mask) for mask in masks]
    assert engine(nothing, rig).flags & HullFlag.NO_SILHOUETTE  # type: ignore[operator]
    white = engine([np.ones_like(mask) for mask in masks], rig)  # type: ignore[operator]
    assert white.is_empty and white.flags & HullFlag.FULL_SILHOUETTE
    blind = engine([nothing[0], *masks[1:]], rig)  # type: ignore[operator]
    assert not blind.is_empty and blind.flags & HullFlag.EMPTY_SILHOUETTE and not blind.views_used[0]
    # Silhouettes that cannot belong together: a spot in opposite corners of each frame.
    spots = []
    for index, mask in enumerate(masks):
        spot = np.zeros_like(mask)
        spot[20:40, 20:40] = index % 2 == 0
        spot[-40:-20, -40:-20] = index % 2 == 1
        spots.append(spot)
    empty = engine(spots, rig)  # type: ignore[operator]
    assert empty.is_empty and empty.flags & HullFlag.EMPTY_HULL and empty.volume == 0


def test_few_views_say_so() -> None:
    rig = ring(8)
    masks: list[np.ndarray | None] = [silhouette(camera, "sphere") for camera in rig]
    assert not implicit_hull(masks, rig, voxel_mm=6.0).flags & HullFlag.FEW_VIEWS
    masks[:3] = [None] * 3
    assert implicit_hull(masks, rig, voxel_mm=6.0).flags & HullFlag.FEW_VIEWS


def test_drawn_silhouette_is_the_analytic_one() -> None:
    camera = ring(3)[1]
    sphere = trimesh.creation.icosphere(4, SPHERE_RADIUS)
    drawn = mesh_silhouette(camera, sphere.vertices + SPHERE_CENTRE, sphere.faces.astype(np.int32))
    assert overlap(drawn, silhouette(camera, "sphere")) > 0.99  # type: ignore[arg-type]


def test_every_case_of_marching_cubes_is_closed() -> None:
    """The border of the triangles of a case, with signs, is what its complement leaves open: no edge inside is free."""
    table = triangle_table()
    for row in table:
        triangles = row[1 : 1 + 3 * row[0]].reshape(-1, 3)
        count: dict[tuple[int, int], int] = {}
        for a, b, c in triangles:
            for edge in ((a, b), (b, c), (c, a)):
                assert edge not in count
                count[edge] = 1


def test_box_of_half_spaces() -> None:
    normals = np.concatenate([np.eye(3), -np.eye(3)])
    planes = np.concatenate([normals, -np.array([[1.0], [2], [3], [4], [5], [6]])], axis=1)
    assert box_of_half_spaces(planes, 1e3) == pytest.approx(np.array([[-4.0, -5, -6], [1, 2, 3]]))
    assert np.isinf(box_of_half_spaces(planes[:-1], 1e3)).any()
    assert np.isnan(box_of_half_spaces(np.array([[1.0, 0, 0, 1], [-1, 0, 0, 1], [0, 1, 0, 0]]), 1e3)).all()


def test_traced_outlines_are_those_of_marching_squares(rng: np.random.Generator) -> None:
    """Against scikit-image: the same points and areas, of masks with holes and diagonals and of mattes."""
    rough = gaussian_filter(rng.normal(size=(60, 80)), 1.0)
    for matte in (rough > 0.02, np.clip(3 * rough + 0.5, 0, 1).astype(np.float32)):
        padded = np.pad(matte.astype(np.float32), 1)
        wanted = [loop[:-1, ::-1] - 1 for loop in find_contours(padded, 0.5, fully_connected="low")]
        traced = mask_contours(matte)
        assert len(traced) == len(wanted) > 20

        def area(loop: np.ndarray) -> float:
            after = np.roll(loop, -1, axis=0)
            return float(abs((loop[:, 0] * after[:, 1] - loop[:, 1] * after[:, 0]).sum()) / 2)

        np.testing.assert_allclose(sorted(map(area, traced)), sorted(map(area, wanted)), rtol=1e-4)
        points = [np.array(sorted(map(tuple, np.round(np.concatenate(x), 4)))) for x in (traced, wanted)]
        np.testing.assert_allclose(*points, atol=2e-4)


@pytest.mark.parametrize("edge", [10.1, 10.5, 10.9])
def test_a_matte_places_the_edge_between_pixels(edge: float) -> None:
    """Coverage of a half-covered column says where the edge runs; a mask can only say half-way between two centres."""
    columns = np.arange(40, dtype=np.float32)
    coverage = np.clip(edge + 0.5 - columns, 0.0, 1.0) * (columns > 4)
    matte = np.zeros((30, 40), dtype=np.float32)
    matte[5:25] = coverage
    image = distance_image(matte)
    row = image.values[15 - image.origin[1]]
    inside = 9 - image.origin[0]
    # Between a full pixel and one of coverage a the line crosses 1/2 at 0.5 / (1 - a), the edge is at 0.5 + a: 0.086 px
    # apart at most, and none on average; a mask is 0.5 px off at most.
    crossing = np.interp(0.0, row[inside : inside + 4], np.arange(9, 13))
    assert crossing == pytest.approx(edge, abs=0.09)
    assert mask_contours(matte)[0][:, 0].max() == pytest.approx(edge, abs=0.09)


@pytest.mark.parametrize("centre", [(0.0, 0.0, 0.0), (560.0, 0.0, 0.0), (600.0, 0.0, 30.0), (1e6, 0.0, 0.0)])
def test_a_mesh_that_reaches_up_to_a_camera_or_behind_it_is_drawn_within_the_image(
    centre: tuple[float, float, float],
) -> None:
    view = LensCamera("one", ring(1)[0].lens, looking_at_origin(np.array([600.0, 0.0, 0.0])))
    for radius in (40.0, 700.0, 1e7):
        mesh = trimesh.creation.icosphere(2, radius)
        drawn = mesh_silhouette(view, np.asarray(mesh.vertices) + centre, np.asarray(mesh.faces, dtype=np.int32))
        assert drawn.shape == (400, 480)
    ahead = trimesh.creation.icosphere(3, 40.0)
    assert mesh_silhouette(view, np.asarray(ahead.vertices), np.asarray(ahead.faces, dtype=np.int32)).any()


def test_distances_are_exact_near_the_edge_and_never_too_large(rng: np.random.Generator) -> None:
    mask = np.zeros((160, 213), dtype=bool)
    mask[40:120, 60:150] = cv2.blur(rng.random((80, 90)), (9, 9)) > 0.5
    image = distance_image(mask)
    height, width = image.values.shape
    (left, top), inside = image.origin, image.values < 0
    np.testing.assert_array_equal(inside, mask[top : top + height, left : left + width])
    # Of the pixel grid: from the pixels whose neighbour is of the other kind, which are half a pixel from the edge.
    edge = np.zeros_like(inside)
    for axis in (0, 1):
        differs = np.diff(inside, axis=axis)
        edge |= np.pad(differs, [(0, 1), (0, 0)] if axis == 0 else [(0, 0), (0, 1)])
        edge |= np.pad(differs, [(1, 0), (0, 0)] if axis == 0 else [(0, 0), (1, 0)])
    true = cv2.distanceTransform((~edge).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_PRECISE) + 0.5
    said = np.abs(image.values)
    near = (true > 3.0) & (true < 12.0)
    assert near.any() and np.abs(said - true)[near].max() < 0.6  # corners are cut off by the polyline
    assert (said <= true + 0.6).all()


@pytest.mark.parametrize("shape", [(40, 57), (9, 8), (2, 2), (31, 3)])
def test_masks_have_the_distances_of_mattes_that_are_all_or_nothing(
    shape: tuple[int, int], rng: np.random.Generator
) -> None:
    for share in (0.02, 0.5, 0.9):
        mask = rng.random(shape) < share
        mask[0, 0], mask[-1, -1] = True, False
        for outside in Outside:
            one, other = (distance_image(kind, outside=outside) for kind in (mask, mask.astype(np.float32)))
            np.testing.assert_array_equal(one.values, other.values)
            assert one.origin == other.origin and one.box == other.box and one.view is other.view


def test_the_overlap_is_counted_as_in_the_drawn_silhouette(rng: np.random.Generator) -> None:
    rig, mesh = ring(3), trimesh.creation.torus(40.0, 15.0)
    vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces, dtype=np.int32)
    drawn = mesh_silhouettes(rig, vertices, faces)
    masks = [cv2.blur(rng.random(one.shape), (15, 15)) > 0.5 for one in drawn]
    wanted = [overlap(*both) for both in zip(drawn, masks, strict=True)]
    assert silhouette_agreement(rig, masks, vertices, faces).tolist() == wanted
    np.testing.assert_array_equal(extent_of(vertices), (vertices.min(axis=0), vertices.max(axis=0)))
