"""Acclaim skeletons and motions (.asf with .amc), as the CMU motion database keeps them.

A bone turns at its parent's end about axes of its own: with C the bone's ``axis`` rotation and M the turn of the motion
file, its rest direction (given in world axes) is turned by ``C M C^-1``. Joint j of the motion read here is the start
of bone j, its tip the bone's end. An ASF length unit is 1/length inch: 25.4/length mm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from calibration.geometry.euler import angles_from_rotation, rotation_from_angles
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion
from skeleton.motion_files.motions import JointMotion

__all__ = ["AsfBone", "AsfSkeleton", "read_acclaim", "write_acclaim"]

_INCH = 25.4
_RATE_NOTE = "# rate_hz"


@dataclass(frozen=True, eq=False)
class AsfBone:
    """One bone of an .asf file: unit rest ``direction`` in world axes, ``length`` in mm, axes and freedoms."""

    name: str
    direction: Floats
    length: float
    axis: Floats
    axis_order: str
    dof: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class AsfSkeleton:
    """An .asf file: bones in hierarchy order, parent index of each (-1: the root), root channels, units."""

    bones: tuple[AsfBone, ...]
    parents: tuple[int, ...]
    root_order: tuple[str, ...]
    root_axis_order: str
    root_position: Floats
    root_orientation: Floats
    unit_mm: float
    in_degrees: bool


@dataclass
class _Section:
    lines: list[tuple[int, list[str]]] = field(default_factory=list)


def _sections(path: Path) -> dict[str, _Section]:
    sections: dict[str, _Section] = {}
    current = _Section()
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.split("#", 1)[0].replace("(", " ").replace(")", " ").split()
        if not words:
            continue
        if words[0].startswith(":"):
            current = sections.setdefault(words[0][1:].lower(), _Section())
            words = words[1:]
        if words:
            current.lines.append((number, words))
    return sections


def _numbers(words: list[str], count: int, where: str) -> Floats:
    try:
        values = np.array([float(word) for word in words[:count]])
    except ValueError:
        raise InputError(f"{where}: wanted {count} numbers, got '{' '.join(words)}'") from None
    if len(values) != count:
        raise InputError(f"{where}: wanted {count} numbers, got {len(values)}")
    return values


def read_asf(path: Path | str) -> AsfSkeleton:
    """Read an .asf skeleton file."""
    source = Path(path)
    sections = _sections(source)
    for name in ("root", "bonedata", "hierarchy"):
        if name not in sections:
            raise InputError(f"{source}: no section ':{name}'; not a whole ASF skeleton")
    unit_mm, in_degrees = _INCH, True
    for number, words in sections.get("units", _Section()).lines:
        if words[0] == "length":
            unit_mm = _INCH / _numbers(words[1:], 1, f"{source}:{number}")[0]
        elif words[0] == "angle":
            in_degrees = words[1].lower().startswith("deg")
    root = {words[0].lower(): (number, words[1:]) for number, words in sections["root"].lines}
    bones = {bone.name: bone for bone in _bones(sections["bonedata"], source, unit_mm, in_degrees)}
    names, parents = _hierarchy(sections["hierarchy"], source, set(bones))
    angle = np.pi / 180.0 if in_degrees else 1.0
    zero = (0, ["0", "0", "0"])
    return AsfSkeleton(
        bones=tuple(bones[name] for name in names),
        parents=parents,
        root_order=tuple(word.lower() for word in root.get("order", (0, ["tx", "ty", "tz", "rx", "ry", "rz"]))[1]),
        root_axis_order=root.get("axis", (0, ["XYZ"]))[1][0].lower(),
        root_position=_numbers(root.get("position", zero)[1], 3, f"{source}: root position") * unit_mm,
        root_orientation=_numbers(root.get("orientation", zero)[1], 3, f"{source}: root orientation") * angle,
        unit_mm=unit_mm,
        in_degrees=in_degrees,
    )


def _bones(section: _Section, source: Path, unit_mm: float, in_degrees: bool) -> list[AsfBone]:
    bones: list[AsfBone] = []
    angle = np.pi / 180.0 if in_degrees else 1.0
    fields: dict[str, list[str]] = {}
    limits: list[tuple[float, float]] = []
    last = ""
    for number, words in section.lines:
        where = f"{source}:{number}"
        key = words[0].lower()
        if key == "begin":
            fields, limits, last = {}, [], ""
        elif key == "end":
            try:
                name, axis = fields["name"][0], fields["axis"]
                direction = _numbers(fields["direction"], 3, where)
                length = _numbers(fields["length"], 1, where)[0] * unit_mm
            except KeyError as missing:
                raise InputError(f"{where}: the bone that ends here has no {missing}") from None
            norm = float(np.linalg.norm(direction))
            dof = tuple(word.lower() for word in fields.get("dof", []))
            for word in dof:
                if word not in ("rx", "ry", "rz", "tx", "ty", "tz"):
                    raise InputError(f"{where}: bone '{name}' has freedom '{word}'; rx ry rz tx ty tz are known")
            bones.append(
                AsfBone(
                    name,
                    direction / norm if norm > 0 else direction,
                    length,
                    _numbers(axis, 3, where) * angle,
                    axis[3].lower() if len(axis) > 3 else "xyz",
                    dof,
                    tuple(limits),
                )
            )
        elif key == "limits" or (last == "limits" and key not in ("id", "name", "direction", "length", "axis", "dof")):
            values = _numbers(words[1:] if key == "limits" else words, 2, where)
            limits.append((float(values[0]), float(values[1])))
            last = "limits"
            continue
        else:
            fields[key] = words[1:]
        last = key
    return bones


def _hierarchy(section: _Section, source: Path, known: set[str]) -> tuple[list[str], tuple[int, ...]]:
    children: dict[str, list[str]] = {}
    seen = {"root"}
    for number, words in section.lines:
        if words[0].lower() in ("begin", "end"):
            continue
        for name in words:
            if name != "root" and name not in known:
                raise InputError(f"{source}:{number}: hierarchy names bone '{name}' that :bonedata does not hold")
        for name in words[1:]:
            if name in seen:
                raise InputError(f"{source}:{number}: bone '{name}' has two parents or closes a cycle")
            seen.add(name)
        children.setdefault(words[0], []).extend(words[1:])
    names: list[str] = []
    parents: list[int] = []

    def visit(name: str, parent: int) -> None:
        for child in children.get(name, []):
            names.append(child)
            parents.append(parent)
            visit(child, len(names) - 1)

    visit("root", -1)
    lost = sorted(seen - {"root"} - set(names))
    if lost:
        raise InputError(f"{source}: bone '{lost[0]}' does not hang on the root (a cycle or a cut tree)")
    return names, tuple(parents)


def find_asf(amc: Path) -> Path:
    """Return the skeleton that belongs to a motion: same name, then the subject's name, then the only one there."""
    stem = amc.stem
    for candidate in (amc.with_suffix(".asf"), amc.with_name(f"{stem.split('_')[0]}.asf")):
        if candidate.exists():
            return candidate
    there = sorted(amc.parent.glob("*.asf"))
    if len(there) == 1:
        return there[0]
    raise InputError(f"{amc}: which .asf skeleton? {len(there)} lie beside it and none is called {stem}.asf")


def read_acclaim(
    amc: Path | str, asf: Path | str | None = None, *, rate_hz: float | None = None, up: str = "y"
) -> JointMotion:
    """Read an .amc motion with its .asf skeleton.

    Args:
        amc: the motion file.
        asf: its skeleton; by default looked for beside it (`find_asf`).
        rate_hz: frames per second; the format has no field for it (CMU: 120). Files written here carry it in
            a
            comment.
        up: the vertical axis, "y" by the format's custom.
    """
    source = Path(amc)
    skeleton = read_asf(find_asf(source) if asf is None else asf)
    text = read_text(source)
    if rate_hz is None:
        notes = [line for line in text.splitlines() if line.startswith(_RATE_NOTE)]
        if not notes:
            raise InputError(f"{source}: AMC files do not hold a frame rate; pass rate_hz (the CMU database: 120)")
        rate_hz = float(notes[0].split()[-1])
    names = ("root", *(bone.name for bone in skeleton.bones))
    order = {"root": skeleton.root_order} | {bone.name: bone.dof for bone in skeleton.bones}
    tables, in_degrees = _frames(source, text, order)
    angle = np.pi / 180.0 if in_degrees else 1.0
    frames = len(tables["root"])
    rotations = np.empty((frames, len(names), 3, 3))
    shifts = np.zeros((frames, len(names), 3))
    for index, name in enumerate(names):
        table = tables[name]
        turn = np.zeros((frames, 3))
        for column, word in enumerate(order[name]):
            axis = "xyz".index(word[1])
            if word[0] == "r":
                turn[:, axis] = table[:, column] * angle
            else:
                shifts[:, index, axis] = table[:, column] * skeleton.unit_mm
        bone = None if index == 0 else skeleton.bones[index - 1]
        # "XYZ" means x first, about fixed axes: the last axis stands leftmost in the product.
        axes = (skeleton.root_axis_order if bone is None else bone.axis_order)[::-1]
        moved = rotation_from_angles(turn[:, ["xyz".index(axis) for axis in axes]], axes)
        rest = skeleton.root_orientation if bone is None else bone.axis
        own = rotation_from_angles(rest[["xyz".index(axis) for axis in axes]], axes)
        rotations[:, index] = own @ moved @ own.T
    tips = np.array([[np.nan] * 3, *(bone.direction * bone.length for bone in skeleton.bones)])
    parents = (-1, *(parent + 1 for parent in skeleton.parents))
    offsets = np.array(
        [skeleton.root_position, *(tips[parent] if parent > 0 else np.zeros(3) for parent in parents[1:])]
    )
    return JointMotion(names, parents, offsets, tips, shifts, quaternion_from_rotation(rotations), rate_hz, up)


def _frames(source: Path, text: str, order: dict[str, tuple[str, ...]]) -> tuple[dict[str, Floats], bool]:
    """Return per bone its (T, dof) values, and whether angles are degrees."""
    rows: dict[str, list[list[float]]] = {name: [] for name in order}
    in_degrees, frames = True, 0
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        if words[0].startswith(":"):
            in_degrees = in_degrees and words[0].upper() != ":RADIANS"
        elif len(words) == 1 and words[0].isdigit():
            frames += 1
        else:
            name = words[0]
            if name not in rows:
                raise InputError(f"{source}:{number}: bone '{name}' is not in the skeleton; is it another subject's?")
            values = _numbers(words[1:], len(order[name]), f"{source}:{number}")
            if len(rows[name]) != frames - 1:
                raise InputError(
                    f"{source}:{number}: bone '{name}' stands twice in frame {frames} or was left out before"
                )
            rows[name].append(list(values))
    for name, table in rows.items():
        if order[name] and len(table) != frames:
            raise InputError(f"{source}: bone '{name}' has {len(table)} frames of {frames}")
    return {name: np.array(table).reshape(frames, len(order[name])) for name, table in rows.items()}, in_degrees


def write_acclaim(motion: JointMotion, amc: Path | str, asf: Path | str | None = None) -> None:
    """Write an .amc motion and the .asf skeleton it needs (by default beside it, under the same name).

    Every bone gets three rotations about world axes, so any tree can be written; a child that does not begin at its
    parent's tip hangs on a rigid bone ``<child>_link``. Lengths are written in inches (length 1.0).
    """
    target = Path(amc)
    if motion.parents.count(-1) != 1:
        raise InputError(f"{target}: ASF holds one root, this motion has {motion.parents.count(-1)}")
    if not (np.isfinite(motion.rotations).all() and np.isfinite(motion.shifts).all()):
        raise InputError(f"{target}: AMC has no mark for missing frames; fill or drop them first")
    bones: list[str] = []
    links: list[tuple[str, str]] = []

    def bone(name: str, vector: Floats, dof: bool, moving: bool) -> None:
        length = float(np.linalg.norm(vector))
        direction = vector / length if length > 0 else np.array([0.0, 0.0, 1.0])
        text = " ".join(f"{value:.12g}" for value in direction)
        bones.extend(["  begin", f"    id {len(links) + 1}", f"    name {name}", f"    direction {text}",
                      f"    length {length / _INCH:.12g}", "    axis 0 0 0 XYZ"])  # fmt: skip
        if dof:
            bones.append("    dof " + ("tx ty tz " if moving else "") + "rx ry rz")
        bones.append("  end")

    tips = np.where(np.isfinite(motion.tips), motion.tips, 0.0)
    moving = [bool(np.any(motion.shifts[:, joint])) for joint in range(len(motion.names))]
    for joint, parent in enumerate(motion.parents):
        if parent < 0:
            continue
        name = motion.names[joint]
        holder = "root" if motion.parents[parent] < 0 else motion.names[parent]
        begins = np.zeros(3) if holder == "root" else tips[parent]
        if not np.allclose(begins, motion.offsets[joint], atol=1e-9):
            bone(f"{name}_link", motion.offsets[joint] - begins, dof=False, moving=False)
            links.append((holder, f"{name}_link"))
            holder = f"{name}_link"
        bone(name, tips[joint], dof=True, moving=moving[joint])
        links.append((holder, name))
    children: dict[str, list[str]] = {}
    for holder, name in links:
        children.setdefault(holder, []).append(name)
    root = motion.parents.index(-1)
    place = " ".join(f"{value / _INCH:.12g}" for value in motion.offsets[root])
    head = ["# written by vivarig", ":version 1.10", ":name skeleton", ":units", "  mass 1.0", "  length 1.0",
            "  angle deg", ":root", "  order TX TY TZ RX RY RZ", "  axis XYZ", f"  position {place}",
            "  orientation 0 0 0", ":bonedata"]  # fmt: skip
    tree = [
        ":hierarchy",
        "  begin",
        *(f"    {holder} {' '.join(names)}" for holder, names in children.items()),
        "  end",
    ]
    write_text(target.with_suffix(".asf") if asf is None else asf, "\n".join(head + bones + tree) + "\n")
    angles = np.degrees(angles_from_rotation(rotation_from_quaternion(motion.rotations), "zyx"))[..., ::-1]
    lines = ["# written by vivarig", f"{_RATE_NOTE} {motion.rate_hz:.12g}", ":FULLY-SPECIFIED", ":DEGREES"]
    for frame in range(motion.frames):
        lines.append(str(frame + 1))
        for joint, parent in enumerate(motion.parents):
            values = list(angles[frame, joint])
            if parent < 0 or moving[joint]:
                values = [*(motion.shifts[frame, joint] / _INCH), *values]
            name = "root" if parent < 0 else motion.names[joint]
            lines.append(f"{name} " + " ".join(f"{value:.10g}" for value in values))
    write_text(target, "\n".join(lines) + "\n")
