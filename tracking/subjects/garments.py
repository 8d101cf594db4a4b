"""A skirt that a person wears: a surface of its own around hips and legs, which the quads carry along loosely.

A body alone can explain a skirt only with thighs as thick as the cloth is wide, and then knees lie anywhere in it. So
the skirt (or the lower part of a dress or coat) is drawn with the body: legs under it need not reach its outline, and
its outline says little of them (`Skirt.spread`). Its rings hang on the waist at the top and, further down, on both
thighs, more on the nearer one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from tracking.quads.oriented_quads import QuadRig
from tracking.quads.template import Template
from tracking.subjects.subject import Subject

__all__ = ["WEARERS", "Skirt", "dressed"]

WEARERS = ("human",)
"""Bodies that wear clothes."""
AROUND, ROWS = 24, 8
"""Vertices around a ring, and rings."""
HELD = {"waist": ("waist", "belly"), "left": ("left_hip", "left_thigh", "left_knee")}
HELD["right"] = tuple(name.replace("left", "right") for name in HELD["left"])
"""Quads that carry it."""


@dataclass(frozen=True)
class Skirt:
    """A skirt's measures.

    Attributes:
        length: from the hips to the hem, as a share of the leg's length.
        waist, hem: half its width at the top and at the hem, as a share of the leg's length, legs as in the cage.
        top: how far above the hips it begins, as a share of the leg's length.
        depth: depth against width.
        follows: share of the legs' motion that the hem takes.
        spread: how far its outline lies from where this puts it, 1 sigma, thousandths of the subject's size.
    """

    length: float
    waist: float
    hem: float
    top: float = 0.12
    depth: float = 0.8
    follows: float = 0.6
    spread: float = 40.0

    @classmethod
    def told(cls, table: Mapping[str, Any]) -> Skirt:
        """Return the skirt that a track's file tells (`as_table`)."""
        return cls(**{one.name: float(table[one.name]) for one in fields(cls)})

    def as_table(self) -> dict[str, float]:
        """Return plain values, to be written with the results."""
        return asdict(self)

    def describe(self) -> str:
        """Say the measures in one line."""
        return f"skirt, {self.length:.2f} of the legs long and {2 * self.waist:.2f} to {2 * self.hem:.2f} of them wide"


def dressed(subject: Subject, skirt: Skirt | None) -> Subject:
    """Return a subject whose outlines are drawn with a skirt; the mesh that is written out stays bare."""
    if skirt is None:
        return subject
    points, faces = _cut(subject, skirt)
    rows = _rows(subject, points, skirt.follows)
    size = float(np.linalg.norm(np.ptp(subject.outline_template.vertices, axis=0))) / 2000.0
    spread = np.full(len(points), skirt.spread * size)
    outline, step = (
        _joined(template, points, faces, rows, spread) for template in (subject.outline_template, subject.step_template)
    )
    return replace(subject, outline_template=outline, step_template=step)


def _joined(template: Template, points: Floats, faces: Ints, rows: Floats, spread: Floats) -> Template:
    count = len(template.vertices)
    own = np.zeros(count) if template.spread is None else template.spread
    return Template(
        np.concatenate([template.vertices, points]),
        np.concatenate([template.faces, faces + count]),
        np.concatenate([template.binding, rows]),
        np.concatenate([own, spread]),
        count,
    )


def _cut(subject: Subject, skirt: Skirt) -> tuple[Floats, Ints]:
    """Vertices (V, 3) in the cage's pose, mm, and faces (F, 3) of a closed skirt; x is ahead and z up there."""
    at = dict(zip(subject.joint_names, subject.joint_points, strict=True))
    leg = np.linalg.norm(at["left_knee"] - at["left_hip"]) + np.linalg.norm(at["left_ankle"] - at["left_knee"])
    middle = 0.5 * (at["left_hip"] + at["right_hip"])
    angle = np.tile(np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False), ROWS)
    down = np.repeat(np.linspace(0.0, 1.0, ROWS), AROUND)
    height = skirt.top - (skirt.top + skirt.length) * down
    wide = skirt.waist + (skirt.hem - skirt.waist) * down
    rings = np.stack([skirt.depth * wide * np.cos(angle), wide * np.sin(angle), height], axis=1)
    ends = np.array([[0.0, 0.0, skirt.top], [0.0, 0.0, -skirt.length]])
    return middle + leg * np.concatenate([rings, ends]), _sewn()


def _sewn() -> Ints:
    """Faces (F, 3) of the wall and of the two ends, all looking out."""
    row, column = np.divmod(np.arange((ROWS - 1) * AROUND), AROUND)
    a, b = row * AROUND + column, row * AROUND + (column + 1) % AROUND
    wall = np.concatenate([np.stack([a, a + AROUND, b], axis=1), np.stack([b, a + AROUND, b + AROUND], axis=1)])
    first, count = np.arange(AROUND), ROWS * AROUND
    beside, last = (first + 1) % AROUND, count - AROUND
    top = np.stack([np.full(AROUND, count), first, beside], axis=1)
    hem = np.stack([np.full(AROUND, count + 1), beside + last, first + last], axis=1)
    return np.concatenate([wall, top, hem])


def _rows(subject: Subject, points: Floats, follows: float) -> Floats:
    """Coordinates (V, 4 Q + F) of the skirt's vertices: the waist's share and both legs'."""
    rig = subject.cage_rig.quads
    side = np.tile(np.sin(np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)), ROWS)
    left = np.r_[0.5 + 0.5 * side, 0.5, 0.5]
    down = np.r_[np.repeat(np.linspace(0.0, 1.0, ROWS), AROUND), 0.0, 1.0] * follows
    shares = {"waist": 1.0 - down, "left": down * left, "right": down * (1.0 - left)}
    rows = np.zeros((len(points), subject.outline_template.binding.shape[1]))
    for part, share in shares.items():
        columns, held = _held_by(rig, HELD[part], points)
        rows[:, columns] += share[:, None] * held
    return rows


def _held_by(rig: QuadRig, names: tuple[str, ...], points: Floats) -> tuple[Ints, Floats]:
    """Columns (n,) of some quads' corners, and weights (P, n) by which these give points (P, 3) at rest.

    The weights sum to one and are the least that do: where the quads move as one body, the points go along.
    """
    quads = np.array([rig.quad_names.index(name) for name in names])
    corners = rig.posed_corners(rig.rest)[quads].reshape(-1, 3)
    # In the quads' own units, so that the sum counts as much as the places.
    middle, size = corners.mean(axis=0), float(np.abs(corners - corners.mean(axis=0)).max())
    known = np.column_stack([(corners - middle) / size, np.ones(len(corners))])
    wanted = np.column_stack([(points - middle) / size, np.ones(len(points))])
    return (4 * quads[:, None] + np.arange(4)).ravel(), wanted @ np.linalg.pinv(known)
