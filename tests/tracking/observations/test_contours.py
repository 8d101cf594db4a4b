"""Contour samples: where the blurred mask is half full, with the normal there."""

from __future__ import annotations

import numpy as np
import pytest

from tracking.observations.contours import observe_view


@pytest.mark.parametrize("radius", [12.0, 40.3])
def test_samples_of_a_disc_lie_on_its_rim_and_look_outwards(radius: float) -> None:
    centre = np.array([70.2, 61.7])
    rows, columns = np.indices((130, 150))
    view = observe_view(np.hypot(columns - centre[0], rows - centre[1]) < radius)
    away = view.points - centre
    far = np.linalg.norm(away, axis=1)
    assert np.abs(far - radius).max() < 0.5 and abs(far.mean() - radius) < 0.05
    assert np.einsum("ni,ni->n", view.normals, away / far[:, None]).min() > 0.95
