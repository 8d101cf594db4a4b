"""A skeleton as an OpenSim model (.osim, version 4), and its motion in that model's coordinates.

At rest our segment frames are aligned with the world (x forward, y left, z up); OpenSim's are x forward, y up, z right.
All frames turn alike, so that offsets and axes become ``C x`` and a joint's turn ``C R C^T``. A ball joint, whose
coordinates here are a rotation vector, becomes three body-fixed rotations about z, x and y. Metres; angles in degrees
in motion files. Inertia is that of a ball of water of the segment's mass: enough for kinematics, not for forces.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.geometry.euler import angles_from_rotation
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.tree.joint_tree import Joint, Skeleton

__all__ = ["Y_UP", "opensim_coordinates", "write_osim"]

#: OpenSim's axes from ours: x forward, y up, z right.
Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])

_EULER = "zxy"
_MM = 0.001


def _numbers(values: Floats) -> str:
    return " ".join(f"{value:.9g}" for value in np.ravel(np.asarray(values)) + 0.0)


def _text(parent: Element, tag: str, text: str) -> None:
    SubElement(parent, tag).text = text


def _turning(joint: Joint) -> list[tuple[str, Floats, tuple[float, float]]]:
    """Coordinates that turn: name, axis in OpenSim's axes and range, rad."""
    bounds = joint.bounds
    if joint.kind in ("ball", "free"):
        # about z (our -y), x and y (our z): limits of the rotation vector stand for those of small turns
        ranges = ((-bounds[1, 1], -bounds[1, 0]), tuple(bounds[0]), tuple(bounds[2]))
        return [
            (f"{joint.name}_r{axis}", np.eye(3)["xyz".index(axis)], (float(low), float(high)))
            for axis, (low, high) in zip(_EULER, ranges, strict=True)
        ]
    names = [name for name in joint.coordinate_names if name[-3:-1] != "_s"][: len(joint.axes)]
    return [
        (name, Y_UP @ axis, (float(low), float(high)))
        for name, axis, (low, high) in zip(names, joint.axes, bounds, strict=True)
    ]


def _sliding(joint: Joint) -> list[tuple[str, Floats, tuple[float, float]]]:
    """Coordinates that move: name, axis and range, m."""
    if joint.kind == "free":
        return [(f"{joint.name}_t{axis}", unit, (-10.0, 10.0)) for axis, unit in zip("xyz", np.eye(3), strict=True)]
    if joint.shift_mm > 0:
        far = _MM * joint.shift_mm
        return [(f"{joint.name}_s{axis}", unit, (-far, far)) for axis, unit in zip("xyz", np.eye(3), strict=True)]
    return []


def _completed(axes: list[Floats]) -> list[Floats]:
    """Return three axes of which no two are parallel: those given, and others beside them that nothing turns about."""
    axes = list(axes)
    for unit in np.eye(3):
        if len(axes) < 3 and all(np.linalg.norm(np.cross(unit, axis)) > 0.3 for axis in axes):
            axes.append(unit)
    first = axes[0]
    while len(axes) < 3:
        axes.append(np.cross(first, axes[-1]) / np.linalg.norm(np.cross(first, axes[-1])))
    return axes


def _add_axis(parent: Element, name: str, coordinate: str, axis: Floats) -> None:
    element = SubElement(parent, "TransformAxis", name=name)
    _text(element, "coordinates", coordinate)
    _text(element, "axis", _numbers(axis))
    if coordinate:
        function = SubElement(element, "LinearFunction", name="function")
        _text(function, "coefficients", " 1 0")
    else:
        function = SubElement(element, "Constant", name="function")
        _text(function, "value", "0")


def _add_joint(joints: Element, joint: Joint) -> None:
    turning, sliding = _turning(joint), _sliding(joint)
    kind = "CustomJoint" if turning or sliding else "WeldJoint"
    element = SubElement(joints, kind, name=f"{joint.name}_joint")
    parent = "/ground" if joint.parent is None else f"/bodyset/{joint.parent}"
    frame = f"{joint.parent or 'ground'}_offset"
    _text(element, "socket_parent_frame", frame)
    _text(element, "socket_child_frame", f"/bodyset/{joint.name}")
    if turning or sliding:
        coordinates = SubElement(element, "coordinates")
        for names, (low, high) in ((name, reach) for name, _, reach in (*turning, *sliding)):
            coordinate = SubElement(coordinates, "Coordinate", name=names)
            _text(coordinate, "default_value", "0")
            _text(coordinate, "range", f"{max(low, -2 * np.pi):.9g} {min(high, 2 * np.pi):.9g}")
            _text(coordinate, "clamped", "false")
            _text(coordinate, "locked", "false")
    frames = SubElement(element, "frames")
    offset = SubElement(frames, "PhysicalOffsetFrame", name=frame)
    _text(offset, "socket_parent", parent)
    # A free root is placed by its coordinates alone.
    place = np.zeros(3) if joint.kind == "free" else _MM * (Y_UP @ joint.offset)
    _text(offset, "translation", _numbers(place))
    _text(offset, "orientation", "0 0 0")
    if kind == "CustomJoint":
        transform = SubElement(element, "SpatialTransform")
        axes = _completed([axis for _, axis, _ in turning] or [np.eye(3)[0]])
        for at in range(3):
            _add_axis(transform, f"rotation{at + 1}", turning[at][0] if at < len(turning) else "", axes[at])
        for at in range(3):
            _add_axis(transform, f"translation{at + 1}", sliding[at][0] if sliding else "", np.eye(3)[at])


def write_osim(path: Path | str, skeleton: Skeleton, markers: MarkerSet, *, name: str) -> None:
    """Write a model: a body per segment, a joint each, markers on them.

    Args:
        path: the .osim file.
        skeleton: scaled to the subject, mm.
        markers: on its segments, mm.
        name: of the model.
    """
    document = Element("OpenSimDocument", Version="40000")
    model = SubElement(document, "Model", name=name)
    _text(model, "length_units", "meters")
    _text(model, "force_units", "N")
    _text(model, "gravity", "0 -9.80665 0")
    bodies = SubElement(SubElement(model, "BodySet", name="bodyset"), "objects")
    joints = SubElement(SubElement(model, "JointSet", name="jointset"), "objects")
    size = float(np.ptp(skeleton.forward(skeleton.rest()).positions[0], axis=0).max())
    for joint in skeleton.joints:
        if " " in joint.name or "/" in joint.name:
            raise InputError(f"{path}: OpenSim takes no blank and no '/' in a name, got joint '{joint.name}'")
        body = SubElement(bodies, "Body", name=joint.name)
        kilograms = 0.001 * joint.mass_g
        ball = SubElement(SubElement(body, "attached_geometry"), "Sphere", name=f"{joint.name}_geometry")
        _text(ball, "radius", f"{0.006 * _MM * size:.6g}")
        _text(body, "mass", f"{kilograms:.9g}")
        _text(body, "mass_center", _numbers(_MM * (Y_UP @ joint.centre_of_mass)))
        moment = 0.4 * kilograms * (3 * kilograms / (4 * np.pi * 1000.0)) ** (2 / 3)
        _text(body, "inertia", f"{moment:.6g} {moment:.6g} {moment:.6g} 0 0 0")
        _add_joint(joints, joint)
    carried = SubElement(SubElement(model, "MarkerSet", name="markerset"), "objects")
    for label, segment, offset in zip(markers.names, markers.segments, markers.offsets, strict=True):
        marker = SubElement(carried, "Marker", name=label)
        _text(marker, "socket_parent_frame", f"/bodyset/{segment}")
        _text(marker, "location", _numbers(_MM * (Y_UP @ offset)))
        _text(marker, "fixed", "false")
    ElementTree.indent(document)
    write_text(path, '<?xml version="1.0" encoding="UTF-8" ?>\n' + ElementTree.tostring(document, encoding="unicode"))


def opensim_coordinates(skeleton: Skeleton, coordinates: Floats) -> tuple[tuple[str, ...], Floats]:
    """Return names and values (T, D) of the model that `write_osim` makes: degrees and metres.

    Args:
        skeleton: the body.
        coordinates: (T, D) its own: rotation vectors, rad and mm; NaN stays NaN.
    """
    pose = skeleton.forward(coordinates)
    names: list[str] = []
    columns: list[Floats] = []
    for index, joint in enumerate(skeleton.joints):
        start, parent = int(skeleton.packed.starts[index]), int(skeleton.parents[index])
        if joint.kind in ("ball", "free"):
            turn = pose.rotations[:, index]
            if parent >= 0:
                turn = np.swapaxes(pose.rotations[:, parent], -1, -2) @ turn
            angles = np.degrees(_without_jumps(angles_from_rotation(Y_UP @ turn @ Y_UP.T, _EULER)))
        else:
            angles = np.degrees(coordinates[:, start : start + len(joint.axes)])
        names += [name for name, _, _ in _turning(joint)]
        columns.append(angles)
        sliding = [name for name, _, _ in _sliding(joint)]
        names += sliding
        if joint.kind == "free":
            columns.append(_MM * pose.positions[:, index] @ Y_UP.T)
        elif sliding:
            at = int(skeleton.packed.shifts[index])
            columns.append(_MM * coordinates[:, at : at + 3] @ Y_UP.T)
    return tuple(names), np.concatenate(columns, axis=1)


@compiled
def _without_jumps(angles: Floats) -> Floats:
    """Return (T, 3) the same turns by angles that go on from frame to frame, over a right angle of the middle one, too.

    ``(a, b, c)`` and ``(a + pi, pi - b, c + pi)`` are one turn.
    """
    out = angles.copy()
    last = -1
    for t in range(len(out)):
        if np.isnan(out[t].sum()):
            continue
        if last >= 0:
            other = np.array([out[t, 0] + np.pi, np.pi - out[t, 1], out[t, 2] + np.pi])
            near, far = 0.0, 0.0
            for i in range(3):
                out[t, i] -= 2 * np.pi * np.round((out[t, i] - out[last, i]) / (2 * np.pi))
                other[i] -= 2 * np.pi * np.round((other[i] - out[last, i]) / (2 * np.pi))
                near += abs(out[t, i] - out[last, i])
                far += abs(other[i] - out[last, i])
            if far < near:
                out[t] = other
        last = t
    return out
