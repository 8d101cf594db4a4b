"""OpenSim models (.osim): the kinematic part, with custom joints and their spline functions.

A joint places the child body by ``X_parent_offset T(q) R1(q) R2(q) R3(q) X_child_offset^-1``: three translations along
axes of the parent's offset frame, three body-fixed rotations, each a function of one coordinate. Files of version 4
(joint set, sockets) and of version 3 (joints inside bodies) are read. Lengths become millimetres; so do coordinates
that only translate. World axes stay the model's own (OpenSim: y up).
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text
from calibration.geometry.euler import rotation_from_angles
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.model_files.osim_functions import axis_function, number_of, numbers_of, text_of, vector_of
from skeleton.tree.articulation import Articulation, NodeBuilder, Piecewise
from skeleton.tree.articulation_kernels import RIGID, SLIDE, TURN, Limits

__all__ = ["IkSetup", "OsimModel", "read_ik_setup", "read_osim"]


@dataclass(frozen=True, eq=False)
class OsimModel:
    """What a model file holds for inverse kinematics.

    Attributes:
        body: the tree; segments are the model's bodies.
        markers: the model's markers, all with the same standard deviation.
        masses_kg: body name to mass.
    """

    body: Articulation
    markers: MarkerSet
    masses_kg: dict[str, float]


@dataclass(frozen=True, eq=False)
class IkSetup:
    """Tasks of an OpenSim inverse kinematics set-up file.

    Attributes:
        marker_weights: marker name to weight.
        coordinate_tasks: coordinate name to (value, weight); rad and 1/rad^2.
        time_range: first and last time, s.
    """

    marker_weights: dict[str, float]
    coordinate_tasks: dict[str, tuple[float, float]]
    time_range: tuple[float, float]


@dataclass(frozen=True)
class _Axis:
    """One of the six axes of a joint: what it does, about which axis, of which coordinate, by which function."""

    slides: bool
    axis: tuple[float, float, float]
    coordinate: str
    function: Element | None


@dataclass(frozen=True)
class _Joint:
    name: str
    parent: str
    child: str
    parent_frame: tuple[Floats, Floats]
    child_frame: tuple[Floats, Floats]
    coordinates: tuple[Element, ...]
    axes: tuple[_Axis, ...]


def _is_function(element: Element) -> bool:
    return element.tag.endswith(("Function", "Spline")) or element.tag == "Constant"


def _custom_axes(joint: Element, who: str) -> tuple[_Axis, ...]:
    transform = joint.find("SpatialTransform")
    if transform is None:
        raise InputError(f"{who}: a CustomJoint without SpatialTransform")
    axes = []
    for axis in transform.findall("TransformAxis"):
        holder = axis.find("function")
        function = next((child for child in axis if _is_function(child)), None)
        if function is None and holder is not None and len(holder):
            function = holder[0]
        name = text_of(axis, "coordinates").split()
        if len(name) > 1:
            raise InputError(f"{who}: an axis driven by {len(name)} coordinates is not supported")
        direction = vector_of(axis, "axis", who)
        length = float(np.linalg.norm(direction))
        x, y, z = direction / length if length > 0 else direction
        axes.append(_Axis(axis.attrib.get("name", "").startswith("translation"), (x, y, z), "".join(name), function))
    return tuple(axes)


#: Plain joints: (slides, axis) of their coordinates in order.
_PLAIN: dict[str, list[tuple[bool, tuple[float, float, float]]]] = {
    "WeldJoint": [],
    "PinJoint": [(False, (0, 0, 1))],
    "SliderJoint": [(True, (1, 0, 0))],
    "UniversalJoint": [(False, (1, 0, 0)), (False, (0, 1, 0))],
    "PlanarJoint": [(False, (0, 0, 1)), (True, (1, 0, 0)), (True, (0, 1, 0))],
    "GimbalJoint": [(False, (1, 0, 0)), (False, (0, 1, 0)), (False, (0, 0, 1))],
    "BallJoint": [(False, (1, 0, 0)), (False, (0, 1, 0)), (False, (0, 0, 1))],
    "FreeJoint": [(False, (1, 0, 0)), (False, (0, 1, 0)), (False, (0, 0, 1)),
                  (True, (1, 0, 0)), (True, (0, 1, 0)), (True, (0, 0, 1))],
}  # fmt: skip


def _axes_of(joint: Element, coordinates: tuple[Element, ...], who: str) -> tuple[_Axis, ...]:
    if joint.tag == "CustomJoint":
        return _custom_axes(joint, who)
    if joint.tag not in _PLAIN:
        raise InputError(
            f"{who}: joint type '{joint.tag}' is not supported; known are CustomJoint, {', '.join(_PLAIN)}"
        )
    plain = _PLAIN[joint.tag]
    if len(plain) != len(coordinates):
        raise InputError(f"{who}: a {joint.tag} has {len(plain)} coordinates, the file gives {len(coordinates)}")
    return tuple(
        _Axis(slides, axis, coordinate.attrib["name"], None)
        for (slides, axis), coordinate in zip(plain, coordinates, strict=True)
    )


def _frame(element: Element | None, translation: str, orientation: str, who: str) -> tuple[Floats, Floats]:
    """Rotation (3, 3) and translation (3,) mm of an offset frame; orientation is body-fixed x y z."""
    turn = rotation_from_angles(vector_of(element, orientation, who), "xyz")
    return turn, 1000.0 * vector_of(element, translation, who)


def _joint_of_version_4(joint: Element, who: str) -> _Joint:
    frames = {frame.attrib["name"]: frame for frame in joint.findall("frames/PhysicalOffsetFrame")}
    sides = []
    for side in ("socket_parent_frame", "socket_child_frame"):
        path = text_of(joint, side)
        frame = frames.get(path.rsplit("/", 1)[-1])
        name = path if frame is None else text_of(frame, "socket_parent")
        sides.append((name.rsplit("/", 1)[-1], _frame(frame, "translation", "orientation", who)))
    coordinates = tuple(joint.findall("coordinates/Coordinate"))
    axes = _axes_of(joint, coordinates, who)
    return _Joint(joint.attrib["name"], sides[0][0], sides[1][0], sides[0][1], sides[1][1], coordinates, axes)


def _joint_of_version_3(joint: Element, child: str, who: str) -> _Joint:
    coordinates = tuple(joint.findall("CoordinateSet/objects/Coordinate"))
    return _Joint(
        joint.attrib.get("name", child),
        text_of(joint, "parent_body"),
        child,
        _frame(joint, "location_in_parent", "orientation_in_parent", who),
        _frame(joint, "location", "orientation", who),
        coordinates,
        _axes_of(joint, coordinates, who),
    )


def _joints(model: Element, who: str) -> list[_Joint]:
    newer = model.find("JointSet/objects")
    if newer is not None and len(newer):
        joints = [_joint_of_version_4(joint, f"{who}: joint '{joint.attrib.get('name')}'") for joint in newer]
    else:
        joints = []
        for body in model.findall("BodySet/objects/Body"):
            holder = body.find("Joint")
            if holder is not None and len(holder):
                name = body.attrib["name"]
                joints.append(_joint_of_version_3(holder[0], name, f"{who}: joint of body '{name}'"))
    if not joints:
        raise InputError(f"{who}: the model has no joints")
    placed, ordered = {"ground"}, []
    while joints:
        ready = [joint for joint in joints if joint.parent in placed]
        if not ready:
            names = ", ".join(joint.name for joint in joints)
            raise InputError(f"{who}: the joints {names} form a cycle or hang on no body")
        for joint in ready:
            if joint.child in placed:
                raise InputError(f"{who}: body '{joint.child}' has two joints; closed loops are not supported")
            placed.add(joint.child)
            ordered.append(joint)
            joints.remove(joint)
    return _depth_first(ordered)


def _depth_first(joints: list[_Joint]) -> list[_Joint]:
    children: dict[str, list[_Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    out: list[_Joint] = []

    def visit(body: str) -> None:
        for joint in children.get(body, []):
            out.append(joint)
            visit(joint.child)

    visit("ground")
    return out


def _in_mm(function: Piecewise, *, slides: bool, is_length: bool) -> Piecewise:
    """Return a function with metres as millimetres, in what it takes and in what it gives."""
    breaks = function.breaks * (1000.0 if is_length else 1.0)
    powers = np.array([1.0, 1e-3, 1e-6, 1e-9]) if is_length else np.ones(4)
    return Piecewise(breaks, function.pieces * powers * (1000.0 if slides else 1.0))


@guarded("an OpenSim file")
def read_osim(path: Path | str, *, enforce_ranges: bool = False, marker_sd_mm: float = 10.0) -> OsimModel:
    """Read an OpenSim model.

    Args:
        path: the .osim file.
        enforce_ranges: hold all coordinates within their ranges, not only those marked as clamped.
        marker_sd_mm: standard deviation given to all markers.
    """
    who = str(path)
    try:
        root = ElementTree.fromstring(read_text(path))
    except ElementTree.ParseError as error:
        raise InputError(f"{who}: not XML: {error}") from None
    model = root if root.tag == "Model" else root.find("Model")
    if model is None:
        raise InputError(f"{who}: no element 'Model'; not an OpenSim model")
    coupled = model.find("ConstraintSet/objects")
    for constraint in coupled if coupled is not None else ():
        if text_of(constraint, "isEnforced", "true").lower() == "true":
            raise InputError(
                f"{who}: constraint '{constraint.attrib.get('name')}' ({constraint.tag}) is not supported; "
                "remove it or its coordinate from the model"
            )
    joints = _joints(model, who)
    body = _build(joints, model.attrib.get("name", Path(path).stem), enforce_ranges)
    masses = {
        item.attrib["name"]: number_of(item, "mass", "0", item.attrib["name"])
        for item in model.findall("BodySet/objects/Body")
    }
    return OsimModel(body, _markers(model, body, marker_sd_mm, who), masses)


def _build(joints: list[_Joint], name: str, enforce_ranges: bool) -> Articulation:
    builder = NodeBuilder()
    carriers = {"ground": builder.add(-1)}
    segments: list[str] = []
    names: list[str] = []
    rest: list[float] = []
    bounds: list[tuple[float, float]] = []
    lengths: list[bool] = []
    locked: list[bool] = []
    for joint in joints:
        column: dict[str, int] = {}
        for coordinate in joint.coordinates:
            key = coordinate.attrib["name"]
            uses = [axis for axis in joint.axes if axis.coordinate == key]
            is_length = bool(uses) and all(axis.slides for axis in uses)
            unit = 1000.0 if is_length else 1.0
            column[key] = len(names)
            names.append(key)
            lengths.append(is_length)
            rest.append(unit * number_of(coordinate, "default_value", "0", key))
            locked.append(text_of(coordinate, "locked", "false").lower() == "true" or not uses)
            low, high = (
                numbers_of(text_of(coordinate, "range", "-inf inf"), f"{key}: range", endless=True) * unit
            ).tolist()
            held = enforce_ranges or text_of(coordinate, "clamped", "false").lower() == "true"
            bounds.append((low, high) if held else (-np.inf, np.inf))
        turn, shift = joint.parent_frame
        node = builder.add(carriers[joint.parent], RIGID, rotation=turn, offset=shift)
        # Translations act in the parent's frame, before the rotations.
        for axis in sorted(joint.axes, key=lambda one: not one.slides):
            function = axis_function(axis.function, joint.name)
            if not axis.coordinate:
                value = float(function.pieces[0, 0]) * (1000.0 if axis.slides else 1.0)
                if axis.slides:
                    node = builder.add(node, RIGID, offset=value * np.array(axis.axis))
                else:
                    node = builder.add(node, RIGID, rotation=_about(np.array(axis.axis), value))
                continue
            if axis.coordinate not in column:
                raise InputError(
                    f"joint '{joint.name}': no coordinate '{axis.coordinate}'; {nearest(axis.coordinate, column)}"
                )
            index = column[axis.coordinate]
            plain = len(function.breaks) == 1 and np.array_equal(function.pieces[0], [0.0, 1.0, 0.0, 0.0])
            scaled = None if plain else _in_mm(function, slides=axis.slides, is_length=lengths[index])
            if plain and axis.slides != lengths[index]:
                scaled = _in_mm(function, slides=axis.slides, is_length=lengths[index])
            kind = SLIDE if axis.slides else TURN
            node = builder.add(node, kind, axis=np.array(axis.axis), column=index, function=scaled)
        turn, shift = joint.child_frame
        node = builder.add(node, RIGID, rotation=turn.T, offset=-turn.T @ shift)
        carriers[joint.child] = node
        segments.append(joint.child)
    limits = np.array(bounds).reshape(-1, 2)
    fixed: Bools = np.array(locked, dtype=np.bool_)
    return Articulation(
        name=name,
        nodes=builder.nodes(),
        segment_names=tuple(segments),
        segment_nodes=np.array([carriers[segment] for segment in segments], dtype=np.int64),
        coordinate_names=tuple(names),
        limits=Limits(limits[:, 0].copy(), limits[:, 1].copy(), np.zeros(0, dtype=np.int64), np.zeros((0, 3, 2))),
        is_length=np.array(lengths, dtype=np.bool_),
        rest=np.array(rest),
        locked=fixed,
    )


def _about(axis: Floats, angle: float) -> Floats:
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)


def _markers(model: Element, body: Articulation, sd: float, who: str) -> MarkerSet:
    names, segments, offsets = [], [], []
    for marker in model.findall("MarkerSet/objects/Marker"):
        frame = text_of(marker, "socket_parent_frame") or text_of(marker, "body")
        segment = frame.rsplit("/", 1)[-1]
        if segment not in body.segment_names:
            raise InputError(
                f"{who}: marker '{marker.attrib['name']}' sits on '{segment}'; {nearest(segment, body.segment_names)}"
            )
        names.append(marker.attrib["name"])
        segments.append(segment)
        offsets.append(1000.0 * vector_of(marker, "location", who))
    return MarkerSet(tuple(names), tuple(segments), np.array(offsets).reshape(-1, 3), np.full(len(names), sd))


@guarded("an OpenSim file")
def read_ik_setup(path: Path | str) -> IkSetup:
    """Read the tasks of an OpenSim inverse kinematics set-up file."""
    try:
        root = ElementTree.fromstring(read_text(path))
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: not XML: {error}") from None
    markers, coordinates = {}, {}
    for task in root.iter("IKMarkerTask"):
        if text_of(task, "apply", "true").lower() == "true":
            markers[task.attrib["name"]] = number_of(task, "weight", "1", task.attrib["name"])
    for task in root.iter("IKCoordinateTask"):
        if text_of(task, "apply", "true").lower() == "true":
            name = task.attrib["name"]
            value = 0.0 if text_of(task, "value_type") == "default_value" else number_of(task, "value", "0", name)
            coordinates[name] = (value, number_of(task, "weight", "1", name))
    spans = list(root.iter("time_range"))
    low, high = numbers_of(spans[0].text, f"{path}: time_range", endless=True).tolist() if spans else (-np.inf, np.inf)
    return IkSetup(markers, coordinates, (low, high))
