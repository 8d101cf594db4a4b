"""MuJoCo models (.xml): the kinematic part, bodies with their joints and sites.

A body sits in its parent at ``pos`` with ``quat`` (or euler, axisangle, xyaxes, zaxis); its joints act in the order of
the file, each about its own ``pos`` in the body. Defaults by class, angles in degrees or radians and ``eulerseq`` are
honoured. Metres become millimetres; geometry, actuators and dynamics are not read. World axes stay (MuJoCo: z up).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from calibration.foundation.arrays import HUGE, Floats
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text
from calibration.geometry.euler import rotation_from_angles
from calibration.geometry.transforms import rotation_from_quaternion, rotation_from_vector
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.tree.articulation import Articulation, NodeBuilder
from skeleton.tree.articulation_kernels import BALL, RIGID, SLIDE, TURN, Limits

__all__ = ["MujocoModel", "read_mujoco"]


@dataclass(frozen=True, eq=False)
class MujocoModel:
    """What a model file holds for inverse kinematics.

    Attributes:
        body: the tree; segments are the model's bodies.
        sites: the model's sites as markers, all with the same standard deviation.
    """

    body: Articulation
    sites: MarkerSet


@dataclass
class _Reading:
    """Everything that grows while the tree is walked."""

    who: str
    in_degrees: bool
    euler: str
    defaults: dict[str, dict[str, dict[str, str]]]
    builder: NodeBuilder = field(default_factory=NodeBuilder)
    segments: list[str] = field(default_factory=list)
    carriers: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    lengths: list[bool] = field(default_factory=list)
    bounds: list[tuple[float, float]] = field(default_factory=list)
    balls: list[tuple[int, float]] = field(default_factory=list)
    sites: list[tuple[str, str, Floats]] = field(default_factory=list)

    def attributes(self, element: Element, childclass: str) -> dict[str, str]:
        """Return an element's attributes over those of its default class."""
        name = element.attrib.get("class", childclass)
        if name not in self.defaults:
            raise InputError(f"{self.who}: unknown default class '{name}'")
        return {**self.defaults[name].get(element.tag, {}), **element.attrib}

    def vector(self, text: str | None, count: int, what: str) -> Floats:
        try:
            values = np.array([float(word) for word in (text or "").split()])
        except ValueError:
            values = np.array([np.nan])
        if not (np.abs(values) < HUGE).all():
            raise InputError(f"{self.who}: {what}: wanted {count} numbers, got '{text}'")
        if text is None:
            return np.zeros(count)
        if len(values) != count:
            raise InputError(f"{self.who}: {what}: wanted {count} numbers, got {len(values)}")
        return values

    def angle(self, value: float) -> float:
        return float(np.radians(value)) if self.in_degrees else float(value)


def _defaults(root: Element) -> dict[str, dict[str, dict[str, str]]]:
    """Return class name to element tag to attributes; nested classes inherit."""
    found: dict[str, dict[str, dict[str, str]]] = {}

    def visit(element: Element, inherited: dict[str, dict[str, str]], top: bool) -> None:
        own = {tag: dict(values) for tag, values in inherited.items()}
        for child in element:
            if child.tag != "default":
                own.setdefault(child.tag, {}).update(child.attrib)
        found["main" if top else element.attrib.get("class", "main")] = own
        for child in element:
            if child.tag == "default":
                visit(child, own, top=False)

    for element in root.findall("default"):
        visit(element, found.get("main", {}), top="class" not in element.attrib)
    found.setdefault("main", {})
    return found


def _rotation(reading: _Reading, values: dict[str, str], what: str) -> Floats:
    """Return the orientation of a body or site (3, 3)."""
    if "quat" in values:
        quaternion = reading.vector(values["quat"], 4, f"{what}: quat")
        return rotation_from_quaternion(quaternion / np.linalg.norm(quaternion))
    if "axisangle" in values:
        axis = reading.vector(values["axisangle"], 4, f"{what}: axisangle")
        return rotation_from_vector(axis[:3] / np.linalg.norm(axis[:3]) * reading.angle(axis[3]))
    if "euler" in values:
        angles = np.array([reading.angle(value) for value in reading.vector(values["euler"], 3, f"{what}: euler")])
        # Lower case turns with the frame; upper case about fixed axes, last one leftmost.
        moving = reading.euler.islower()
        axes = reading.euler if moving else reading.euler[::-1].lower()
        return rotation_from_angles(angles if moving else angles[::-1], axes)
    if "xyaxes" in values:
        both = reading.vector(values["xyaxes"], 6, f"{what}: xyaxes")
        x = both[:3] / np.linalg.norm(both[:3])
        y = both[3:] - x * (x @ both[3:])
        y /= np.linalg.norm(y)
        return np.stack([x, y, np.cross(x, y)], axis=1)
    if "zaxis" in values:
        z = reading.vector(values["zaxis"], 3, f"{what}: zaxis")
        z = z / np.linalg.norm(z)
        axis, cosine = np.cross([0.0, 0.0, 1.0], z), float(z[2])
        sine = float(np.linalg.norm(axis))
        if sine < 1e-12:
            return np.eye(3) if cosine > 0 else np.diag([1.0, -1.0, -1.0])
        return rotation_from_vector(axis / sine * np.arctan2(sine, cosine))
    return np.eye(3)


def _add_joint(reading: _Reading, element: Element, node: int, childclass: str, body: str) -> int:
    values = reading.attributes(element, childclass)
    kind = "free" if element.tag == "freejoint" else values.get("type", "hinge")
    name = values.get("name", f"{body}_{kind}_{len(reading.names)}")
    builder = reading.builder
    first = len(reading.names)
    if kind == "free":
        for axis in range(3):
            node = builder.add(node, SLIDE, axis=np.eye(3)[axis], column=first + axis)
        node = builder.add(node, BALL, column=first + 3)
        reading.names += [f"{name}_{word}" for word in ("tx", "ty", "tz", "rx", "ry", "rz")]
        reading.lengths += [True] * 3 + [False] * 3
        reading.bounds += [(-np.inf, np.inf)] * 6
        return node
    place = 1000.0 * reading.vector(values.get("pos"), 3, f"joint '{name}': pos")
    limited = values.get("limited", "auto")
    has_range = "range" in values and limited != "false"
    low, high = reading.vector(values.get("range"), 2, f"joint '{name}': range") if has_range else (-np.inf, np.inf)
    node = builder.add(node, RIGID, offset=place)
    if kind == "ball":
        node = builder.add(node, BALL, column=first)
        reading.names += [f"{name}_{word}" for word in ("rx", "ry", "rz")]
        reading.lengths += [False] * 3
        reading.bounds += [(-np.inf, np.inf)] * 3
        if has_range:
            reading.balls.append((first, reading.angle(float(high))))
    elif kind in ("hinge", "slide"):
        axis_vector = reading.vector(values.get("axis", "0 0 1"), 3, f"joint '{name}': axis")
        axis_vector = axis_vector / np.linalg.norm(axis_vector)
        slides = kind == "slide"
        node = builder.add(node, SLIDE if slides else TURN, axis=axis_vector, column=first)
        reading.names.append(name)
        reading.lengths.append(slides)
        scale = 1000.0 if slides else reading.angle(1.0)
        reading.bounds.append((float(low) * scale, float(high) * scale))
    else:
        raise InputError(f"{reading.who}: joint '{name}': unknown type '{kind}'; hinge, slide, ball and free are known")
    return builder.add(node, RIGID, offset=-place)


def _add_body(reading: _Reading, element: Element, parent: int, childclass: str) -> None:
    name = element.attrib.get("name", f"body_{len(reading.segments)}")
    values = dict(element.attrib)
    inherited = values.get("childclass", childclass)
    place = 1000.0 * reading.vector(values.get("pos"), 3, f"body '{name}': pos")
    node = reading.builder.add(parent, RIGID, rotation=_rotation(reading, values, f"body '{name}'"), offset=place)
    for child in element:
        if child.tag in ("joint", "freejoint"):
            node = _add_joint(reading, child, node, inherited, name)
    reading.segments.append(name)
    reading.carriers.append(node)
    for child in element:
        if child.tag == "site":
            attributes = reading.attributes(child, inherited)
            site = attributes.get("name", f"{name}_site_{len(reading.sites)}")
            offset = 1000.0 * reading.vector(attributes.get("pos"), 3, f"site '{site}': pos")
            reading.sites.append((site, name, offset))
        elif child.tag == "body":
            _add_body(reading, child, node, inherited)


@guarded("a MuJoCo model")
def read_mujoco(path: Path | str, *, marker_sd_mm: float = 10.0) -> MujocoModel:
    """Read the bodies, joints and sites of a MuJoCo model.

    Args:
        path: the .xml file; included files are not followed.
        marker_sd_mm: standard deviation given to all sites.
    """
    who = str(path)
    try:
        root = ElementTree.fromstring(read_text(path))
    except ElementTree.ParseError as error:
        raise InputError(f"{who}: not XML: {error}") from None
    if root.tag != "mujoco":
        raise InputError(f"{who}: wanted a 'mujoco' model, got '{root.tag}'")
    if root.find(".//include") is not None:
        raise InputError(f"{who}: included files are not followed; compile the model to one file first")
    compiler = {key: value for element in root.findall("compiler") for key, value in element.attrib.items()}
    reading = _Reading(
        who, compiler.get("angle", "degree") == "degree", compiler.get("eulerseq", "xyz"), _defaults(root)
    )
    world = root.find("worldbody")
    bodies = [] if world is None else world.findall("body")
    if not bodies:
        raise InputError(f"{who}: worldbody holds no body")
    for body in bodies:
        _add_body(reading, body, -1, "main")
    bounds = np.array(reading.bounds).reshape(-1, 2)
    starts = np.array([start for start, _ in reading.balls], dtype=np.int64)
    halves = np.array([np.full((3, 2), radius) for _, radius in reading.balls]).reshape(-1, 3, 2)
    is_length = np.array(reading.lengths, dtype=np.bool_)
    rest = np.clip(np.zeros(len(bounds)), bounds[:, 0], bounds[:, 1])
    articulation = Articulation(
        name=root.attrib.get("model", Path(path).stem),
        nodes=reading.builder.nodes(),
        segment_names=tuple(reading.segments),
        segment_nodes=np.array(reading.carriers, dtype=np.int64),
        coordinate_names=tuple(reading.names),
        limits=Limits(bounds[:, 0].copy(), bounds[:, 1].copy(), starts, halves),
        is_length=is_length,
        rest=rest,
        locked=np.zeros(len(bounds), dtype=np.bool_),
    )
    names, segments, offsets = zip(*reading.sites, strict=True) if reading.sites else ((), (), ())
    sites = MarkerSet(
        tuple(names), tuple(segments), np.array(offsets).reshape(-1, 3), np.full(len(names), marker_sd_mm)
    )
    return MujocoModel(articulation, sites)
