"""What a bundle adjustment may move of each camera, in which column, and what is known of it beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.bundle.equations import CAMERA_PARAMETERS, CLOCK, TURN, Priors
from calibration.cameras.camera_row import FX, K1
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["DISTORTIONS", "Columns", "Freedom", "LensPrior", "number_columns", "pack_priors"]

#: Distortion coefficients that each named model leaves free (positions in k1 k2 p1 p2 k3 k4 k5 k6 ...).
DISTORTIONS: dict[str, tuple[int, ...]] = {
    "none": (),
    "radial1": (0,),
    "radial2": (0, 1),
    "brown4": (0, 1, 2, 3),
    "brown5": (0, 1, 2, 3, 4),
    "rational": (0, 1, 2, 3, 4, 5, 6, 7),
    "fisheye0": (),
    "fisheye1": (0,),
    "fisheye2": (0, 1),
    "fisheye4": (0, 1, 2, 3),
}


@dataclass(frozen=True)
class Freedom:
    """What of a camera may move.

    Attributes:
        focal: 0 fixed, 1 one focal length (the ratio fx / fy stays), 2 both.
        centre: whether the principal point moves.
        distortion: a name in `DISTORTIONS`; coefficients outside it keep their value.
        pose: whether the camera moves.
        clock: whether its time offset moves.
    """

    focal: int = 2
    centre: bool = True
    distortion: str = "brown4"
    pose: bool = True
    clock: bool = False

    def __post_init__(self) -> None:
        if self.distortion not in DISTORTIONS:
            raise InputError(f"unknown distortion '{self.distortion}'; valid are {', '.join(DISTORTIONS)}")
        if self.focal not in (0, 1, 2):
            raise InputError(f"focal must be 0, 1 or 2 free lengths, got {self.focal}")

    @property
    def lens_parameters(self) -> int:
        """Number of free numbers of the lens."""
        return self.focal + 2 * self.centre + len(DISTORTIONS[self.distortion])


@dataclass(frozen=True, eq=False)
class Columns:
    """Which parameter is which column of the reduced problem: (c, 26) and (p, 3) indices, -1 where fixed."""

    camera: Ints
    point: Ints
    count: int


def number_columns(
    freedoms: tuple[Freedom, ...],
    reference: int | None,
    points: int,
    shape: Floats | None = None,
    held: tuple[tuple[int, int], ...] = (),
) -> Columns:
    """Number the free parameters.

    ``reference`` is the camera whose pose is held, to fix the frame (None: poses of all may move). ``shape``
    (p, 3) is 1 where a coordinate of a model point may move; ``held`` names (camera, number) that stay.
    """
    camera = np.full((len(freedoms), CAMERA_PARAMETERS), -1, np.int64)
    count = 0
    for c, freedom in enumerate(freedoms):
        if freedom.focal == 1:
            camera[c, 0] = camera[c, 1] = count
            count += 1
        slots = [0, 1] if freedom.focal == 2 else []
        slots += [2, 3] if freedom.centre else []
        slots += [K1 - FX + k for k in DISTORTIONS[freedom.distortion]]
        slots += list(range(TURN, CLOCK)) if freedom.pose and c != reference else []
        slots += [CLOCK] if freedom.clock and c != reference else []
        for slot in (s for s in slots if (c, s) not in held):
            camera[c, slot] = count
            count += 1
    point = np.full((points, 3), -1, np.int64)
    if shape is not None:
        free = shape > 0
        point[free] = count + np.arange(int(free.sum()))
        count += int(free.sum())
    return Columns(camera, point, count)


@dataclass(frozen=True, eq=False)
class LensPrior:
    """What is known of a camera's lens beforehand: a Gaussian over some of its numbers.

    Attributes:
        camera: which camera.
        slots: (k,) which of its numbers (see `calibration.bundle.equations`).
        mean: (k,) their values.
        information: (k, k) inverse covariance, in units of the corner noise (multiplied by its variance).
    """

    camera: int
    slots: Ints
    mean: Floats
    information: Floats


def pack_priors(priors: tuple[LensPrior, ...]) -> Priors:
    """Return the priors of all cameras as one."""
    sizes = [len(prior.slots) for prior in priors]
    information = np.zeros((sum(sizes), sum(sizes)))
    for prior, end in zip(priors, np.cumsum(sizes), strict=True):
        part = slice(end - len(prior.slots), end)
        information[part, part] = prior.information
    return Priors(
        np.repeat(np.array([prior.camera for prior in priors], np.int64), sizes),
        np.concatenate([np.empty(0, np.int64), *(prior.slots for prior in priors)]),
        np.concatenate([np.empty(0), *(prior.mean for prior in priors)]),
        information,
    )
