"""A body as a tree of elementary motions, the one form that all solvers here work on.

Node n hangs on node p at a fixed place and moves by one elementary motion of its own:

    ``W_n = W_p F_n M_n(q)``,  M = nothing, a turn exp(f(q_c) a), a slide f(q_c) a, or a ball exp([q_c ...])

with F_n rigid, a an axis in the fixed frame and f the identity or a piecewise cubic function of one coordinate. A
`Skeleton` joint is one to three nodes; an OpenSim custom joint with its splines is up to seven.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError, nearest
from skeleton.tree.articulation_kernels import (
    BALL,
    RIGID,
    SLIDE,
    TURN,
    Limits,
    Nodes,
    forward_all,
    place_nodes,
    point_derivatives,
)
from skeleton.tree.joint_tree import Skeleton

__all__ = ["Articulation", "NodeBuilder", "Piecewise", "articulation_of"]


@dataclass(frozen=True, eq=False)
class Piecewise:
    """A piecewise cubic function: ``breaks`` (K,) ascending and ``pieces`` (K, 4), the last piece open-ended."""

    breaks: Floats
    pieces: Floats


@dataclass(frozen=True, eq=False)
class Articulation:
    """A body ready for the solvers.

    Attributes:
        name: what it is.
        nodes: the tree.
        segment_names: J names.
        segment_nodes: (J,) node that carries each segment.
        coordinate_names: D names.
        limits: of the coordinates.
        is_length: (D,) True for coordinates in mm, False for rad.
        rest: (D,) resting coordinates.
        locked: (D,) coordinates that the solvers leave at rest.
    """

    name: str
    nodes: Nodes
    segment_names: tuple[str, ...]
    segment_nodes: Ints
    coordinate_names: tuple[str, ...]
    limits: Limits
    is_length: Bools
    rest: Floats
    locked: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def dimension(self) -> int:
        """Number of coordinates, D."""
        return len(self.coordinate_names)

    def segment(self, name: str) -> int:
        """Return the index of a segment."""
        if name not in self.segment_names:
            raise InputError(f"{self.name}: unknown segment '{name}'; {nearest(name, self.segment_names)}")
        return self.segment_names.index(name)

    @cached_property
    def _tree(self) -> tuple[Ints, Ints]:
        """Coordinate parents (D,) and the last coordinate of each segment (J,)."""
        parents = np.full(self.dimension, -2, dtype=np.int64)
        last = np.full(len(self.segment_names), -1, dtype=np.int64)
        for segment, carrier in enumerate(self.segment_nodes):
            own: set[int] = set()
            node = int(carrier)
            while node >= 0:
                first, kind = int(self.nodes.columns[node]), self.nodes.kinds[node]
                if kind != RIGID:
                    own.update(range(first, first + (3 if kind == BALL else 1)))
                node = int(self.nodes.parents[node])
            above = -1
            for column in sorted(own):
                if parents[column] not in (-2, above):
                    name = self.coordinate_names[column]
                    raise InputError(f"{self.name}: coordinate '{name}' drives two branches of the tree")
                parents[column] = above
                above = column
            last[segment] = above
        parents[parents == -2] = -1
        return parents, last

    @property
    def coordinate_parents(self) -> Ints:
        """(D,) next coordinate towards the root, -1 at the root: the sparsity tree of the normal matrix."""
        return self._tree[0]

    @cached_property
    def balls(self) -> Ints:
        """(D,) first coordinate of the ball that a coordinate belongs to, -1 if it belongs to none."""
        out = np.full(self.dimension, -1, dtype=np.int64)
        for first in self.nodes.columns[self.nodes.kinds == BALL]:
            out[first : first + 3] = first
        return out

    @property
    def segment_coordinates(self) -> Ints:
        """(J,) the coordinate of a segment that is farthest from the root, -1 for a segment that cannot move."""
        return self._tree[1]

    def path(self, segment: int) -> list[int]:
        """Return the coordinates that move a segment, from the segment to the root."""
        column, out = int(self.segment_coordinates[segment]), []
        while column >= 0:
            out.append(column)
            column = int(self.coordinate_parents[column])
        return out

    def forward(self, coordinates: Floats) -> tuple[Floats, Floats]:
        """Return segment origins (T, J, 3) mm and rotations (T, J, 3, 3), world from segment."""
        values = np.ascontiguousarray(np.atleast_2d(coordinates), dtype=np.float64)
        if values.shape[1] != self.dimension:
            raise InputError(f"{self.name}: wanted coordinates (T, {self.dimension}), got {values.shape}")
        return forward_all(self.nodes, self.segment_nodes, values)

    def points(self, coordinates: Floats, segments: Ints, offsets: Floats) -> Floats:
        """Return attached points (T, P, 3) of offsets (P, 3) mm on segments (P,)."""
        positions, rotations = self.forward(coordinates)
        turned = np.einsum("tpij,pj->tpi", rotations[:, segments], offsets)
        return np.asarray(positions[:, segments] + turned)

    def jacobian(self, coordinates: Floats, segments: Ints, offsets: Floats) -> tuple[Floats, Floats]:
        """Return attached points (P, 3) and their derivative (P, 3, D) at one pose (D,)."""
        chosen = np.asarray(segments, dtype=np.int64)
        count = len(self.nodes.parents)
        positions, rotations = np.empty((count, 3)), np.empty((count, 3, 3))
        motions = np.empty((self.dimension, 6))
        pose = np.ascontiguousarray(coordinates, dtype=np.float64)
        place_nodes(self.nodes, pose, np.zeros(3), positions, rotations, motions)
        nodes = self.segment_nodes[chosen]
        places = np.asarray(offsets, dtype=np.float64)
        points = positions[nodes] + np.einsum("pij,pj->pi", rotations[nodes], places)
        out = np.zeros((len(points), 3, self.dimension))
        point_derivatives(self.coordinate_parents, self.segment_coordinates[chosen], motions, points, out)
        return points, out


class NodeBuilder:
    """Collects nodes one by one; `nodes` packs them."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, Floats, Floats, Floats, int, int]] = []
        self._functions: list[Piecewise] = []

    def add(
        self,
        parent: int,
        kind: int = RIGID,
        *,
        axis: Floats | None = None,
        rotation: Floats | None = None,
        offset: Floats | None = None,
        column: int = -1,
        function: Piecewise | None = None,
    ) -> int:
        """Add a node and return its number."""
        index = -1
        if function is not None:
            index = len(self._functions)
            self._functions.append(function)
        zero, eye = np.zeros(3), np.eye(3)
        self._rows.append(
            (
                parent,
                kind,
                zero if axis is None else axis,
                eye if rotation is None else rotation,
                zero if offset is None else offset,
                column,
                index,
            )
        )
        return len(self._rows) - 1

    def nodes(self) -> Nodes:
        """Return the packed tree."""
        parents, kinds, axes, rotations, offsets, columns, functions = zip(*self._rows, strict=True)
        sizes = [len(function.breaks) for function in self._functions]
        stops = np.cumsum(sizes, dtype=np.int64) if sizes else np.zeros(0, dtype=np.int64)
        spans = np.stack([stops - np.array(sizes, dtype=np.int64), stops], axis=1).astype(np.int64)
        return Nodes(
            np.array(parents, dtype=np.int64),
            np.array(kinds, dtype=np.int64),
            np.array(axes, dtype=np.float64),
            np.array(rotations, dtype=np.float64),
            np.array(offsets, dtype=np.float64),
            np.array(columns, dtype=np.int64),
            np.array(functions, dtype=np.int64),
            spans,
            np.concatenate([function.breaks for function in self._functions] or [np.zeros(0)]),
            np.concatenate([function.pieces for function in self._functions] or [np.zeros((0, 4))]),
        )


def articulation_of(skeleton: Skeleton) -> Articulation:
    """Return a `Skeleton` in the solvers' form: same joint order, same coordinates."""
    builder = NodeBuilder()
    carriers: list[int] = []
    lower, upper = np.full(skeleton.dimension, -np.inf), np.full(skeleton.dimension, np.inf)
    is_length = np.zeros(skeleton.dimension, dtype=np.bool_)
    starts: list[int] = []
    halves: list[Floats] = []
    for index, joint in enumerate(skeleton.joints):
        parent = int(skeleton.parents[index])
        node = builder.add(-1 if parent < 0 else carriers[parent], offset=joint.offset)
        column = int(skeleton.packed.starts[index])
        shift = int(skeleton.packed.shifts[index])
        for first in ([column] if joint.kind == "free" else []) + ([shift] if shift >= 0 else []):
            is_length[first : first + 3] = True
            for axis in range(3):
                node = builder.add(node, SLIDE, axis=np.eye(3)[axis], column=first + axis)
        if shift >= 0:
            starts.append(shift)
            halves.append(np.full((3, 2), joint.shift_mm))
        turning = skeleton.columns(joint.name)
        if joint.kind in ("ball", "free"):
            node = builder.add(node, BALL, column=turning.start)
        for place, axis_vector in enumerate(joint.axes):
            node = builder.add(node, TURN, axis=axis_vector, column=turning.start + place)
        if joint.ellipsoidal and np.isfinite(joint.bounds).all():
            starts.append(turning.start)
            halves.append(np.abs(joint.bounds))
        else:
            lower[turning], upper[turning] = joint.bounds[:, 0], joint.bounds[:, 1]
        carriers.append(node)
    limits = Limits(
        lower, upper, np.array(starts, dtype=np.int64), np.array(halves, dtype=np.float64).reshape(-1, 3, 2)
    )
    return Articulation(
        name=skeleton.name,
        nodes=builder.nodes(),
        segment_names=skeleton.joint_names,
        segment_nodes=np.array(carriers, dtype=np.int64),
        coordinate_names=skeleton.coordinate_names,
        limits=limits,
        is_length=is_length,
        rest=np.zeros(skeleton.dimension),
        locked=np.zeros(skeleton.dimension, dtype=np.bool_),
    )
