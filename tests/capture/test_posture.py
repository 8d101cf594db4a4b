"""Posture from hulls against closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

from calibration.geometry.transforms import rotation_from_vector
from capture.hull import Hull
from capture.hull.result import no_hull
from capture.posture import posture_table, solid_moments, write_posture

HALF = np.array([40.0, 15.0, 10.0])


def ellipsoid(centre: np.ndarray, rotation: np.ndarray) -> Hull:
    ball = trimesh.creation.icosphere(4)
    vertices = (ball.vertices * HALF) @ rotation.T + centre
    return Hull(
        vertices, ball.faces.astype(np.int32), float(ball.volume * HALF.prod()), np.ones(4, bool), np.ones(4), 0
    )


def test_moments_of_an_ellipsoid() -> None:
    """Volume 4/3 pi abc, covariance diag(a^2, b^2, c^2) / 5; the inscribed mesh is a few parts in a thousand small."""
    rotation = rotation_from_vector(np.array([0.3, -0.8, 0.5]))
    hull = ellipsoid(np.array([100.0, -50.0, 30.0]), rotation)
    moments = solid_moments(hull.vertices, hull.faces)
    assert moments.volume == pytest.approx(4 / 3 * np.pi * HALF.prod(), rel=0.01)
    assert moments.centroid == pytest.approx([100, -50, 30], abs=1e-9)
    assert moments.covariance == pytest.approx(rotation @ np.diag(HALF**2 / 5) @ rotation.T, abs=0.01 * 40**2 / 5)


def test_posture_of_a_moving_body(tmp_path: Path) -> None:
    rate, speed = 50.0, 120.0
    hulls = [ellipsoid(np.array([speed * t / rate, 0.0, 12.0]), np.eye(3)) for t in range(9)]
    hulls[6] = no_hull(4, None, 1)
    table = posture_table(hulls, rate)
    seen = np.arange(9) != 6
    assert np.isnan(table.length[6]) and np.isnan(table.centroid[6]).all()
    assert table.length[seen] == pytest.approx(80.0, rel=0.01)
    assert table.height[seen] == pytest.approx(22.0, rel=0.01)
    assert table.speed[:5] == pytest.approx(speed, rel=1e-6)
    assert table.axes[seen, 0, 0] == pytest.approx(1.0, abs=1e-6)  # forward, not backward
    assert np.linalg.det(table.axes[seen]) == pytest.approx(1.0)
    write_posture(tmp_path / "posture.csv", table)
    lines = (tmp_path / "posture.csv").read_text().splitlines()
    assert lines[0].startswith("frame,time_s,x_mm") and len(lines) == 10
    assert lines[7].startswith("6,0.12,,,")
