"""The surface as data: the field of a hull and of a mesh, and what a frame without one is."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from calibration.cameras.ring import ring_rig
from tracking.observations.rasteriser import cast_masks
from tracking.observations.surface import Surface
from tracking.terms.surface import match_surface

RADIUS = 40.0
RIG = ring_rig(10, radius=600.0, height=[0.0, 300.0, -300.0], size=(320, 240), field_mm=200.0)


@pytest.fixture(scope="module")
def ball() -> tuple[np.ndarray, np.ndarray]:
    mesh = trimesh.creation.icosphere(subdivisions=4, radius=RADIUS)
    return np.asarray(mesh.vertices, np.float64), np.asarray(mesh.faces, np.int64)


def test_the_field_of_a_balls_hull_is_its_signed_distance(ball: tuple[np.ndarray, np.ndarray]) -> None:
    surface = Surface.of_masks(cast_masks(RIG, *ball), RIG)
    assert surface is not None and surface.field is not None
    away = np.linalg.norm(surface.points, axis=1)
    assert np.abs(np.median(away) - RADIUS) < 1.5  # ten cones leave edges around the ball
    way = ball[0][::50] / RADIUS
    for reach in (0.8, 0.95, 1.1, 1.25):
        distance, gradient = surface.field(reach * RADIUS * way)
        assert np.median(np.abs(distance - (reach - 1.0) * RADIUS)) < 2.0
        assert np.median(np.sum(gradient * way, axis=1)) > 0.8


def test_a_template_is_drawn_to_the_hull_from_inside_and_outside(ball: tuple[np.ndarray, np.ndarray]) -> None:
    """The residual along its direction leads to the surface, whichever side, by the field and by samples."""
    masks = cast_masks(RIG, *ball)
    for with_field in (True, False):
        surface = Surface.of_masks(masks, RIG, with_field=with_field)
        assert surface is not None and (surface.field is not None) == with_field
        for scale in (0.85, 1.1):
            pairs = match_surface(scale * ball[0], ball[1], surface, reach=20.0, one_sided=True)
            moved = scale * ball[0][pairs.pairs[:, 0]] - pairs.residuals[:, None] * pairs.directions
            assert np.median(np.abs(np.linalg.norm(moved, axis=1) - RADIUS)) < 2.0
            assert np.sign(np.median(pairs.residuals)) == np.sign(scale - 1.0)


def test_without_silhouettes_there_is_no_surface() -> None:
    assert Surface.of_masks([np.zeros((240, 320), np.bool_)] * 10, RIG) is None
