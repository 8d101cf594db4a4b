"""Skin against bone: X-ray beads as the truth of the markerless skeleton.

A bead sits in one bone, so a perfect skeleton carries it: in the frame of its segment it stands still. How far it does
not is the error of the markerless segment, soft tissue and all. The bead's place in the segment is the mean over the
recording, so a constant offset between model bone and real bone is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.arrays import Floats
from calibration.errors import InputError
from calibration.transforms import rotation_from_quaternion
from capture.recording import Recording
from capture.results import open_results
from skeleton.actor import build_actor
from skeleton.bodies import BODIES

__all__ = ["BeadErrors", "bead_errors"]


@dataclass(frozen=True, eq=False)
class BeadErrors:
    """Distances of beads from where the skeleton carries them.

    Attributes:
        names: (B,) beads.
        segments: (B,) the segment that carries each.
        distances: (T, B) mm, NaN where the bead or the frame is missing.
    """

    names: tuple[str, ...]
    segments: tuple[str, ...]
    distances: Floats

    @property
    def frames(self) -> int:
        """Number of frames with at least one bead."""
        return int(np.isfinite(self.distances).any(1).sum())

    @property
    def mean_mm(self) -> float:
        """Mean over everything measured."""
        return float(np.nanmean(self.distances))

    def rows(self) -> Iterator[tuple[str, str, float]]:
        """Yield (bead, segment, mean distance mm)."""
        yield from zip(self.names, self.segments, np.nanmean(self.distances, axis=0).tolist(), strict=True)

    def numbers(self) -> dict[str, object]:
        """Return the errors for machines."""
        return {
            "mean_mm": self.mean_mm,
            "median_mm": float(np.nanmedian(self.distances)),
            "per_bead_mm": {name: mm for name, _, mm in self.rows()},
            "frames": self.frames,
        }


def bead_errors(recording: Recording) -> BeadErrors:
    """Compare ``beads.h5`` with ``skeleton.h5``; beads are matched to segments by the built-in body's bead names."""
    with open_results(recording.results / "skeleton.h5", stage="skeleton") as file:
        body = str(file.attrs["body"])
        joints = [name.decode() for name in file["joint_names"][:]]
        positions, turns = file["positions"][:], rotation_from_quaternion(file["rotations"][:])
    with open_results(recording.results / "beads.h5", stage="beads") as file:
        names = [name.decode() for name in file["names"][:]]
        beads = np.asarray(file["positions"][:], dtype=np.float64)
    if body not in BODIES:
        raise InputError(
            f"{recording.folder}: the beads of body '{body}' are not known; built-in are {', '.join(BODIES)}"
        )
    if len(beads) != len(positions):
        raise InputError(f"{recording.folder}: beads.h5 has {len(beads)} frames, skeleton.h5 {len(positions)}")
    actor = build_actor(body)
    known = dict(zip(actor.implanted_beads.names, actor.implanted_beads.segments, strict=True))
    kept = [(index, name) for index, name in enumerate(names) if name in known]
    if not kept:
        raise InputError(f"{recording.folder}: no bead is named after the body's: {', '.join(list(known)[:6])} ...")
    carriers = [actor.skeleton.joint_names[known[name]] for _, name in kept]
    where = [joints.index(name) for name in carriers]
    local = np.einsum("tbji,tbj->tbi", turns[:, where], beads[:, [i for i, _ in kept]] - positions[:, where])
    distances = np.linalg.norm(local - np.nanmean(local, axis=0), axis=2)
    return BeadErrors(tuple(name for _, name in kept), tuple(carriers), distances)
