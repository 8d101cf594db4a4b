"""Signed distance fields, and a template fitted to one."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from calibration.foundation.errors import InputError
from tracking.observations.distance_field import DistanceField
from tracking.observations.surface import Surface
from tracking.terms.surface import match_surface

BALL = trimesh.creation.icosphere(subdivisions=5, radius=100.0)
FIELD = DistanceField.of_mesh(BALL.vertices, BALL.faces, 6.0)


def test_distance_and_gradient_of_a_ball():
    rng = np.random.default_rng(0)
    way = rng.normal(size=(200, 3))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    radius = rng.uniform(60.0, 125.0, 200)
    distance, gradient = FIELD(way * radius[:, None])
    np.testing.assert_allclose(distance, radius - 100.0, atol=1.5)
    np.testing.assert_allclose(np.sum(gradient * way, axis=1), 1.0, atol=0.12)


def test_beyond_the_grid_it_is_as_at_its_edge():
    assert FIELD(np.array([[1000.0, 0.0, 0.0]]))[0][0] > 30.0


def test_too_fine_a_field_is_refused():
    with pytest.raises(InputError, match="are too many; take larger ones"):
        DistanceField.of_mesh(BALL.vertices, BALL.faces, 0.5)


@pytest.mark.parametrize("one_sided", [True, False])
def test_field_as_data(one_sided):
    # A smaller ball off to the side: residuals of its vertices are their distances to the surface.
    small = trimesh.creation.icosphere(subdivisions=3, radius=80.0)
    vertices = small.vertices + np.array([8.0, 0.0, 0.0])
    surface = Surface.of_mesh(BALL.vertices, BALL.faces, voxel=6.0)
    matches = match_surface(vertices, small.faces, surface, reach=60.0, one_sided=one_sided)
    own = len(vertices)
    np.testing.assert_allclose(matches.residuals[:own], np.linalg.norm(vertices, axis=1) - 100.0, atol=1.5)
    # From surface to template is what the field does not say.
    assert (len(matches.residuals) > own) != one_sided
