"""Biovision hierarchies (.bvh): a joint tree, its channels and their values, without units of length.

Position channels of the root are added to its OFFSET; those of any other joint stand in for its OFFSET, as the programs
that write them mean it. Rotations multiply in the order of the channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from calibration.geometry.euler import angles_from_rotation, rotation_from_angles
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion
from skeleton.motion_files.motions import JointMotion

__all__ = ["read_bvh", "write_bvh"]


@dataclass
class _Joint:
    name: str
    parent: int
    offset: tuple[float, ...] = (0.0, 0.0, 0.0)
    tip: tuple[float, ...] = (np.nan, np.nan, np.nan)
    channels: tuple[str, ...] = ()


class _Reader:
    """Tokens of the file with the line they stand on, for errors that name it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = read_text(path).splitlines()
        self.tokens = [(word, number) for number, line in enumerate(self.lines, 1) for word in line.split()]
        self.place = 0

    def error(self, wanted: str) -> InputError:
        word, line = self.tokens[self.place - 1] if self.place else ("", 1)
        return InputError(f"{self.path}:{line}: wanted {wanted}, got '{word}'")

    def take(self, wanted: str = "") -> str:
        if self.place >= len(self.tokens):
            raise InputError(f"{self.path}: ends where {wanted or 'more'} is wanted; the file is cut short")
        word = self.tokens[self.place][0]
        self.place += 1
        if wanted and word.upper() != wanted.upper():
            raise self.error(f"'{wanted}'")
        return word

    def numbers(self, count: int) -> tuple[float, ...]:
        try:
            return tuple(float(self.take()) for _ in range(count))
        except ValueError:
            raise self.error("a number") from None


def _read_joint(reader: _Reader, parent: int, joints: list[_Joint]) -> None:
    name = [reader.take()]
    while (word := reader.take()) != "{":
        name.append(word)  # names may hold blanks
    joint = _Joint(" ".join(name), parent)
    joints.append(joint)
    index = len(joints) - 1
    while (word := reader.take()) != "}":
        match word.upper():
            case "OFFSET":
                joint.offset = reader.numbers(3)
            case "CHANNELS":
                joint.channels = tuple(reader.take().lower() for _ in range(int(reader.take())))
                for channel in joint.channels:
                    if channel[:1] not in "xyz" or channel[1:] not in ("position", "rotation"):
                        raise reader.error("channels like Xposition or Zrotation")
            case "JOINT":
                _read_joint(reader, index, joints)
            case "END":
                reader.take("Site")
                reader.take("{")
                reader.take("OFFSET")
                joint.tip = reader.numbers(3)
                reader.take("}")
            case _:
                raise reader.error("OFFSET, CHANNELS, JOINT, End Site or '}'")


def read_bvh(path: Path | str, *, unit_mm: float, up: str = "y", drop_first: bool = False) -> JointMotion:
    """Read a BVH file.

    Args:
        path: the file.
        unit_mm: millimetres in one unit of the file (the format does not say: 10 for centimetres, 25.4/0.45
            for
            the CMU conversions).
        up: the vertical axis; "y" by the format's custom.
        drop_first: leave out frame 0, where some conversions put a T-pose.
    """
    reader = _Reader(Path(path))
    joints: list[_Joint] = []
    reader.take("HIERARCHY")
    while (word := reader.take()).upper() != "MOTION":
        if word.upper() != "ROOT":
            raise reader.error("ROOT or MOTION")
        _read_joint(reader, -1, joints)
    reader.take("Frames:")
    frames = int(reader.numbers(1)[0])
    reader.take("Frame")
    reader.take("Time:")
    period = reader.numbers(1)[0]
    if period <= 0:
        raise reader.error("a frame time above 0 s")
    columns = sum(len(joint.channels) for joint in joints)
    words = [word for word, _ in reader.tokens[reader.place :]]
    if len(words) != frames * columns:
        raise InputError(
            f"{path}: wanted {frames} frames of {columns} values, got {len(words)} values "
            f"({len(words) / max(columns, 1):g} frames)"
        )
    try:
        values = np.array(words, dtype=np.float64).reshape(frames, columns)
    except ValueError:
        raise InputError(f"{path}: a value after 'Frame Time' is not a number") from None
    first = 1 if drop_first else 0
    return _motion(joints, values[first:], _snapped(1.0 / period), unit_mm, up)


def _snapped(rate: float) -> float:
    """Round a rate that was stored as a period of few digits (.0083333 s is 120 Hz)."""
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) < 1e-4 * whole else rate


def _motion(joints: list[_Joint], values: Floats, rate_hz: float, unit_mm: float, up: str) -> JointMotion:
    frames, column = len(values), 0
    shifts = np.zeros((frames, len(joints), 3))
    rotations = np.zeros((frames, len(joints), 3, 3))
    for index, joint in enumerate(joints):
        block = values[:, column : column + len(joint.channels)]
        column += len(joint.channels)
        for place, channel in enumerate(joint.channels):
            if channel.endswith("position"):
                axis = "xyz".index(channel[0])
                given_instead = joint.parent >= 0
                shifts[:, index, axis] = block[:, place] - (joint.offset[axis] if given_instead else 0.0)
        turning = [place for place, channel in enumerate(joint.channels) if channel.endswith("rotation")]
        axes = "".join(joint.channels[place][0] for place in turning)
        rotations[:, index] = rotation_from_angles(np.radians(block[:, turning]), axes)
    return JointMotion(
        names=tuple(joint.name for joint in joints),
        parents=tuple(joint.parent for joint in joints),
        offsets=np.array([joint.offset for joint in joints]) * unit_mm,
        tips=np.array([joint.tip for joint in joints]) * unit_mm,
        shifts=shifts * unit_mm,
        rotations=quaternion_from_rotation(rotations),
        rate_hz=rate_hz,
        up=up,
    )


def write_bvh(motion: JointMotion, path: Path | str, *, unit_mm: float = 10.0) -> None:
    """Write a BVH file: positions of the root and of every joint that shifts, rotations Z Y X.

    Args:
        motion: what to write.
        path: the file, written atomically.
        unit_mm: millimetres in one unit of the file; centimetres by the custom of the programs that read it.
    """
    if not np.isfinite(motion.rotations).all() or not np.isfinite(motion.shifts).all():
        raise InputError(f"{path}: BVH has no mark for missing frames; fill or drop them first")
    children: list[list[int]] = [[] for _ in motion.names]
    for joint, parent in enumerate(motion.parents):
        if parent >= 0:
            children[parent].append(joint)
    shifting = [parent < 0 or bool(np.any(motion.shifts[:, joint])) for joint, parent in enumerate(motion.parents)]
    lines = ["HIERARCHY"]
    order: list[int] = []

    def offset_line(vector: Floats, pad: str) -> str:
        return f"{pad}OFFSET " + " ".join(f"{value / unit_mm:.9g}" for value in vector)

    def put(joint: int, depth: int) -> None:
        order.append(joint)
        pad = "\t" * depth
        lines.append(f"{pad}{'ROOT' if motion.parents[joint] < 0 else 'JOINT'} {motion.names[joint]}")
        lines.append(pad + "{")
        lines.append(offset_line(motion.offsets[joint], pad + "\t"))
        turning = "Zrotation Yrotation Xrotation"
        moving = "6 Xposition Yposition Zposition " if shifting[joint] else "3 "
        lines.append(f"{pad}\tCHANNELS {moving}{turning}")
        for child in children[joint]:
            put(child, depth + 1)
        if not children[joint] or np.isfinite(motion.tips[joint]).all():
            tip = np.where(np.isfinite(motion.tips[joint]), motion.tips[joint], 0.0)
            lines.extend([f"{pad}\tEnd Site", pad + "\t{", offset_line(tip, pad + "\t\t"), pad + "\t}"])
        lines.append(pad + "}")

    for joint, parent in enumerate(motion.parents):
        if parent < 0:
            put(joint, 0)
    angles = np.degrees(angles_from_rotation(rotation_from_quaternion(motion.rotations), "zyx"))
    columns: list[Floats] = []
    for joint in order:
        if shifting[joint]:
            place = motion.shifts[:, joint] + (motion.offsets[joint] if motion.parents[joint] >= 0 else 0.0)
            columns.append(place / unit_mm)
        columns.append(angles[:, joint])
    values = np.concatenate(columns, axis=1)
    lines += ["MOTION", f"Frames: {motion.frames}", f"Frame Time: {1.0 / motion.rate_hz:.12g}"]
    lines += [" ".join(f"{value:.9g}" for value in row) for row in values]
    write_text(path, "\n".join(lines) + "\n")
