"""The grid search gives what a search through all points gives."""

from __future__ import annotations

import numpy as np

from tracking.observations.point_grid import ALIKE, fill_grid, nearest_alike


def test_nearest_of_like_normal_is_that_of_a_search_through_all() -> None:
    rng = np.random.default_rng(2)

    def points(count: int, spread: float) -> np.ndarray:
        angle = rng.uniform(0, 2 * np.pi, count)
        return np.column_stack([rng.uniform(-spread, spread, (count, 2)), np.cos(angle), np.sin(angle)])

    among, queries = points(300, 200.0), points(400, 320.0)  # some queries lie outside the grid
    grid = fill_grid(among)
    assert sorted(grid[1]) == list(range(300))
    assert (grid[0] == among[grid[1]]).all()
    for limit in (20.0, 1000.0):
        found = [nearest_alike(query, limit, *grid) for query in queries]
        for query, at in zip(queries, found, strict=True):
            distance = np.linalg.norm(among[:, :2] - query[:2], axis=1)
            distance[among[:, 2:] @ query[2:] < ALIKE] = np.inf
            wanted = int(np.argmin(distance)) if distance.min() < limit else -1
            assert at == wanted
    assert -1 in [nearest_alike(query, 20.0, *grid) for query in queries]
