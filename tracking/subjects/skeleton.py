"""The skeleton inside a subject: segment lengths against the built-in body, and its pose where the cage stands.

``subject.toml`` of a subject folder, to be read and edited by people::

    body = "human"

    [lengths]              # factor of each segment against the built-in body's
    left_hip = 1.03

    [pose]                 # coordinates in the cage's pose, rad and mm; others are 0
    left_hip_x = 0.157

A body that is not built in has its joint tree beside it, in ``skeleton.toml``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import tomli_w

from calibration.foundation.arrays import Floats
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import write_text
from calibration.foundation.tables import read_toml
from skeleton.bodies import BODIES, load_body, load_skeleton_toml, save_skeleton_toml
from skeleton.bodies.marker_sets import MarkerSet, builtin_markers, load_marker_set, save_marker_set
from skeleton.tree.joint_tree import Pose, Skeleton

__all__ = ["SubjectSkeleton", "load_subject_skeleton", "save_subject_skeleton", "subject_body"]

#: Joint tree of a body that is not built in.
OWN = "skeleton.toml"


@dataclass(frozen=True, eq=False)
class SubjectSkeleton:
    """Skeleton of a subject.

    Attributes:
        body: built-in body, or the name of one of its own.
        lengths: factor of each segment, by joint name.
        coordinates: (D,) in the cage's pose, rad and mm.
        markers: where virtual markers sit on the segments.
        own: the joint tree of a body that is not built in.
    """

    body: str
    lengths: dict[str, float]
    coordinates: Floats
    markers: MarkerSet
    own: Skeleton | None = None

    @cached_property
    def skeleton(self) -> Skeleton:
        """The joint tree with these lengths."""
        return (self.own or load_body(self.body)).scaled(self.lengths)

    @property
    def pose(self) -> Pose:
        """The posed skeleton in the cage."""
        return self.skeleton.forward(self.coordinates[None])

    def scaled(self, scale: float) -> SubjectSkeleton:
        """Return all lengths, and places in the world, multiplied by one factor."""
        lengths = {name: scale * factor for name, factor in self.lengths.items()}
        grown = replace(self, lengths=lengths, markers=self.markers.with_offsets(self.markers.offsets * scale))
        root = int(np.flatnonzero(self.skeleton.parents < 0)[0])
        coordinates = self.coordinates.copy()
        # A free root's coordinates begin with its translation.
        start = int(self.skeleton.packed.starts[root])
        coordinates[start : start + 3] += scale * self.pose.positions[0, root] - grown.pose.positions[0, root]
        return replace(grown, coordinates=coordinates)


def save_subject_skeleton(bones: SubjectSkeleton, folder: Path) -> None:
    """Write ``subject.toml`` and ``markers.toml`` into a subject folder."""
    names = bones.skeleton.coordinate_names
    table = {
        "body": bones.body,
        "lengths": {name: round(float(factor), 6) for name, factor in bones.lengths.items()},
        "pose": {
            name: round(float(value), 8) for name, value in zip(names, bones.coordinates, strict=True) if value != 0
        },
    }
    write_text(folder / "subject.toml", tomli_w.dumps(table))
    save_marker_set(bones.markers, folder / "markers.toml")
    if bones.own is not None:
        save_skeleton_toml(bones.own, folder / OWN)


@guarded("the skeleton of a subject")
def load_subject_skeleton(folder: Path) -> SubjectSkeleton:
    """Read the skeleton of a subject folder."""
    if not (folder / "subject.toml").is_file():
        raise InputError(f"{folder}: no subject.toml; make the subject again with `vivarig subject`")
    table = read_toml(folder / "subject.toml")
    body = table.text("body")
    own = load_skeleton_toml(folder / OWN) if (folder / OWN).is_file() else None
    if body not in BODIES and own is None:
        raise InputError(
            f"{table.where('body')}: unknown body '{body}'; {nearest(body, BODIES)}, or put its {OWN} beside it"
        )
    skeleton = own or load_body(body)
    given = table.table("lengths")
    given.allow(frozenset(skeleton.joint_names))
    lengths = {name: given.number(name, 1.0, above=0) for name in skeleton.joint_names}
    pose = table.table("pose")
    pose.allow(frozenset(skeleton.coordinate_names))
    coordinates = np.array([pose.number(name, 0.0) for name in skeleton.coordinate_names])
    return SubjectSkeleton(body, lengths, coordinates, load_marker_set(folder / "markers.toml"), own)


def subject_body(name: str, folder: Path) -> tuple[Skeleton, MarkerSet]:
    """Return body and markers of a built-in body or of a subject folder, whose own files come first."""
    if name in BODIES:
        return load_body(name), builtin_markers(name)
    place = next((path for path in (folder / name, Path(name)) if path.is_dir()), None)
    if place is None:
        raise InputError(f"unknown subject '{name}'; built in are {', '.join(BODIES)}, or give a subject folder")
    if not (place / "skeleton.toml").is_file():
        bones = load_subject_skeleton(place)
        return bones.skeleton, bones.markers
    body = load_skeleton_toml(place / "skeleton.toml")
    own = place / "markers.toml"
    return body, load_marker_set(own) if own.is_file() else builtin_markers(body.name)
