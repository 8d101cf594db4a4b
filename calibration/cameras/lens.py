"""Lenses: from directions in the camera's frame to pixels, a pinhole or a fisheye with its distortion."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibration.cameras.camera_row import FISHEYE, FX, K1, LIMIT, MODEL, PINHOLE, R00, R11, R22, ROW
from calibration.foundation.arrays import Floats, shaped
from calibration.foundation.errors import InputError

__all__ = ["FisheyeLens", "Lens", "PinholeLens", "checked_size"]

PINHOLE_COEFFICIENTS = (0, 4, 5, 8, 12, 14)


def checked_size(size: tuple[int, int], what: str) -> tuple[int, int]:
    """Return an image's (width, height) as whole numbers; `what` names the camera in the message where they are not."""
    if len(size) != 2 or any(not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1 for n in size):
        raise InputError(f"{what}: size must be two positive whole numbers (width, height), got {size!r}")
    if max(size) > 1_000_000:
        raise InputError(f"{what}: size {size[0]} x {size[1]} px is not that of an image")
    return int(size[0]), int(size[1])


def _checked_intrinsics(value: ArrayLike) -> Floats:
    k = shaped(value, (3, 3), "intrinsics")
    if k[0, 0] <= 0 or k[1, 1] <= 0:
        raise InputError(f"intrinsics: focal lengths must be positive, got {k[0, 0]:g} and {k[1, 1]:g}")
    if np.abs(k[[1, 2, 2], [0, 0, 1]]).max() > 0 or k[2, 2] != 1:
        raise InputError("intrinsics must be [[fx, skew, cx], [0, fy, cy], [0, 0, 1]]")
    if np.abs(k).max() > 1e9:
        raise InputError(f"intrinsics: {np.abs(k).max():g} px is beyond any camera")
    return k


def _first_positive_root(polynomial: Floats) -> float:
    """Return the smallest positive real root of a polynomial (lowest power first), infinity where there is none."""
    trimmed = np.trim_zeros(polynomial, "b")
    if len(trimmed) < 2:
        return np.inf
    roots = np.polynomial.polynomial.polyroots(trimmed)
    real = roots.real[(np.abs(roots.imag) < 1e-9 * (1 + np.abs(roots))) & (roots.real > 0)]
    return float(real.min()) if len(real) else np.inf


@dataclass(frozen=True, eq=False)
class PinholeLens:
    """A pinhole with skew and OpenCV's distortion.

    Attributes:
        size: (width, height) px.
        intrinsics: (3, 3) camera matrix, px; entry (0, 1) is the skew.
        distortion: (n,) with n in 0, 4, 5, 8, 12, 14: k1 k2 p1 p2 [k3 [k4 k5 k6 [s1-s4 [tau_x tau_y]]]].
    """

    size: tuple[int, int]
    intrinsics: Floats
    distortion: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size, "pinhole lens"))
        object.__setattr__(self, "intrinsics", _checked_intrinsics(self.intrinsics))
        object.__setattr__(self, "distortion", shaped(self.distortion, (None,), "pinhole distortion"))
        if len(self.distortion) not in PINHOLE_COEFFICIENTS:
            wanted = ", ".join(map(str, PINHOLE_COEFFICIENTS))
            raise InputError(f"pinhole distortion must have {wanted} coefficients, got {len(self.distortion)}")
        if len(self.distortion) and np.abs(self.distortion).max() > 1e6:
            raise InputError(f"pinhole distortion of {np.abs(self.distortion).max():g} is beyond any lens")

    @cached_property
    def invertible_limit(self) -> float:
        """Square of the undistorted radius up to which r -> r * radial(r^2) rises."""
        k = np.zeros(14)
        k[: len(self.distortion)] = self.distortion
        n, d = np.array([1, k[0], k[1], k[4]]), np.array([1, k[5], k[6], k[7]])
        # d/dr [r N(s)/D(s)], s = r^2, has the sign of (N + 2 s N') D - 2 s N D'
        p = np.polynomial.polynomial
        s2 = np.array([0.0, 2.0])
        rising = p.polysub(
            p.polymul(p.polyadd(n, p.polymul(s2, p.polyder(n))), d), p.polymul(s2, p.polymul(n, p.polyder(d)))
        )
        return min(_first_positive_root(rising), _first_positive_root(d))

    def packed(self) -> Floats:
        """Return the lens part of a camera row (see `calibration.cameras.camera_row`), with an identity pose."""
        row = _packed_lens(PINHOLE, self.intrinsics, self.distortion)
        row[LIMIT] = self.invertible_limit
        return row


@dataclass(frozen=True, eq=False)
class FisheyeLens:
    """A Kannala-Brandt fisheye in OpenCV's form.

    Attributes:
        size: (width, height) px.
        intrinsics: (3, 3) camera matrix, px; entry (0, 1) is the skew.
        distortion: (4,): theta_d = theta (1 + k1 theta^2 + k2 theta^4 + k3 theta^6 + k4 theta^8).
    """

    size: tuple[int, int]
    intrinsics: Floats
    distortion: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_size(self.size, "fisheye lens"))
        object.__setattr__(self, "intrinsics", _checked_intrinsics(self.intrinsics))
        object.__setattr__(self, "distortion", shaped(self.distortion, (4,), "fisheye distortion"))
        if np.abs(self.distortion).max() > 1e6:
            raise InputError(f"fisheye distortion of {np.abs(self.distortion).max():g} is beyond any lens")

    @cached_property
    def invertible_limit(self) -> float:
        """Square of the angle from the axis up to which theta -> theta_d rises, at most (pi/2)^2."""
        k = self.distortion
        turn = _first_positive_root(np.array([1, 3 * k[0], 5 * k[1], 7 * k[2], 9 * k[3]]))
        return min(turn, (np.pi / 2) ** 2)

    def packed(self) -> Floats:
        """Return the lens part of a camera row (see `calibration.cameras.camera_row`), with an identity pose."""
        row = _packed_lens(FISHEYE, self.intrinsics, self.distortion)
        row[LIMIT] = self.invertible_limit
        return row


Lens: TypeAlias = PinholeLens | FisheyeLens


def _packed_lens(model: int, k: Floats, distortion: Floats) -> Floats:
    row = np.zeros(ROW)
    row[MODEL] = model
    row[FX:K1] = k[0, 0], k[1, 1], k[0, 2], k[1, 2], k[0, 1]
    row[K1 : K1 + len(distortion)] = distortion
    row[R00], row[R11], row[R22] = 1, 1, 1
    return row
