"""What a motion file holds, whatever its format: points, a joint tree in motion, or named coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from calibration.foundation.arrays import HUGE, Floats, frozen, measured
from calibration.foundation.errors import InputError
from calibration.foundation.names import checked_label
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion

__all__ = ["CoordinateSeries", "JointMotion", "MarkerSeries", "Motion", "millimetres_per"]

#: Millimetres in one length unit, as files spell it.
UNIT_MM = {"mm": 1.0, "millimeters": 1.0, "millimetres": 1.0, "cm": 10.0, "centimeters": 10.0,
           "centimetres": 10.0, "dm": 100.0, "m": 1000.0, "meters": 1000.0, "metres": 1000.0, "meter": 1000.0,
           "metre": 1000.0, "inches": 25.4, "in": 25.4}  # fmt: skip


def millimetres_per(unit: str, who: str) -> float:
    """Return how many millimetres one ``unit`` of a file holds; ``who`` names the file in the error."""
    try:
        return UNIT_MM[unit.strip().lower()]
    except KeyError:
        raise InputError(f"{who}: unknown length unit '{unit}'; known are {', '.join(UNIT_MM)}") from None


#: Rotations that take a world whose vertical is the key to one whose z points up.
_Z_FROM_UP = {
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}


#: No camera takes more pictures in a second.
_FASTEST_HZ = 1e7


def _checked_up(up: str, who: str) -> str:
    if up not in ("", "x", "y", "z"):
        raise InputError(f"{who}: up must be 'x', 'y', 'z' or '' (not known), got '{up}'")
    return up


def _checked_rate(rate_hz: float, who: str) -> float:
    if not 0 < rate_hz <= _FASTEST_HZ:
        raise InputError(f"{who}: the frame rate must be above 0 Hz and not above {_FASTEST_HZ:g} Hz, got {rate_hz}")
    return float(rate_hz)


@dataclass(frozen=True, eq=False)
class MarkerSeries:
    """Named points over time.

    Attributes:
        names: M point names, in the file's order.
        positions: (T, M, 3) mm, or (T, M, 2) px for image points; NaN where not observed.
        rate_hz: frames per second.
        unit: "mm", or "px" for image points.
        up: the vertical axis, "x", "y" or "z"; "" where the file does not say.
        confidence: (T, M) the maker's own score, NaN where it gives none; None if the file has no scores.
        start_s: time of the first frame, s.
        sigma: (T, M) error of each point that its maker states, mm; None if it states none.
    """

    names: tuple[str, ...]
    positions: Floats
    rate_hz: float
    unit: str = "mm"
    up: str = ""
    confidence: Floats | None = None
    start_s: float = 0.0
    sigma: Floats | None = None

    def __post_init__(self) -> None:
        positions = frozen(measured(np.asarray(self.positions, dtype=np.float64), "markers"))
        names = tuple(checked_label(name, "a marker") for name in self.names)
        wanted = {"mm": 3, "px": 2}.get(self.unit)
        if wanted is None:
            raise InputError(f"markers: unit must be 'mm' or 'px', got '{self.unit}'")
        if positions.ndim != 3 or positions.shape[1:] != (len(names), wanted):
            raise InputError(
                f"markers: {len(names)} names in {self.unit} want positions (T, {len(names)}, {wanted}), "
                f"got {positions.shape}"
            )
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise InputError(f"markers: the name '{double[0]}' occurs twice; rename one of them")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "rate_hz", _checked_rate(self.rate_hz, "markers"))
        _checked_up(self.up, "markers")
        if not abs(self.start_s) < HUGE:
            raise InputError(f"markers: the time of the first frame must be a number of seconds, got {self.start_s}")
        for name in ("confidence", "sigma"):
            if getattr(self, name) is not None:
                value = frozen(measured(np.asarray(getattr(self, name), dtype=np.float64), f"markers: {name}"))
                if value.shape != positions.shape[:2]:
                    raise InputError(f"markers: {name} must be {positions.shape[:2]}, got {value.shape}")
                object.__setattr__(self, name, value)

    @property
    def frames(self) -> int:
        """Number of frames T."""
        return int(self.positions.shape[0])

    def times(self) -> Floats:
        """Return (T,) the time of each frame, s."""
        times: Floats = self.start_s + np.arange(self.frames) / self.rate_hz
        return times

    def with_z_up(self) -> MarkerSeries:
        """Return the same points in a world whose z axis points up; the file must say its vertical."""
        return self.with_up("z")

    def with_up(self, up: str) -> MarkerSeries:
        """Return the same points in a world whose ``up`` axis points up; the file must say its vertical."""
        if self.up == "" or self.unit != "mm":
            raise InputError("markers: the vertical axis is not known; pass up='x', 'y' or 'z' when reading")
        turn = _Z_FROM_UP[up].T @ _Z_FROM_UP[self.up]
        return replace(self, positions=self.positions @ turn.T, up=up)

    def subset(self, names: Sequence[str]) -> MarkerSeries:
        """Return only the points called ``names``, in that order."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise InputError(f"markers: no point '{missing[0]}'; the series has {', '.join(self.names)}")
        index = [self.names.index(name) for name in names]
        confidence = None if self.confidence is None else self.confidence[:, index]
        sigma = None if self.sigma is None else self.sigma[:, index]
        return replace(self, names=tuple(names), positions=self.positions[:, index], confidence=confidence, sigma=sigma)


@dataclass(frozen=True, eq=False)
class JointMotion:
    """A joint tree and its motion, as BVH and ASF/AMC files hold it.

    Joint j turns and shifts in its parent p: ``x_p = rotations[t, j] x_j + offsets[j] + shifts[t, j]``.

    Attributes:
        names: J joint names; a parent stands before its children.
        parents: J indices of the parents, -1 for a root.
        offsets: (J, 3) joint centre in the parent's axes, mm.
        tips: (J, 3) end of the segment in the joint's axes, mm; NaN where the file gives none.
        shifts: (T, J, 3) moved by the file's translation channels, mm (0 where there are none).
        rotations: (T, J, 4) unit quaternions wxyz, parent from joint.
        rate_hz: frames per second.
        up: the vertical axis, "x", "y", "z" or "" if not known.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    offsets: Floats
    tips: Floats
    shifts: Floats
    rotations: Floats
    rate_hz: float
    up: str = "y"

    def __post_init__(self) -> None:
        joints = len(self.names)
        for name in self.names:
            checked_label(name, "a joint")
        for index, parent in enumerate(self.parents):
            if not -1 <= parent < index:
                raise InputError(f"joint '{self.names[index]}': its parent must stand before it (a tree without cycle)")
        frames = np.shape(self.rotations)[0]
        for name, shape in (
            ("offsets", (joints, 3)),
            ("tips", (joints, 3)),
            ("shifts", (frames, joints, 3)),
            ("rotations", (frames, joints, 4)),
        ):
            value = frozen(measured(np.asarray(getattr(self, name), dtype=np.float64), f"joint motion: {name}"))
            if value.shape != shape:
                raise InputError(f"joint motion: {name} must be {shape}, got {value.shape}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "rate_hz", _checked_rate(self.rate_hz, "joint motion"))
        _checked_up(self.up, "joint motion")

    @property
    def frames(self) -> int:
        """Number of frames T."""
        return int(self.rotations.shape[0])

    def with_up(self, up: str) -> JointMotion:
        """Return the same motion in a world whose ``up`` axis points up; the joints' own axes turn with it.

        A body that stands at rest with its frames along the world's axes stands so afterwards, too.
        """
        if self.up == "":
            raise InputError("joint motion: the vertical axis is not known; pass up='x', 'y' or 'z' when reading")
        turn = _Z_FROM_UP[up].T @ _Z_FROM_UP[self.up]
        local = turn @ rotation_from_quaternion(self.rotations) @ turn.T
        return replace(
            self, offsets=self.offsets @ turn.T, tips=self.tips @ turn.T, shifts=self.shifts @ turn.T,
            rotations=quaternion_from_rotation(local), up=up,
        )  # fmt: skip

    def poses(self) -> tuple[Floats, Floats]:
        """Return joint centres (T, J, 3) mm and rotations (T, J, 3, 3), world from joint."""
        local = rotation_from_quaternion(self.rotations)
        positions = np.empty((self.frames, len(self.names), 3))
        rotations = np.empty((self.frames, len(self.names), 3, 3))
        for joint, parent in enumerate(self.parents):
            place = self.offsets[joint] + self.shifts[:, joint]
            if parent < 0:
                positions[:, joint], rotations[:, joint] = place, local[:, joint]
                continue
            rotations[:, joint] = rotations[:, parent] @ local[:, joint]
            positions[:, joint] = positions[:, parent] + np.einsum("tij,tj->ti", rotations[:, parent], place)
        return positions, rotations

    def as_markers(self, *, tips: bool = True) -> MarkerSeries:
        """Return the joint centres, and with ``tips`` the segment ends (named ``<joint>_tip``), as points."""
        positions, rotations = self.poses()
        names, points = list(self.names), [positions]
        if tips:
            ends = [joint for joint in range(len(self.names)) if np.isfinite(self.tips[joint]).all()]
            # A tip where a child begins is that child's centre already.
            ends = [
                joint
                for joint in ends
                if not any(
                    parent == joint and np.allclose(self.offsets[child], self.tips[joint])
                    for child, parent in enumerate(self.parents)
                )
            ]
            points.append(positions[:, ends] + np.einsum("tjab,jb->tja", rotations[:, ends], self.tips[ends]))
            names += [f"{self.names[joint]}_tip" for joint in ends]
        return MarkerSeries(tuple(names), np.concatenate(points, axis=1), self.rate_hz, up=self.up)


@dataclass(frozen=True, eq=False)
class CoordinateSeries:
    """Named columns over time, as OpenSim's MOT and STO files hold them.

    Attributes:
        names: D column names, without time.
        values: (T, D) as in the file; NaN where not given.
        times: (T,) s.
        in_degrees: the file's own word on its angles (False: radians, or no angles at all).
        title: first line of the file.
    """

    names: tuple[str, ...]
    values: Floats
    times: Floats
    in_degrees: bool
    title: str = field(default="Coordinates")

    def __post_init__(self) -> None:
        values = frozen(measured(np.asarray(self.values, dtype=np.float64), "coordinates"))
        times = frozen(measured(np.asarray(self.times, dtype=np.float64), "times"))
        if values.shape != (len(times), len(self.names)):
            raise InputError(
                f"coordinates: values must be ({len(times)}, {len(self.names)}) for these times and names, "
                f"got {values.shape}"
            )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "times", times)

    def column(self, name: str) -> Floats:
        """Return (T,) the column called ``name``, as in the file."""
        if name not in self.names:
            raise InputError(f"coordinates: no column '{name}'; the file has {', '.join(self.names)}")
        column: Floats = self.values[:, self.names.index(name)]
        return column


Motion: TypeAlias = MarkerSeries | JointMotion | CoordinateSeries
