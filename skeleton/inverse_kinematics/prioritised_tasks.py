"""Tasks of prioritised inverse kinematics: layers of points, the joints they may use, and the rule about these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.tree.articulation import Articulation

__all__ = ["Layer", "PackedLayer", "check_recruiting", "pack_layer"]


@dataclass(frozen=True, eq=False)
class Layer:
    """Tasks of one priority: points of the body and where they shall be.

    Attributes:
        name: for messages, such as "contacts", "beads", "markers".
        markers: points on segments; within a layer a point weighs by the inverse of its sd_mm.
        goals: (T, M, 3) mm; NaN where the task rests.
        recruit: per point, how many joints above its own segment it may use; None uses all up to the root.
    """

    name: str
    markers: MarkerSet
    goals: Floats
    recruit: tuple[int | None, ...] | None = None

    def __post_init__(self) -> None:
        goals = np.asarray(self.goals, dtype=np.float64)
        if goals.ndim != 3 or goals.shape[1:] != (len(self.markers.names), 3):
            raise InputError(f"layer '{self.name}': goals must be (T, {len(self.markers.names)}, 3), got {goals.shape}")
        if self.recruit is not None and len(self.recruit) != len(self.markers.names):
            raise InputError(f"layer '{self.name}': one recruiting level per point, got {len(self.recruit)}")
        object.__setattr__(self, "goals", goals)


@dataclass(frozen=True, eq=False)
class PackedLayer:
    """A layer as arrays: segments (M,), offsets (M, 3), row weights (M,), allowed columns (M, D)."""

    segments: Ints
    offsets: Floats
    weights: Floats
    allowed: Bools
    length: float


def _joint_columns(body: Articulation) -> list[list[int]]:
    """Coordinates that belong to each segment itself, not to those above it."""
    out = []
    for segment in range(len(body.segment_names)):
        path = body.path(segment)
        parent = _parent_segment(body, segment)
        out.append([column for column in path if parent < 0 or column not in body.path(parent)])
    return out


def _parent_segment(body: Articulation, segment: int) -> int:
    carriers = {int(node): index for index, node in enumerate(body.segment_nodes)}
    node = int(body.nodes.parents[body.segment_nodes[segment]])
    while node >= 0:
        if node in carriers:
            return carriers[node]
        node = int(body.nodes.parents[node])
    return -1


def _ancestors(body: Articulation, segment: int) -> list[int]:
    """Segments from this one to the root."""
    out = [segment]
    while (parent := _parent_segment(body, out[-1])) >= 0:
        out.append(parent)
    return out


def _recruited(body: Articulation, segment: int, level: int | None) -> set[int]:
    chain = _ancestors(body, segment)
    return set(chain if level is None else chain[: level + 1])


def check_recruiting(body: Articulation, layers: Sequence[Layer]) -> None:
    """Refuse tasks that may use a joint which a higher task passes through but may not use.

    For a above b: ``Rec(b) and Anc(a)`` must lie within ``Rec(a)``; otherwise the iteration can diverge.
    """
    tasks: list[list[tuple[str, set[int], set[int]]]] = []
    for layer in layers:
        levels = layer.recruit or (None,) * len(layer.markers.names)
        rows = []
        for name, segment, level in zip(layer.markers.names, layer.markers.segments, levels, strict=True):
            index = body.segment(segment)
            rows.append((name, _recruited(body, index, level), set(_ancestors(body, index))))
        tasks.append(rows)
    for high in range(len(tasks)):
        for low in range(high + 1, len(tasks)):
            for a, recruited_a, above_a in tasks[high]:
                for b, recruited_b, _ in tasks[low]:
                    wrong = (recruited_b & above_a) - recruited_a
                    if wrong:
                        joints = ", ".join(body.segment_names[index] for index in sorted(wrong))
                        raise InputError(
                            f"task '{b}' of layer '{layers[low].name}' may use {joints}, which lies above "
                            f"task '{a}' of "
                            f"the higher layer '{layers[high].name}' but is not recruited by it; recruit it "
                            "there too"
                        )


def pack_layer(body: Articulation, layer: Layer) -> PackedLayer:
    segments = np.array([body.segment(name) for name in layer.markers.segments], dtype=np.int64)
    own = _joint_columns(body)
    levels = layer.recruit or (None,) * len(segments)
    allowed = np.zeros((len(segments), body.dimension), dtype=np.bool_)
    for row, (segment, level) in enumerate(zip(segments, levels, strict=True)):
        for joint in _recruited(body, int(segment), level):
            allowed[row, own[joint]] = True
    origins, _ = body.forward(body.rest)
    length = 0.0
    for segment, offset in zip(segments, layer.markers.offsets, strict=True):
        chain = _ancestors(body, int(segment))
        parts = np.diff(origins[0, chain], axis=0)
        length = max(length, float(np.linalg.norm(offset) + np.linalg.norm(parts, axis=1).sum()))
    sd = layer.markers.sd_mm
    return PackedLayer(segments, layer.markers.offsets, sd.min() / sd, allowed, length or 1.0)
