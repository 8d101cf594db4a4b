"""Oriented quads rigging (OQR): the few rigid rectangles that carry a cage.

A quad of constant size sits at the interface between two nearly rigid regions of the body and has six degrees of
freedom. A region lists the quads that bound it; two quads are neighbours when a region has both. The file is TOML::

    name = "human"
    root = "waist"

    [[quad]]
    name = "waist"
    centre = [0.0, 0.0, 1000.0]            # mm, rest pose
    rotation = [1.0, 0.0, 0.0, 0.0]        # wxyz; columns of the matrix: width, height, normal
    extents = [150.0, 150.0, 100.0, 100.0] # mm from the centre: -width, +width, -height, +height

    [[region]]
    name = "belly"
    quads = ["waist", "chest"]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from calibration.foundation.arrays import Floats, Ints, shaped
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import write_text
from calibration.foundation.tables import read_toml
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion

__all__ = ["QuadPose", "QuadRig", "Region", "load_quad_rig", "save_quad_rig"]


@dataclass(frozen=True)
class Region:
    """A nearly rigid part of the body and the indices of the quads that bound it."""

    name: str
    quads: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class QuadPose:
    """Where the quads of a rig are, in one frame or many.

    Attributes:
        rotations: (..., Q, 3, 3) world from quad.
        centres: (..., Q, 3) mm.
    """

    rotations: Floats
    centres: Floats

    def distance(self, other: QuadPose) -> float:
        """Return the mean distance of the quads' centres from those of another pose, mm."""
        return float(np.linalg.norm(self.centres - other.centres, axis=-1).mean())


@dataclass(frozen=True, eq=False)
class QuadRig:
    """Quads in the rest pose, and the regions between them.

    Attributes:
        name: name of the rig; a prior is learned for one rig.
        quad_names: one name per quad.
        rotations: (Q, 3, 3) world from quad at rest; columns are width, height and normal.
        centres: (Q, 3) rest centres, mm.
        extents: (Q, 4) distances of the sides from the centre, mm: -width, +width, -height, +height.
        regions: parts of the body between quads. A quad bounds two regions, or one where the body ends.
        root: index of the root (pelvis) quad, the frame of reference of poses.
    """

    name: str
    quad_names: tuple[str, ...]
    rotations: Floats
    centres: Floats
    extents: Floats
    regions: tuple[Region, ...]
    root: int

    def __post_init__(self) -> None:
        count = len(self.quad_names)
        object.__setattr__(self, "rotations", shaped(self.rotations, (count, 3, 3), f"rig '{self.name}': rotations"))
        object.__setattr__(self, "centres", shaped(self.centres, (count, 3), f"rig '{self.name}': centres"))
        object.__setattr__(self, "extents", shaped(self.extents, (count, 4), f"rig '{self.name}': extents"))
        if len(set(self.quad_names)) != count:
            raise InputError(f"rig '{self.name}': two quads have the same name")
        if not 0 <= self.root < count:
            raise InputError(f"rig '{self.name}': root {self.root} is not one of its {count} quads")
        size = self.extents.reshape(count, 2, 2).sum(axis=2)
        for quad in np.flatnonzero((size <= 0).any(axis=1)):
            raise InputError(f"rig '{self.name}': quad '{self.quad_names[quad]}' has no area")
        skewed = np.abs(self.rotations @ self.rotations.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
        for quad in np.flatnonzero((skewed > 1e-6) | (np.linalg.det(self.rotations) < 0)):
            raise InputError(f"rig '{self.name}': rotation of quad '{self.quad_names[quad]}' is not a rotation")
        uses = np.zeros(count, int)
        for region in self.regions:
            if len(region.quads) < 2 or len(set(region.quads)) != len(region.quads):
                raise InputError(f"rig '{self.name}': region '{region.name}' must list two or more different quads")
            uses[list(region.quads)] += 1
        for quad in np.flatnonzero((uses < 1) | (uses > 2)):
            raise InputError(
                f"rig '{self.name}': quad '{self.quad_names[quad]}' bounds {uses[quad]} regions; "
                "it must bound one or two"
            )

    def __len__(self) -> int:
        return len(self.quad_names)

    @property
    def rest(self) -> QuadPose:
        """The rest pose."""
        return QuadPose(self.rotations, self.centres)

    @cached_property
    def corners(self) -> Floats:
        """(Q, 4, 3) corners in the quad's own frame, mm, counter-clockwise about its normal."""
        left, right, low, high = self.extents.T
        zero = np.zeros(len(self))
        return np.stack(
            [
                np.stack([-left, -low, zero], axis=-1),
                np.stack([right, -low, zero], axis=-1),
                np.stack([right, high, zero], axis=-1),
                np.stack([-left, high, zero], axis=-1),
            ],
            axis=1,
        )

    @cached_property
    def neighbours(self) -> Ints:
        """(E, 2) pairs of quads that bound a common region, lower index first."""
        pairs = {
            (min(a, b), max(a, b)) for region in self.regions for a in region.quads for b in region.quads if a != b
        }
        return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)

    def index(self, name: str) -> int:
        """Return the index of a quad by name."""
        if name not in self.quad_names:
            raise InputError(f"rig '{self.name}' has no quad '{name}'; {nearest(name, self.quad_names)}")
        return self.quad_names.index(name)

    def posed_corners(self, pose: QuadPose) -> Floats:
        """Return the (..., Q, 4, 3) world corners in a pose, mm."""
        turned = np.einsum("...qij,qkj->...qki", pose.rotations, self.corners)
        return np.asarray(turned + np.asarray(pose.centres)[..., None, :])


@guarded("a quad rig")
def load_quad_rig(path: Path | str) -> QuadRig:
    """Read a rig of quads from its TOML file."""
    path = Path(path)
    table: dict[str, Any] = read_toml(path).content
    try:
        quads = list(table["quad"])
        names = tuple(str(quad["name"]) for quad in quads)
        turns = shaped([quad["rotation"] for quad in quads], (len(quads), 4), "rotations of quads")
        if not (np.linalg.norm(turns, axis=1) > 0.5).all():
            raise InputError(f"{path}: the rotation of a quad must be a quaternion of length 1")
        rotations = rotation_from_quaternion(turns)
        regions = tuple(
            Region(str(region["name"]), _indices(names, region["quads"], path)) for region in table["region"]
        )
        return QuadRig(
            name=str(table["name"]),
            quad_names=names,
            rotations=rotations,
            centres=np.array([quad["centre"] for quad in quads], float),
            extents=np.array([quad["extents"] for quad in quads], float),
            regions=regions,
            root=_indices(names, [table["root"]], path)[0],
        )
    except KeyError as error:
        raise InputError(f"{path}: the quad rig lacks {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: {error}") from None


def save_quad_rig(rig: QuadRig, path: Path | str) -> None:
    """Write a rig of quads as TOML, to be edited by hand and read again."""
    quaternions = quaternion_from_rotation(rig.rotations)
    table = {
        "name": rig.name,
        "root": rig.quad_names[rig.root],
        "quad": [
            {
                "name": name,
                "centre": rig.centres[index].round(6).tolist(),
                "rotation": quaternions[index].round(12).tolist(),
                "extents": rig.extents[index].round(6).tolist(),
            }
            for index, name in enumerate(rig.quad_names)
        ],
        "region": [
            {"name": region.name, "quads": [rig.quad_names[quad] for quad in region.quads]} for region in rig.regions
        ],
    }
    write_text(path, tomli_w.dumps(table))


def _indices(names: Sequence[str], wanted: Sequence[str], path: Path) -> tuple[int, ...]:
    for name in wanted:
        if name not in names:
            raise InputError(f"{path}: no quad '{name}'; {nearest(name, names)}")
    return tuple(names.index(name) for name in wanted)
