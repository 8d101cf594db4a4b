"""Skin against bone: X-ray beads as the truth of the markerless skeleton.

A bead sits in one bone, so a perfect skeleton carries it: in the frame of its segment it stands still. How far it does
not is the error of the markerless segment, soft tissue and all. The bead's place in the segment is the mean over the
recording, so a constant offset between model bone and real bone is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from capture.recordings.recording import Recording
from vivarig.xray.bead_springs import bead_places, load_bead_springs

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

    def per_joint(self) -> dict[str, float]:
        """Return the mean distance of the beads that each joint's segment carries, mm."""
        return {
            segment: float(np.nanmean(self.distances[:, [s == segment for s in self.segments]]))
            for segment in dict.fromkeys(self.segments)
        }

    def numbers(self) -> dict[str, object]:
        """Return the errors for machines."""
        return {
            "mean_mm": self.mean_mm,
            "median_mm": float(np.nanmedian(self.distances)),
            "per_joint_mm": self.per_joint(),
            "per_bead_mm": {name: mm for name, _, mm in self.rows()},
            "frames": self.frames,
        }


def bead_errors(recording: Recording) -> BeadErrors:
    """Compare ``beads.h5`` with ``skeleton.h5``, or where beads took part in that fit, with the one without them."""
    with open_results(recording.results / "skeleton.h5", stage="skeleton") as file:
        body = str(file.attrs["body"])
        joints = list(words_of(file["joint_names"]))
        alone = file.get("markerless", file)
        positions, rotations = np.asarray(alone["positions"][:]), np.asarray(alone["rotations"][:])
    if not (recording.results / "beads.h5").is_file():
        raise InputError(f"{recording.folder}: no results/beads.h5; run `vivarig xray triangulate` first")
    beads = load_bead_springs(recording, body, joints)
    if beads is None:
        raise InputError(
            f"{recording.folder}: no bead of results/beads.h5 belongs to a segment of body '{body}'; name the segments"
            f" with `vivarig xray triangulate --bones`: {', '.join(joints[:6])} ..."
        )
    local = bead_places(beads, joints, positions, rotations)
    distances = np.linalg.norm(local - np.nanmean(local, axis=0), axis=2)
    return BeadErrors(beads.names, beads.segments, distances)
