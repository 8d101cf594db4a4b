"""Qualisys .qca.txt: XML with intrinsics in 1/64 px, poses world from camera, cameras looking along -z.

The distortion coefficients are OpenCV's as they stand: they have no unit, so nothing is divided by 64.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import HUGE
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text
from calibration.rig_formats.rig_format import Holds, ReadOptions, RigFormat, padded, scaled_pose, with_lens

__all__ = ["QUALISYS"]

_SUBPIXEL = 64.0
_LOOK = np.diag([1.0, -1.0, -1.0])  # Qualisys cameras look along -z with y up
_ROTATION = tuple(f"r{row}{column}" for row in (1, 2, 3) for column in (1, 2, 3))
_RADIAL = ("radialDistortion1", "radialDistortion2", "radialDistortion3")
_TANGENTIAL = ("tangentalDistortion1", "tangentalDistortion2")  # their spelling


def _is_qualisys(path: Path) -> bool:
    if path.suffix.lower() not in (".txt", ".xml", ".qca") or not path.is_file():
        return False
    with open(path, "rb") as file:
        head = file.read(4000)
    return b"<calibration" in head and b"<camera" in head


def _number(tag: ElementTree.Element, name: str, where: str) -> float:
    text = tag.get(name)
    try:
        value = float(text) if text is not None else np.nan
    except ValueError:
        value = np.nan
    if not abs(value) < HUGE:
        raise InputError(f"{where}: <{tag.tag}> {name} must be a number, got {text!r}")
    return value


def _child(tag: ElementTree.Element, name: str, where: str) -> ElementTree.Element:
    found = tag.find(name)
    if found is None:
        raise InputError(f"{where}: no <{name}>")
    return found


def _read(path: Path, options: ReadOptions) -> Rig:
    text = read_text(path)
    if "<!ENTITY" in text:
        raise InputError(f"{path}: XML entities are not allowed here")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise InputError(f"{path}: not valid XML ({error})") from None
    tags = root.findall("cameras/camera")
    if not tags:
        raise InputError(f"{path}: no <camera> under <cameras>")
    return Rig(tuple(_camera(tag, options, f"{path}: camera {tag.get('serial')!r}") for tag in tags))


def _camera(tag: ElementTree.Element, options: ReadOptions, where: str) -> LensCamera:
    view, inner = _child(tag, "fov_video", where), _child(tag, "intrinsic", where)
    left, top = _number(view, "left", where), _number(view, "top", where)
    size = int(_number(view, "right", where) - left + 1), int(_number(view, "bottom", where) - top + 1)
    f = [_number(inner, f"focalLength{axis}", where) / _SUBPIXEL for axis in "UV"]
    c = [_number(inner, f"centerPoint{axis}", where) / _SUBPIXEL - start for axis, start in (("U", left), ("V", top))]
    skew = _number(inner, "skew", where) / _SUBPIXEL if "skew" in inner.attrib else 0.0
    k1, k2, k3 = (_number(inner, name, where) if name in inner.attrib else 0.0 for name in _RADIAL)
    p1, p2 = (_number(inner, name, where) if name in inner.attrib else 0.0 for name in _TANGENTIAL)
    outer = _child(tag, "transform", where)
    rotation = _LOOK @ np.array([_number(outer, name, where) for name in _ROTATION]).reshape(3, 3)
    centre = np.array([_number(outer, axis, where) for axis in "xyz"])
    try:
        lens = PinholeLens(
            size, np.array([[f[0], skew, c[0]], [0, f[1], c[1]], [0, 0, 1]]), np.array([k1, k2, p1, p2, k3])
        )
        pose = scaled_pose(rotation, -rotation @ centre, options.unit_mm or 1.0)
        return LensCamera(tag.get("serial") or "", lens, pose)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _write(rig: Rig, path: Path) -> None:
    lines = ['<?xml version="1.0"?>', "<calibration>", " <cameras>"]
    for camera in map(with_lens, rig):
        k, d, (wide, high) = camera.lens.intrinsics, padded(camera.lens.distortion, 5), camera.size
        rotation = _LOOK @ camera.camera_from_world.rotation
        pixels = {
            "focalLengthU": k[0, 0], "focalLengthV": k[1, 1], "centerPointU": k[0, 2], "centerPointV": k[1, 2],
            "skew": k[0, 1],
        }  # fmt: skip
        inner = {name: _SUBPIXEL * value for name, value in pixels.items()}
        inner |= {_RADIAL[0]: d[0], _RADIAL[1]: d[1], _RADIAL[2]: d[4], _TANGENTIAL[0]: d[2], _TANGENTIAL[1]: d[3]}
        outer = dict(zip("xyz", camera.centre, strict=True)) | dict(zip(_ROTATION, rotation.ravel(), strict=True))
        lines.append(f'  <camera active="1" avg-residual="0" serial={quoteattr(camera.name)} model="Vivarig">')
        lines.append(f'   <fov_video left="0" top="0" right="{wide - 1}" bottom="{high - 1}"/>')
        lines.append("   <transform " + " ".join(f'{n}="{float(v)!r}"' for n, v in outer.items()) + "/>")
        lines.append("   <intrinsic " + " ".join(f'{n}="{float(v)!r}"' for n, v in inner.items()) + "/>")
        lines.append("  </camera>")
    write_text(path, "\n".join([*lines, " </cameras>", "</calibration>", ""]))


QUALISYS = RigFormat("qualisys", "Qualisys .qca.txt", _is_qualisys, _read, _write, Holds(distortion=5, fisheye=False))
