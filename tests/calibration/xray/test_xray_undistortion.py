"""Grid finding and undistortion: a pincushion plus S distortion of 15 px that no model of ours contains."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from calibration.foundation.errors import InputError, SolveError
from calibration.xray.distortion_models import LocalWeightedMean, Polynomial, SplineSurface
from calibration.xray.grid import draw_grid, find_grid, index_lattice
from calibration.xray.undistortion import DistortionMap, MovingMap, fit_undistortion

SIZE = 512


def bend(points):
    """Pincushion and S: displacement up to 15 px at the rim of the field."""
    c = (SIZE - 1) / 2
    d = (np.asarray(points) - c) / c
    r2 = np.sum(d**2, axis=-1, keepdims=True)
    turned = np.stack([-d[..., 1], d[..., 0]], axis=-1)
    return points + 24.0 * (0.62 * d * (r2 - 0.5) + 0.5 * turned * np.sin(2.4 * (r2 - 0.5)) * (1 + 0.3 * d[..., :1]))


def lattice(kind, spacing=22.0, angle=0.3):
    n = np.arange(-40, 41)
    a, b = (g.ravel().astype(float) for g in np.meshgrid(n, n))
    plane = np.stack([a + 0.5 * b, np.sqrt(0.75) * b], axis=1) if kind == "hexagonal" else np.stack([a, b], axis=1)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    points = spacing * plane @ turn.T + (SIZE - 1) / 2 + np.array([3.1, -2.2])
    return points[np.linalg.norm(points - (SIZE - 1) / 2, axis=1) < 0.5 * SIZE - 4]


def picture(points, seed=0):
    """Beads of radius 3 px with photon noise and vignetting inside a round field."""
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(float)
    depth = np.zeros((SIZE, SIZE))
    for px, py in points:
        x0, y0 = int(px), int(py)
        s = np.s_[max(y0 - 6, 0) : y0 + 8, max(x0 - 6, 0) : x0 + 8]
        depth[s] += 0.8 * np.sqrt(np.maximum(1 - ((x[s] - px) ** 2 + (y[s] - py) ** 2) / 9.0, 0))
    r2 = ((x - SIZE / 2) ** 2 + (y - SIZE / 2) ** 2) / (SIZE / 2) ** 2
    light = cv2.GaussianBlur(200 * np.exp(-depth), (0, 0), 0.9) * (1 - 0.25 * r2)
    noisy = np.random.default_rng(seed).poisson(light * 40) / 40
    return np.clip(np.rint(noisy * (r2 < 0.98)), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module", params=["hexagonal", "square"])
def grid(request):
    ideal = lattice(request.param)
    image = picture(bend(ideal))
    return request.param, ideal, image, find_grid(image)


def similarity_error(source, target):
    """Distances after the best similarity: an undistorted image may be scaled and turned as it likes."""
    p, q = (z[:, 0] + 1j * z[:, 1] for z in (source - source.mean(0), target - target.mean(0)))
    return np.abs(np.vdot(p, q) / np.vdot(p, p) * p - q)


def test_lattice_is_recognised_and_numbered_right(grid):
    kind, ideal, _, sighting = grid
    assert sighting.kind == kind and sighting.polarity == "dark"
    assert len(sighting) > 0.9 * np.sum(np.linalg.norm(bend(ideal) - SIZE / 2, axis=1) < SIZE / 2 - 14)
    distance = np.linalg.norm(sighting.pixels[:, None] - bend(ideal)[None], axis=2)
    match = distance.argmin(axis=1)
    good = distance.min(axis=1) < 0.5
    assert good.mean() > 0.97
    design = np.column_stack([np.ones(len(match)), sighting.nodes])[good]
    solved, *_ = np.linalg.lstsq(design, ideal[match][good], rcond=None)
    assert np.abs(design @ solved - ideal[match][good]).max() < 1e-6  # one affine map: no node misnumbered


def test_heldout_error_and_truth_are_below_a_tenth_of_a_pixel(grid):
    _, _, _, sighting = grid
    distortion, report = fit_undistortion(sighting)
    assert report.heldout_rms_px[report.model] < 0.1
    assert report.largest_shift_px > 5
    rng = np.random.default_rng(1)
    ideal = rng.uniform(-1, 1, (3000, 2)) * 225
    ideal = ideal[np.linalg.norm(ideal, axis=1) < 215] + (SIZE - 1) / 2
    error = similarity_error(ideal, distortion.undistort(bend(ideal)))
    assert np.sqrt(np.mean(error**2)) < 0.05
    raw = bend(ideal)
    assert np.abs(distortion.distort(distortion.undistort(raw)) - raw).max() < 0.05


def test_local_weighted_mean_with_twelve_neighbours_also_holds(grid):
    _, report = fit_undistortion(grid[3], model="local weighted mean")
    assert report.heldout_rms_px["local weighted mean"] < 0.1


def test_models_reproduce_a_quadratic_exactly():
    rng = np.random.default_rng(0)
    source = rng.uniform(0, 100, (150, 2))

    def quadratic(p):
        return p + np.stack([0.001 * p[:, 0] ** 2 - 0.002 * p[:, 0] * p[:, 1], 0.0015 * p[:, 1] ** 2], axis=1)

    inside = rng.uniform(20, 80, (50, 2))
    for fitted in (
        LocalWeightedMean.fit(source, quadratic(source)),
        Polynomial.fit(source, quadratic(source), degree=3),
        SplineSurface.fit(source, quadratic(source), cells=4, bending=1e-9),
    ):
        assert np.abs(fitted(inside) - quadratic(inside)).max() < 1e-4


def test_map_jacobian_matches_finite_differences(grid):
    distortion, _ = fit_undistortion(grid[3], model="polynomial 5")
    points = np.random.default_rng(2).uniform(100, 400, (20, 2))
    for function in (distortion.undistort_with_jacobian, distortion.distort_with_jacobian):
        _, jacobian = function(points)
        for axis in range(2):
            step = np.zeros(2)
            step[axis] = 1e-4
            slope = (function(points + step)[0] - function(points - step)[0]) / 2e-4
            assert np.abs(slope - jacobian[..., axis]).max() < 1e-5


def test_undistorted_image_has_straight_rows(grid):
    kind, _, image, sighting = grid
    distortion, _ = fit_undistortion(sighting)
    again = find_grid(distortion.undistort_image(image), kind=kind, polarity="dark")
    inner = np.linalg.norm(again.pixels - SIZE / 2, axis=1) < 200
    assert np.sqrt(np.mean(np.sum((again.pixels - again.ideal)[inner] ** 2, axis=1))) < 0.1


def test_partial_view_and_missing_nodes_are_fine():
    ideal = lattice("hexagonal")
    rng = np.random.default_rng(3)
    kept = ideal[(ideal[:, 0] < 300) & (rng.random(len(ideal)) > 0.05)]
    sighting = find_grid(picture(bend(kept)), polarity="dark", sigma_px=1.8)
    assert len(sighting) > 0.85 * len(kept) - 25
    assert draw_grid(picture(bend(kept)), sighting).shape == (SIZE, SIZE, 3)


def test_moving_map_is_linear_between_grid_frames(grid):
    first, _ = fit_undistortion(grid[3], model="polynomial 5")
    still = DistortionMap(
        first.size, first.step, np.zeros_like(first.to_ideal), np.zeros_like(first.to_raw), first.known
    )
    moving = MovingMap((2, 12), (first, still))
    assert np.allclose(moving.at(7).to_ideal, 0.5 * first.to_ideal)
    assert moving.at(0) is first and moving.at(99) is still
    with pytest.raises(InputError, match="ascend"):
        MovingMap((12, 2), (first, still))


def test_no_grid_is_said_with_what_was_found():
    noise = np.random.default_rng(0).poisson(100, (SIZE, SIZE)).astype(np.uint8)
    with pytest.raises(SolveError, match="no grid found") as caught:
        find_grid(noise, polarity="dark", sigma_px=2.0, who="camera 'left'")
    assert np.asarray(caught.value.report).shape[1] == 2


def test_unknown_model_lists_the_valid_ones(grid):
    with pytest.raises(InputError, match="local weighted mean"):
        fit_undistortion(grid[3], model="magic")


def test_random_points_are_no_lattice():
    found = index_lattice(np.random.default_rng(0).uniform(0, 500, (300, 2)))
    assert found is None or len(found.members) < 60
