"""The field in blocks against itself at single points, and the kernels that stand for slower ways."""

from __future__ import annotations

import numpy as np
import pytest

from capture.hull.blocks import BLOCK, Grid, active_blocks
from capture.hull.distance import Outside, pack_distances
from capture.hull.field import FieldViews, surface_normals, value_at
from capture.hull.implicit import gather
from capture.hull.marching import _eigen, _same_pairs, march
from capture.hull.sampling import project_corners, sample_blocks
from capture.hull.scales import view_scales
from tests.capture.hull.test_hull_shapes import ring, silhouette


def torus(partial: bool) -> tuple[FieldViews, Grid]:
    rig = ring(5)
    masks = [silhouette(camera, "torus") for camera in rig]
    evidence = gather(masks, rig, outside=Outside.UNKNOWN if partial else Outside.AUTO)
    assert evidence.box is not None
    rows = np.array([camera.packed() for camera in evidence.cameras])
    scales, packed = view_scales(rows, evidence.box), pack_distances(evidence.images)
    views = FieldViews(rows, scales.metric, scales.gain, packed.values, packed.layout, 0, 2)
    return views, Grid.around(evidence.box, 3.0)


@pytest.mark.parametrize("partial", [False, True])
def test_blocks_hold_the_field_near_the_surface(partial: bool) -> None:
    views, grid = torus(partial)
    every = active_blocks(views, grid)
    corners = project_corners(views.rows, grid, every)
    active, values, decides = sample_blocks(views, grid, every, corners, True, 1.5 * grid.spacing)
    slow_active, slow, _ = sample_blocks(views, grid, every, corners, False, np.inf)
    crossed = [(block < 0).any() and (block >= 0).any() for block in slow]
    kept = {tuple(block) for block in active}
    assert all(tuple(block) in kept for block in slow_active[crossed])
    at = {tuple(block): index for index, block in enumerate(slow_active)}
    same = slow[[at[tuple(block)] for block in active]]
    near = np.abs(same) < grid.spacing
    assert near.any() and np.abs(values - same)[near].max() < 0.05  # projections are interpolated
    # The view that decides has the largest distance of all.
    worst = np.empty(1)
    for n, i, j, k in np.argwhere(near & (decides >= 0))[::97]:
        point = grid.origin + (active[n] * BLOCK + [i, j, k]) * grid.spacing
        one = views._replace(
            rows=views.rows[[decides[n, i, j, k]]],
            metric=views.metric[[decides[n, i, j, k]]],
            layout=views.layout[[decides[n, i, j, k]]],
            least=1,
        )
        assert value_at(one, point, worst) > value_at(views, point, worst) - 0.1


def test_points_far_outside_are_left_early_and_others_are_not() -> None:
    views, grid = torus(partial=False)
    every = active_blocks(views, grid)
    corners = project_corners(views.rows, grid, every)
    enough = 1.5 * grid.spacing
    active, values, decides = sample_blocks(views, grid, every, corners, True, enough)
    same, full, all_views = sample_blocks(views, grid, every, corners, True, np.inf)
    np.testing.assert_array_equal(active, same)
    near = full <= enough
    np.testing.assert_array_equal(values[near], full[near])
    np.testing.assert_array_equal(decides[near], all_views[near])
    assert (values[~near] > enough).all() and (values[~near] < full[~near]).any()


def test_known_views_give_the_normals_of_all() -> None:
    views, grid = torus(partial=False)
    every = active_blocks(views, grid)
    corners = project_corners(views.rows, grid, every)
    active, values, decides = sample_blocks(views, grid, every, corners, True, 1.5 * grid.spacing)
    normals = {}

    def normals_at(points: np.ndarray, known: np.ndarray) -> np.ndarray:
        found = surface_normals(views, points, known, 0.5 * grid.spacing)
        normals["known"] = found
        normals["all"] = surface_normals(views, points, np.full(len(points), -1, np.int8), 0.5 * grid.spacing)
        normals["share"] = (known >= 0).mean()
        return found

    march(active, values, grid.origin, grid.spacing, grid.blocks, decides=decides, normals_at=normals_at)
    cosine = np.sum(normals["known"] * normals["all"], axis=1)
    assert normals["share"] > 0.5 and np.mean(cosine > 0.99) > 0.98


def test_turns_find_the_eigenvectors(rng: np.random.Generator) -> None:
    for _ in range(200):
        normals = rng.normal(size=(rng.integers(1, 6), 3))
        matrix = normals.T @ normals
        squares, axes = np.empty(3), np.empty((3, 3))
        _eigen(matrix.copy(), squares, axes)
        np.testing.assert_allclose(squares, np.linalg.eigvalsh(matrix), atol=1e-12 * squares[-1])
        np.testing.assert_allclose(axes @ np.diag(squares) @ axes.T, matrix, atol=1e-12 * squares[-1])


def test_pairs_find_their_like_in_any_order(rng: np.random.Generator) -> None:
    pairs = rng.integers(0, 9, size=(60, 2)).astype(np.int32)
    before = _same_pairs(pairs, 9)
    for n, other in enumerate(before):
        alike = [m for m in range(n) if set(pairs[m]) == set(pairs[n])]
        assert other in alike if alike else other == -1
