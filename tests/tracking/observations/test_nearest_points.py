"""The search of many queries at a time gives what a search of one gives."""

from __future__ import annotations

import numpy as np

from tracking.observations.nearest_points import ALIKE, TOGETHER, nearest_alike


def test_nearest_of_like_normal_is_that_of_a_search_through_all() -> None:
    rng = np.random.default_rng(2)

    def points(count: int, spread: float) -> np.ndarray:
        angle = rng.uniform(0, 2 * np.pi, count)
        return np.column_stack([rng.uniform(-spread, spread, (count, 2)), np.cos(angle), np.sin(angle)])

    among, queries = points(300, 200.0), points(400, 320.0)  # some queries lie outside of what holds the points
    assert len(queries) % TOGETHER
    limits = np.where(np.arange(400) % 3 == 0, 1000.0, rng.uniform(5.0, 40.0, 400))
    found = nearest_alike(queries, limits, np.column_stack([among, rng.normal(size=300)]))
    for query, limit, at in zip(queries, limits, found, strict=True):
        distance = np.linalg.norm(among[:, :2] - query[:2], axis=1)
        distance[among[:, 2:] @ query[2:] < ALIKE] = np.inf
        wanted = int(np.argmin(distance)) if distance.min() < limit else -1
        assert at == wanted
    assert -1 in found


def test_of_points_equally_near_the_first_is_taken() -> None:
    row = np.array([[3.0, 4.0, 1.0, 0.0]])
    among = np.repeat(row, 5, axis=0)
    assert nearest_alike(row + np.array([0.5, 0, 0, 0]), np.array([1.0]), among) == [0]
    assert nearest_alike(row + np.array([0.5, 0, 0, 0]), np.array([0.5]), among) == [-1]  # a limit is not reached
