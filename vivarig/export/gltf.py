"""glTF 2.0, binary form (.glb): a surface that changes from frame to frame, and a skeleton of moving nodes.

The surface is one mesh with one morph target per frame, whose weights the animation fades over; the skeleton is a tree
of nodes with animated translations and rotations. glTF is in metres and y up: a node above both turns and scales.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from skeleton.motion_files.motions import JointMotion

__all__ = ["write_glb"]

MOST_TARGETS = 1000
"""Frames of surface in one file: the weights alone grow with their square."""

_FLOAT, _UINT = 5126, 5125
_ARRAY, _ELEMENTS = 34962, 34963


class _Buffer:
    """The binary part of a file, with the views and accessors that describe it."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, values: NDArray[Any], kind: str, *, target: int | None = None, bounds: bool = False) -> int:
        """Append an array (N, ...) and return its accessor."""
        values = np.ascontiguousarray(values, np.uint32 if values.dtype.kind in "iu" else np.float32)
        view: dict[str, Any] = {"buffer": 0, "byteOffset": len(self.data), "byteLength": values.nbytes}
        if target is not None:
            view["target"] = target
        accessor: dict[str, Any] = {
            "bufferView": len(self.views),
            "componentType": _UINT if values.dtype == np.uint32 else _FLOAT,
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
    surface: tuple[Floats, Ints] | None,
    motion: JointMotion | None,
    *,
    name: str,
) -> None:
    """Write a moving surface, a moving skeleton, or both.

    Args:
        path: the .glb file.
        times: (T,) s, rising.
        surface: vertices (T, V, 3), mm, z up, all finite; and faces (F, 3).
        motion: skeleton in motion of the same T frames, mm, z up.
        name: of the scene.
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
        vertices, faces = surface
        count = len(vertices)
        if count > MOST_TARGETS:
            raise InputError(
                f"glTF holds at most {MOST_TARGETS} frames of surface here, got {count}; give --frames or --every, "
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
        document["meshes"] = [{"name": "surface", "primitives": [primitive], "weights": weights.tolist()}]
        nodes[0]["children"].append(len(nodes))
        nodes.append({"name": "surface", "mesh": 0})
        animate(len(nodes) - 1, "weights", np.eye(count).ravel(), "SCALAR")
    if motion is not None:
        _add_skeleton(motion, nodes, animate)
    document |= {
        "scenes": [{"name": name, "nodes": [0]}],
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
