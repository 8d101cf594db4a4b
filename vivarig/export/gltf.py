"""glTF 2.0, binary form (.glb): a surface that changes from frame to frame, and a skeleton of moving nodes.

The surface is one mesh with one morph target per frame, whose weights the animation fades over, or one that the
skeleton carries (a skin); the skeleton is a tree of nodes with animated translations and rotations. glTF is in metres
and y up: a node above both turns and scales.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from skeleton.motion_files.motions import JointMotion
from vivarig.export.skinning import Skin

__all__ = ["write_glb"]

MOST_TARGETS = 1000
"""Frames of surface in one file: the weights alone grow with their square."""

_TYPES = {"uint8": 5121, "uint32": 5125, "float32": 5126}
_ARRAY, _ELEMENTS = 34962, 34963


class _Buffer:
    """The binary part of a file, with the views and accessors that describe it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, values: NDArray[Any], kind: str, *, target: int | None = None, bounds: bool = False) -> int:
        """Append an array (N, ...) and return its accessor."""
        if values.dtype != np.uint8:
            values = values.astype(np.uint32 if values.dtype.kind in "iu" else np.float32)
        values = np.ascontiguousarray(values)
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        if target is not None:
            view["target"] = target
        accessor: dict[str, Any] = {
            "bufferView": len(self.views),
            "componentType": _TYPES[str(values.dtype)],
            "count": len(values),
            "type": kind,
        }
        if bounds:
            flat = values.reshape(len(values), -1)
            accessor |= {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
        self.views.append(view)
        self.accessors.append(accessor)
        self.data += values.tobytes()
        return len(self.accessors) - 1


def write_glb(
    path: Path | str,
    times: Floats,
    surface: tuple[Floats | Skin, Ints] | None,
    motion: JointMotion | None,
    *,
    name: str,
    notes: Mapping[str, Any] | None = None,
) -> None:
    """Write a moving surface, a moving skeleton, or both.

    Args:
        path: the .glb file.
        times: (T,) s, rising.
        surface: vertices (T, V, 3), mm, z up, all finite, or a skin on the skeleton; and faces (F, 3).
        motion: skeleton in motion of the same T frames, mm, z up.
        name: of the scene.
        notes: what is kept beside the scene (``extras``).
    """
    if surface is None and motion is None:
        raise InputError("glTF: neither a surface nor a skeleton to write")
    buffer = _Buffer()
    # z up to y up is a quarter turn back about x; millimetres to metres.
    nodes: list[dict[str, Any]] = [
        {"name": name, "rotation": [-np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], "scale": [0.001] * 3, "children": []}
    ]
    channels: list[dict[str, Any]] = []
    samplers: list[dict[str, Any]] = []
    clock = buffer.add(np.asarray(times - times[0]), "SCALAR", bounds=True)

    def animate(node: int, what: str, values: NDArray[Any], kind: str) -> None:
        channels.append({"sampler": len(samplers), "target": {"node": node, "path": what}})
        samplers.append({"input": clock, "interpolation": "LINEAR", "output": buffer.add(values, kind)})

    document: dict[str, Any] = {"asset": {"version": "2.0", "generator": "vivarig"}, "scene": 0}
    if surface is not None:
        nodes[0]["children"].append(len(nodes))
        nodes.append({"name": "surface", "mesh": 0})
        if isinstance(surface[0], Skin):
            if motion is None:
                raise InputError("glTF: a surface on bones needs the skeleton")
            document |= _skinned(buffer, surface[0], surface[1], first_joint=len(nodes))
            nodes[-1]["skin"] = 0
        else:
            document |= _shapes(buffer, surface[0], surface[1])
            animate(len(nodes) - 1, "weights", np.eye(len(surface[0])).ravel(), "SCALAR")
    if motion is not None:
        _add_skeleton(motion, nodes, animate)
    document |= {
        "scenes": [{"name": name, "nodes": [0]} | ({"extras": dict(notes)} if notes else {})],
        "nodes": nodes,
        "animations": [{"name": "motion", "channels": channels, "samplers": samplers}],
        "buffers": [{"byteLength": len(buffer.data)}],
        "bufferViews": buffer.views,
        "accessors": buffer.accessors,
    }
    words = json.dumps(document, separators=(",", ":")).encode()
    words += b" " * (-len(words) % 4)
    with atomic_path(Path(path)) as temporary, open(temporary, "wb") as stream:
        stream.write(struct.pack("<4sII", b"glTF", 2, 12 + 8 + len(words) + 8 + len(buffer.data)))
        stream.write(struct.pack("<I4s", len(words), b"JSON") + words)
        stream.write(struct.pack("<I4s", len(buffer.data), b"BIN\0") + bytes(buffer.data))


def _shapes(buffer: _Buffer, vertices: Floats, faces: Ints) -> dict[str, Any]:
    """Add a mesh with a morph target per frame (T, V, 3)."""
    count = len(vertices)
    if count > MOST_TARGETS:
        raise InputError(
            f"glTF holds at most {MOST_TARGETS} frames of surface here, got {count}; give --skin, --frames or --every, "
            "or write a mesh per frame (.ply, .obj)"
        )
    base = np.asarray(vertices[0], np.float64)
    targets = [
        {"POSITION": buffer.add(np.asarray(frame, np.float64) - base, "VEC3", target=_ARRAY, bounds=True)}
        for frame in vertices
    ]
    primitive = {
        "attributes": {"POSITION": buffer.add(base, "VEC3", target=_ARRAY, bounds=True)},
        "indices": buffer.add(np.asarray(faces).ravel(), "SCALAR", target=_ELEMENTS),
        "targets": targets,
    }
    weights = np.zeros(count)
    weights[0] = 1.0
    return {"meshes": [{"name": "surface", "primitives": [primitive], "weights": weights.tolist()}]}


def _skinned(buffer: _Buffer, skin: Skin, faces: Ints, *, first_joint: int) -> dict[str, Any]:
    """Add a mesh that nodes from ``first_joint`` on carry, and the skin that says how."""
    attributes = {
        "POSITION": buffer.add(skin.vertices, "VEC3", target=_ARRAY, bounds=True),
        "JOINTS_0": buffer.add(skin.joints, "VEC4", target=_ARRAY),
        "WEIGHTS_0": buffer.add(skin.weights, "VEC4", target=_ARRAY),
    }
    primitive = {"attributes": attributes, "indices": buffer.add(faces.ravel(), "SCALAR", target=_ELEMENTS)}
    # Columns first, as glTF keeps matrices.
    back = np.linalg.inv(skin.bones).transpose(0, 2, 1)
    joints = [first_joint + index for index in range(len(skin.bones))]
    return {
        "meshes": [{"name": "surface", "primitives": [primitive]}],
        "skins": [{"joints": joints, "inverseBindMatrices": buffer.add(back, "MAT4"), "skeleton": first_joint}],
    }


def _add_skeleton(motion: JointMotion, nodes: list[dict[str, Any]], animate: Any) -> None:
    start = len(nodes)
    turns = motion.rotations[..., [1, 2, 3, 0]]  # glTF: x, y, z, w
    # Neighbouring keys on the same side, or viewers turn the long way round.
    flips = np.where(np.sum(turns[1:] * turns[:-1], axis=-1) < 0, -1.0, 1.0)
    turns = turns * np.concatenate([np.ones((1, turns.shape[1])), np.cumprod(flips, axis=0)])[..., None]
    places = motion.offsets[None] + motion.shifts
    for joint, parent in enumerate(motion.parents):
        owner = nodes[0] if parent < 0 else nodes[start + parent]
        owner.setdefault("children", []).append(start + joint)
        nodes.append(
            {
                "name": motion.names[joint],
                "translation": places[0, joint].tolist(),
                "rotation": turns[0, joint].tolist(),
            }
        )
    for joint in range(len(motion.names)):
        animate(start + joint, "rotation", turns[:, joint], "VEC4")
        if np.ptp(places[:, joint], axis=0).max() > 1e-6:
            animate(start + joint, "translation", places[:, joint], "VEC3")
