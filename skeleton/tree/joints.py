"""Joints and sites: what a skeleton is made of, each checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from calibration.foundation.arrays import Floats, shaped
from calibration.foundation.errors import InputError
from skeleton.tree import kinematics as kernels

__all__ = ["ANGLES", "KINDS", "Joint", "Kind", "Site"]

Kind = Literal["fixed", "hinge", "universal", "ball", "free"]
KINDS: dict[str, int] = {
    "fixed": kernels.FIXED,
    "hinge": kernels.HINGE,
    "universal": kernels.UNIVERSAL,
    "ball": kernels.BALL,
    "free": kernels.FREE,
}
#: Rotation coordinates of each kind.
ANGLES: dict[str, int] = {"fixed": 0, "hinge": 1, "universal": 2, "ball": 3, "free": 3}


@dataclass(frozen=True, eq=False)
class Joint:
    """One joint and the segment distal to it.

    Attributes:
        name: unique among joints and sites.
        parent: name of the parent joint, None for a root.
        kind: fixed, hinge (1 angle), universal (2), ball (rotation vector), free (translation, rotation vector).
        offset: (3,) from the parent's joint (world origin for a root), in the parent's frame, mm.
        axes: (1, 3) hinge or (2, 3) universal unit axes in the parent's frame at rest; (0, 3) otherwise.
        limits: (angles, 2) lower and upper bound of each rotation coordinate, rad, infinite where free.
        ellipsoidal: the limits of a ball are the six half axes of an ellipsoid, not a box.
        shift_mm: radius of the bounded shift of the joint; 0 = none, otherwise three more coordinates.
        segment: anatomical name of the segment (the joint's name if empty).
        mass_g: mass of the segment, g.
        centre_of_mass: (3,) in the segment's frame, mm.
        source: where length and limits come from.
    """

    name: str
    parent: str | None
    kind: Kind
    offset: Floats
    axes: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    limits: Floats | None = None
    ellipsoidal: bool = False
    shift_mm: float = 0.0
    segment: str = ""
    mass_g: float = 0.0
    centre_of_mass: Floats = field(default_factory=lambda: np.zeros(3))
    source: str = ""

    def __post_init__(self) -> None:
        who = f"joint '{self.name}'"
        if self.kind not in KINDS:
            raise InputError(f"{who}: kind must be one of {', '.join(KINDS)}, got '{self.kind}'")
        count = ANGLES[self.kind]
        object.__setattr__(self, "offset", shaped(self.offset, (3,), f"{who}: offset"))
        object.__setattr__(self, "centre_of_mass", shaped(self.centre_of_mass, (3,), f"{who}: centre_of_mass"))
        wanted = {"hinge": 1, "universal": 2}.get(self.kind, 0)
        axes = shaped(self.axes, (wanted, 3), f"{who}: axes of a {self.kind} joint")
        length = np.linalg.norm(axes, axis=1)
        if (length < 1e-9).any():
            raise InputError(f"{who}: an axis has no length; give a direction such as [0, 1, 0]")
        axes = axes / length[:, None]
        axes.setflags(write=False)
        object.__setattr__(self, "axes", axes)
        limits = np.tile([-np.inf, np.inf], (count, 1)) if self.limits is None else np.array(self.limits, float)
        if limits.shape != (count, 2):
            raise InputError(f"{who}: limits must be ({count}, 2), got {limits.shape}")
        if np.isnan(limits).any() or (limits[:, 0] > limits[:, 1]).any():
            raise InputError(f"{who}: each limit must be (lower, upper) with lower <= upper")
        around = bool((limits[:, 0] < 0).all() and (limits[:, 1] > 0).all())
        if self.ellipsoidal and not (self.kind in ("ball", "free") and around):
            raise InputError(f"{who}: ellipsoidal limits need a ball joint with lower < 0 < upper on all axes")
        limits.setflags(write=False)
        object.__setattr__(self, "limits", limits)
        if not (np.isfinite(self.shift_mm) and self.shift_mm >= 0 and np.isfinite(self.mass_g) and self.mass_g >= 0):
            raise InputError(f"{who}: shift_mm and mass_g must be zero or more")
        object.__setattr__(self, "segment", self.segment or self.name)

    @property
    def bounds(self) -> Floats:
        """(angles, 2) limits, rad."""
        assert self.limits is not None  # set in __post_init__
        return self.limits

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the joint's coordinates in order: translation, rotation, shift."""
        names: list[str] = []
        if self.kind == "free":
            names += [f"{self.name}_t{axis}" for axis in "xyz"]
        if self.kind in ("free", "ball"):
            names += [f"{self.name}_r{axis}" for axis in "xyz"]
        elif self.kind == "hinge":
            names.append(self.name)
        elif self.kind == "universal":
            names += [f"{self.name}_0", f"{self.name}_1"]
        if self.shift_mm > 0:
            names += [f"{self.name}_s{axis}" for axis in "xyz"]
        return tuple(names)


@dataclass(frozen=True, eq=False)
class Site:
    """A named point of a segment: nose, toe tip, head top.

    Attributes:
        name: unique among joints and sites.
        segment: name of the joint whose segment carries it.
        offset: (3,) from that joint in the segment's frame, mm.
    """

    name: str
    segment: str
    offset: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", shaped(self.offset, (3,), f"site '{self.name}': offset"))
