"""Virtual markers and carried joints of a track, with their uncertainty."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from calibration.foundation.arrays import Floats
from tracking.fitting.settings import COMMON
from tracking.fitting.solver import FrameFit
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose

__all__ = ["carried_points", "point_sigma"]


def carried_points(cage_rig: CageRig, binding: Floats, rotations: Floats, centres: Floats) -> Floats:
    """Carry bound points through T frames, (T, P, 3) mm; NaN where the quads are."""
    result = np.full((len(centres), len(binding), 3), np.nan)
    for frame in np.flatnonzero(np.isfinite(centres).all(axis=(1, 2))):
        result[frame] = cage_rig.deform(binding, QuadPose(rotations[frame], centres[frame]))
    return result


def point_sigma(cage_rig: CageRig, binding: Floats, fit: FrameFit, floor: float, common: float = COMMON) -> Floats:
    """1 sigma (P,) of bound points along one axis, mm, from the curvature of the energy at the fit.

    The covariance of the quads is the inverse Hessian of an energy whose terms are in units of their sigmas, widened by
    what the outlines of one body have in common.

    Args:
        cage_rig: quads and cage.
        binding: (P, 4 Q + F).
        fit: a frame.
        floor: what the deformation model itself misses, mm, added in quadrature.
        common: by how much outlines err together.
    """
    size = len(fit.hessian)
    curvature = fit.hessian + 1e-9 * np.mean(np.diag(fit.hessian)) * np.eye(size)
    jacobian = cage_rig.point_jacobian(binding, cage_rig.derivatives(fit.pose))
    # J inv(L L') J' are the squares of inv(L) J': the inverse itself is not needed.
    root = cholesky(curvature, lower=True, overwrite_a=True, check_finite=False)
    along = solve_triangular(root, jacobian.reshape(-1, size).T, lower=True, check_finite=False)
    variance = np.square(along).sum(axis=0).reshape(-1, 3).sum(axis=1) / 3.0
    return np.asarray(np.sqrt(common**2 * variance + floor**2))
