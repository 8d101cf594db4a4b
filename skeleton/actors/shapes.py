"""Flesh as a smooth implicit solid: tapered capsules and ellipsoids riding on segments.

The solid is ``{x : f(x) <= 0}`` where ``f`` folds the distances of the shapes one after the other with the quadratic
smooth minimum ``smin(a, b; k) = min(a, b) - max(k - |a - b|, 0)^2 / (4 k)`` (k: width of the blend, mm).
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError, nearest
from calibration.geometry.transforms import rotation_from_vector
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["Flesh", "Shapes", "bind_pose", "field", "field_and_gradient", "load_flesh", "shapes_from_tables"]

CONE, ELLIPSOID = 0, 1
#: Columns of a packed shape: kind, blend, centre or start (3), end (3), radii (3), rotation local-from-world (9),
#: bounding sphere: centre (3) and radius.
COLUMNS = 24


@dataclass(frozen=True, eq=False)
class Flesh:
    """What `bodies/flesh/<name>.toml` says of a body's soft parts, as read.

    Attributes:
        voxel_mm: cell of the grid that is meshed.
        vertices: wanted number of skin vertices.
        bind: joint name to rotation coordinates (degrees) of the pose in which the skin is built.
        skin: shape tables of the skin, left and right written out.
        bones: shape tables of the bones.
        markers: virtual marker name to (segment, direction) tables.
        beads: implanted bead tables: name, segment, offset.
        tissue: numbers of the soft-tissue model (`skeleton.actors.tissue`).
    """

    voxel_mm: float
    vertices: int
    bind: Mapping[str, Sequence[float]]
    skin: tuple[dict[str, Any], ...]
    bones: tuple[dict[str, Any], ...]
    bone_voxel_mm: float
    markers: tuple[dict[str, Any], ...]
    beads: tuple[dict[str, Any], ...]
    tissue: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Shapes in their segments' frames.

    Attributes:
        segments: (S,) joint index that carries each shape.
        kinds: (S,) 0 tapered capsule, 1 ellipsoid.
        start: (S, 3) start of the capsule's axis, or the ellipsoid's centre, mm.
        end: (S, 3) end of the capsule's axis (ellipsoid: equal to start), mm.
        radii: (S, 3) capsule: start radius, end radius, unused; ellipsoid: half axes, mm.
        turns: (S, 3, 3) segment from ellipsoid.
        blend: (S,) width of the smooth union with what came before, mm.
    """

    segments: Ints
    kinds: Ints
    start: Floats
    end: Floats
    radii: Floats
    turns: Floats
    blend: Floats

    def posed(self, pose: Pose) -> Floats:
        """Return the packed shapes (S, 24) in the world of frame 0 of ``pose``."""
        rotation, position = pose.rotations[0, self.segments], pose.positions[0, self.segments]
        packed = np.empty((len(self.kinds), COLUMNS))
        packed[:, 0] = self.kinds
        packed[:, 1] = self.blend
        packed[:, 2:5] = position + np.einsum("sij,sj->si", rotation, self.start)
        packed[:, 5:8] = position + np.einsum("sij,sj->si", rotation, self.end)
        packed[:, 8:11] = self.radii
        packed[:, 11:20] = np.einsum("sji,skj->sik", self.turns, rotation).reshape(-1, 9)
        packed[:, 20:23] = 0.5 * (packed[:, 2:5] + packed[:, 5:8])
        packed[:, 23] = self.radii.max(axis=1) + 0.5 * np.linalg.norm(packed[:, 5:8] - packed[:, 2:5], axis=1)
        return packed


@cache
def load_flesh(name: str) -> Flesh:
    """Read the flesh of a built-in body."""
    path = Path(__file__).parents[1] / "bodies" / "flesh" / f"{name}.toml"
    if not path.exists():
        raise InputError(f"body '{name}' has no flesh file; actors exist for mouse, rat and human")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    return Flesh(
        voxel_mm=float(data["voxel_mm"]),
        vertices=int(data["vertices"]),
        bind=data.get("bind", {}),
        skin=_mirrored(data["skin"]),
        bones=_mirrored(data["bone"]),
        bone_voxel_mm=float(data["bone_voxel_mm"]),
        markers=_mirrored(data["marker"]),
        beads=_mirrored(data["bead"]),
        tissue=data["tissue"],
    )


def bind_pose(skeleton: Skeleton, flesh: Flesh) -> Pose:
    """Return the pose that flesh is meshed in."""
    q = skeleton.rest()
    for joint, degrees in flesh.bind.items():
        q[0, skeleton.columns(joint)] = np.radians(degrees)
    return skeleton.forward(q)


def _mirrored(tables: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Write out the right-hand twin of every table with mirror = true."""
    out: list[dict[str, Any]] = []
    for table in tables:
        left = {key: value for key, value in table.items() if key != "mirror"}
        out.append(left)
        if table.get("mirror", False):
            right = dict(left)
            for key, value in left.items():
                if isinstance(value, str):
                    right[key] = value.replace("left_", "right_")
                elif key in ("from_shift", "to_shift", "offset", "direction"):
                    right[key] = [value[0], -value[1], value[2]]
                elif key == "turn_deg":
                    right[key] = [-value[0], value[1], -value[2]]
            out.append(right)
    return tuple(out)


def shapes_from_tables(
    tables: Sequence[dict[str, Any]], skeleton: Skeleton, length: Floats, thickness: Floats
) -> Shapes:
    """Place shape tables on a skeleton.

    Capsules run between named joints or sites (``from``, ``to``, with optional shifts); ellipsoids sit at an
    ``offset`` of their segment's joint. ``length`` (J,) scales shifts and offsets, ``thickness`` (S,) the radii.
    """
    rest = skeleton.forward(skeleton.rest())
    segments: list[int] = []
    kinds: list[int] = []
    start: list[Floats] = []
    end: list[Floats] = []
    radii: list[Floats] = []
    turns: list[Floats] = []
    blend: list[float] = []
    for table, girth in zip(tables, thickness, strict=True):
        segment = skeleton.index(table["segment"])
        scale = float(length[segment])
        segments.append(segment)
        blend.append(float(table.get("blend", 1e-3)) * girth)
        if "from" in table:
            ends = []
            for key in ("from", "to"):
                s, offset = skeleton.point(table[key])
                local = rest.positions[0, s] + offset - rest.positions[0, segment]
                ends.append(local + scale * np.array(table.get(f"{key}_shift", [0.0, 0.0, 0.0])))
            kinds.append(CONE)
            start.append(ends[0])
            end.append(ends[1])
            radii.append(np.array([*table["radius"], 0.0]) * girth)
            turns.append(np.eye(3))
        elif "radii" in table:
            kinds.append(ELLIPSOID)
            centre = scale * np.array(table["offset"], dtype=np.float64)
            start.append(centre)
            end.append(centre)
            radii.append(np.array(table["radii"], dtype=np.float64) * girth)
            turns.append(rotation_from_vector(np.radians(np.array(table.get("turn_deg", [0.0, 0.0, 0.0])))))
        else:
            hint = nearest("from", table)
            raise InputError(f"shape on '{table['segment']}' needs from/to/radius or offset/radii; {hint}")
    return Shapes(
        np.array(segments, dtype=np.int64),
        np.array(kinds, dtype=np.int64),
        np.array(start),
        np.array(end),
        np.array(radii),
        np.array(turns),
        np.array(blend),
    )


@compiled
def shape_distance(row: Floats, x: float, y: float, z: float) -> float:
    """Signed distance (capsule: exact for equal radii, ellipsoid: first order) of a point to one packed shape."""
    px = x - row[2]
    py = y - row[3]
    pz = z - row[4]
    if row[0] == 0.0:
        ax = row[5] - row[2]
        ay = row[6] - row[3]
        az = row[7] - row[4]
        square = ax * ax + ay * ay + az * az
        t = 0.0
        if square > 1e-12:
            t = min(1.0, max(0.0, (px * ax + py * ay + pz * az) / square))
        dx = px - t * ax
        dy = py - t * ay
        dz = pz - t * az
        return float(math.sqrt(dx * dx + dy * dy + dz * dz) - (row[8] + t * (row[9] - row[8])))
    lx = (row[11] * px + row[12] * py + row[13] * pz) / row[8]
    ly = (row[14] * px + row[15] * py + row[16] * pz) / row[9]
    lz = (row[17] * px + row[18] * py + row[19] * pz) / row[10]
    k1 = math.sqrt(lx * lx + ly * ly + lz * lz)
    k2 = math.sqrt((lx / row[8]) ** 2 + (ly / row[9]) ** 2 + (lz / row[10]) ** 2)
    if k2 < 1e-12:
        return -float(min(row[8], min(row[9], row[10])))
    return float(k1 * (k1 - 1.0) / k2)


@compiled
def _folded(packed: Floats, kept: Ints, count: int, x: float, y: float, z: float, more: float) -> tuple[float, int]:
    """Fold the first ``count`` shapes in ``kept``; leave there, and count, those that matter within ``more`` mm."""
    value, left = 1e9, 0
    for n in range(count):
        s = kept[n]
        k = packed[s, 1]
        reach = value + k + packed[s, 23]
        dx = x - packed[s, 20]
        dy = y - packed[s, 21]
        dz = z - packed[s, 22]
        away = dx * dx + dy * dy + dz * dz
        if reach < 1e8 and reach > 0.0:
            if more > 0.0 and away > (reach + more) * (reach + more):
                continue  # too far to matter, here and nearby
            kept[left] = s
            left += 1
            if away > reach * reach:
                continue  # too far to matter
        else:
            kept[left] = s
            left += 1
        d = shape_distance(packed[s], x, y, z)
        h = max(k - abs(value - d), 0.0)
        value = min(value, d) - 0.25 * h * h / k
    return value, left


@compiled
def field(points: Floats, packed: Floats) -> Floats:
    """Evaluate the folded smooth minimum of packed shapes (S, 24) at points (N, 3)."""
    out = np.empty(points.shape[0])
    every = np.arange(packed.shape[0])
    for n in range(points.shape[0]):
        out[n] = _folded(packed, every, len(every), points[n, 0], points[n, 1], points[n, 2], 0.0)[0]
    return out


@compiled
def nearest_shape(points: Floats, packed: Floats) -> Ints:
    """Return for each point (N, 3) the shape whose own surface is nearest."""
    out = np.empty(points.shape[0], dtype=np.int64)
    for n in range(points.shape[0]):
        best = 1e9
        for s in range(packed.shape[0]):
            d = shape_distance(packed[s], points[n, 0], points[n, 1], points[n, 2])
            if d < best:
                best = d
                out[n] = s
    return out


@compiled
def field_and_gradient(points: Floats, packed: Floats, step: float) -> tuple[Floats, Floats]:
    """Return `field` (N,) and its gradient (N, 3) by central differences of ``step`` mm."""
    out, slopes = np.empty(points.shape[0]), np.empty(points.shape)
    kept = np.empty(packed.shape[0], np.int64)
    at = np.empty(3)
    for n in range(points.shape[0]):
        for s in range(len(kept)):
            kept[s] = s
        # Distances are not exactly 1-Lipschitz, nor is their fold: hence ten steps for one.
        out[n], count = _folded(packed, kept, len(kept), points[n, 0], points[n, 1], points[n, 2], 10.0 * step)
        for axis in range(3):
            at[0], at[1], at[2] = points[n, 0], points[n, 1], points[n, 2]
            at[axis] = points[n, axis] + step
            ahead = _folded(packed, kept, count, at[0], at[1], at[2], 0.0)[0]
            at[axis] = points[n, axis] - step
            slopes[n, axis] = (ahead - _folded(packed, kept, count, at[0], at[1], at[2], 0.0)[0]) / (2 * step)
    return out, slopes
