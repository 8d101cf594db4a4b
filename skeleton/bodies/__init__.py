"""Built-in bodies: mouse, rat and human, each one readable TOML file beside this one, shared by actors and trackers."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from calibration.foundation.arrays import Floats, shaped
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import write_text
from skeleton.tree.joint_tree import Joint, Site, Skeleton
from skeleton.tree.joints import KINDS

__all__ = ["BODIES", "load_body", "load_skeleton_toml", "save_skeleton_toml", "skeleton_from_toml"]

BODIES = ("mouse", "rat", "human")
_JOINT_KEYS = {
    "name", "segment", "parent", "kind", "mirror", "axes", "offset", "limits_deg", "box_limits", "shift_mm",
    "mass_g", "centre_of_mass", "source",
}  # fmt: skip
_SITE_KEYS = {"name", "segment", "mirror", "offset"}
#: How the reflection y -> -y acts on positions, and on rotation vectors (which are pseudo-vectors).
_FLIP = np.array([1.0, -1.0, 1.0])
_TURN_FLIP = np.array([-1.0, 1.0, -1.0])


@cache
def load_body(name: str) -> Skeleton:
    """Return a built-in body: "mouse", "rat" or "human"."""
    if name not in BODIES:
        raise InputError(f"unknown body '{name}'; {nearest(name, BODIES)}")
    return load_skeleton_toml(Path(__file__).parent / f"{name}.toml")


@guarded("a body")
def load_skeleton_toml(path: Path) -> Skeleton:
    """Read a skeleton file in the format of the built-in bodies."""
    try:
        return skeleton_from_toml(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: no such skeleton file") from None


def save_skeleton_toml(skeleton: Skeleton, path: Path) -> None:
    """Write a skeleton in the format of the built-in bodies, each side by itself."""
    table: dict[str, Any] = {"name": skeleton.name}
    if skeleton.source:
        table["source"] = skeleton.source
    table["joint"] = [_joint_table(joint) for joint in skeleton.joints]
    table["site"] = [
        {"name": site.name, "segment": site.segment, "offset": np.round(site.offset, 4).tolist()}
        for site in skeleton.sites
    ]
    table["landmarks"] = dict(skeleton.landmark_points)
    table["floor"] = {foot: list(points) for foot, points in skeleton.floor_points.items()}
    write_text(path, tomli_w.dumps(table))


def _joint_table(joint: Joint) -> dict[str, Any]:
    table: dict[str, Any] = {"name": joint.name, "kind": joint.kind, "offset": np.round(joint.offset, 4).tolist()}
    if joint.parent is not None:
        table["parent"] = joint.parent
    if len(joint.axes):
        table["axes"] = joint.axes.tolist()
    if np.isfinite(joint.bounds).all():
        table["limits_deg"] = np.degrees(joint.bounds).round(3).tolist()
        if joint.kind == "ball" and not joint.ellipsoidal:
            table["box_limits"] = True
    for key in ("shift_mm", "mass_g"):
        if getattr(joint, key):
            table[key] = float(getattr(joint, key))
    if joint.centre_of_mass.any():
        table["centre_of_mass"] = joint.centre_of_mass.tolist()
    if joint.segment != joint.name:
        table["segment"] = joint.segment
    if joint.source:
        table["source"] = joint.source
    return table


def skeleton_from_toml(text: str, where: str) -> Skeleton:
    """Build a skeleton from TOML text; ``where`` names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from None
    joints = [joint for table in data.get("joint", []) for joint in _joints(table, where)]
    sites = [site for table in data.get("site", []) for site in _sites(table, where)]
    return Skeleton(
        name=str(data.get("name", where)),
        joints=tuple(joints),
        sites=tuple(sites),
        landmark_points=dict(data.get("landmarks", {})),
        floor_points={foot: tuple(points) for foot, points in data.get("floor", {}).items()},
        source=str(data.get("source", "")).strip(),
    )


def _check(table: dict[str, Any], keys: set[str], needed: tuple[str, ...], where: str) -> str:
    name = str(table.get("name", "?"))
    for key in table:
        if key not in keys:
            raise InputError(f"{where}: '{name}': unknown key '{key}'; {nearest(key, sorted(keys))}")
    for key in needed:
        if key not in table:
            raise InputError(f"{where}: '{name}': the key '{key}' is missing")
    if table.get("mirror") and not name.startswith("left_"):
        raise InputError(f"{where}: '{name}': mirror = true needs a name that begins with 'left_'")
    return f"{where}: '{name}'"


def _joints(table: dict[str, Any], where: str) -> list[Joint]:
    who = _check(table, _JOINT_KEYS, ("name", "kind", "offset"), where)
    kind = table["kind"]
    if kind not in KINDS:
        raise InputError(f"{who}: kind must be one of {', '.join(KINDS)}, got '{kind}'")
    axes: Floats = shaped(table.get("axes", np.zeros((0, 3))), (None, 3), f"{who}: axes")
    limits = None
    if "limits_deg" in table:
        limits = np.radians(shaped(table["limits_deg"], (None, 2), f"{who}: limits_deg"))
    left = Joint(
        name=table["name"],
        parent=table.get("parent"),
        kind=kind,
        offset=table["offset"],
        axes=axes,
        limits=limits,
        ellipsoidal=kind == "ball" and limits is not None and not table.get("box_limits", False),
        shift_mm=float(table.get("shift_mm", 0.0)),
        segment=table.get("segment", ""),
        mass_g=float(table.get("mass_g", 0.0)),
        centre_of_mass=table.get("centre_of_mass", np.zeros(3)),
        source=table.get("source", ""),
    )
    if not table.get("mirror", False):
        return [left]
    mirrored = limits
    if limits is not None and kind == "ball":
        mirrored = np.where(_TURN_FLIP[:, None] > 0, limits, -limits[:, ::-1])
    right = Joint(
        name=_right(left.name),
        parent=None if left.parent is None else _right(left.parent),
        kind=kind,
        offset=left.offset * _FLIP,
        axes=left.axes * _TURN_FLIP,
        limits=mirrored,
        ellipsoidal=left.ellipsoidal,
        shift_mm=left.shift_mm,
        segment=_right(left.segment),
        mass_g=left.mass_g,
        centre_of_mass=left.centre_of_mass * _FLIP,
        source=left.source,
    )
    return [left, right]


def _sites(table: dict[str, Any], where: str) -> list[Site]:
    _check(table, _SITE_KEYS, ("name", "segment", "offset"), where)
    left = Site(table["name"], table["segment"], table["offset"])
    if not table.get("mirror", False):
        return [left]
    return [left, Site(_right(left.name), _right(left.segment), left.offset * _FLIP)]


def _right(name: str) -> str:
    return "right_" + name.removeprefix("left_") if name.startswith("left_") else name
