"""Sigma of points that the cage carries, from the curvature of the energy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tracking.fitting.markers import point_sigma
from tracking.subjects.subject import builtin_subject


def test_sigma_is_that_of_the_inverse_curvature() -> None:
    mouse = builtin_subject("mouse")
    rig, rows = mouse.cage_rig, np.asarray(mouse.template.binding[mouse.marker_vertices], np.float64)
    size = 6 * len(rig.quads)
    some = np.random.default_rng(1).normal(size=(size, 2 * size))
    hessian = (some @ some.T).astype(np.float32)
    fit = SimpleNamespace(pose=rig.quads.rest, hessian=hessian)
    jacobian = rig.point_jacobian(rows, rig.derivatives(fit.pose))
    wanted = np.einsum("pik,kl,pil->p", jacobian, np.linalg.inv(hessian.astype(float)), jacobian) / 3.0
    found = point_sigma(rig, rows, fit, 0.2, 1.5)  # type: ignore[arg-type]
    assert found == pytest.approx(np.sqrt(1.5**2 * wanted + 0.2**2), rel=1e-5)
