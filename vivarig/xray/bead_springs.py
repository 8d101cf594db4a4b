"""X-ray beads in the skeleton fit: metal in bone is tied to its segment by stiff springs, beside the skin's soft ones.

Where a bead sits in its segment's frame is not known beforehand. It is taken from the fit itself, as the median over
the recording, and the springs are drawn tighter round by round: at first the skin decides where the bones are, in the
end the beads decide how they move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from calibration.geometry.transforms import rotation_from_quaternion
from capture.recordings.recording import Recording
from skeleton.actors.actor import build_actor
from skeleton.bodies import BODIES
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.inverse_kinematics.fits import SkeletonFit
from vivarig.edits.edit_file import edits_file, load_edits

__all__ = ["BeadSprings", "bead_places", "hold_beads", "load_bead_springs"]

#: Standard deviation of a bead about its place in the segment, mm, round by round. The last is what a segment that is
#: no single rigid bone (feet, spine) leaves; the beads' own errors are smaller and come on top.
SPRINGS_MM = (2.0, 0.7, 0.25)
#: Farthest median distance of beads from their segments that one frame of reference allows, in median distances of the
#: joints from their middle.
FARTHEST = 3.0

#: (marker names, points (T, M, 3), sigma (T, M), their places on the body) -> the fit.
Fit = Callable[[Sequence[str], Floats, Floats, MarkerSet], SkeletonFit]


@dataclass(frozen=True, eq=False)
class BeadSprings:
    """Beads that are known to sit in a segment of the body.

    Attributes:
        names: (B,) beads.
        segments: (B,) segment of each.
        positions: (T, B, 3) mm, NaN where not seen.
        sigma: (T, B) mm per coordinate.
    """

    names: tuple[str, ...]
    segments: tuple[str, ...]
    positions: Floats
    sigma: Floats


def load_bead_springs(recording: Recording, body: str, joints: Sequence[str]) -> BeadSprings | None:
    """Return the beads of ``results/beads.h5`` that belong to segments of the body; None where there are none.

    A bead belongs to the segment that its bone is named after (`vivarig xray triangulate --bones`); failing that, a
    bead named like one of a built-in body's implanted beads belongs where that one is.
    """
    path = recording.results / "beads.h5"
    if not path.is_file():
        return None
    with open_results(path, stage="beads") as file:
        called = load_edits(edits_file(recording.folder)).bead_names
        names = [called.get(name, name) for name in words_of(file["names"])]
        bones = list(words_of(file["bead_bones"])) if "bead_bones" in file else [""] * len(names)
        positions = np.asarray(file["positions"][:], dtype=np.float64)
        covariance = np.asarray(file["covariance"][:], dtype=np.float64)
    known: dict[str, str] = {}
    if body in BODIES:
        actor = build_actor(body)
        carriers = (actor.skeleton.joint_names[k] for k in actor.implanted_beads.segments)
        known = dict(zip(actor.implanted_beads.names, carriers, strict=True))
    owner = [bone if bone in joints else known.get(name, "") for name, bone in zip(names, bones, strict=True)]
    kept = [k for k, segment in enumerate(owner) if segment in joints]
    if not kept:
        return None
    sigma = np.sqrt(np.trace(covariance, axis1=2, axis2=3) / 3.0)
    return BeadSprings(tuple(names[k] for k in kept), tuple(owner[k] for k in kept), positions[:, kept], sigma[:, kept])


def bead_places(beads: BeadSprings, joints: Sequence[str], positions: Floats, rotations: Floats) -> Floats:
    """Return (T, B, 3) beads in the frames of their segments, mm, from joints (T, J, 3) and (T, J, 4) wxyz."""
    if len(beads.positions) != len(positions):
        raise InputError(f"beads.h5 has {len(beads.positions)} frames, the skeleton {len(positions)}")
    where = [list(joints).index(name) for name in beads.segments]
    turns = rotation_from_quaternion(rotations[:, where])
    return np.asarray(np.einsum("tbji,tbj->tbi", turns, beads.positions - positions[:, where]))


def hold_beads(
    beads: BeadSprings,
    start: SkeletonFit,
    names: Sequence[str],
    points: Floats,
    sigma: Floats | None,
    markers: MarkerSet,
    fit: Fit,
) -> SkeletonFit:
    """Fit again with the beads tied to their segments.

    Args:
        start: the fit to the markers alone.
        names, points, sigma, markers: what that one was fitted to.
        fit: fits a body to markers.
    """
    joints = start.body.segment_names
    size = float(np.nanmedian(np.linalg.norm(start.positions - np.nanmean(start.positions, axis=1)[:, None], axis=2)))
    labels = tuple(f"bead {name}" for name in beads.names)
    soft = np.zeros(points.shape[:2]) if sigma is None else np.broadcast_to(sigma, points.shape[:2])
    result = start
    for spring in SPRINGS_MM:
        local = bead_places(beads, joints, result.positions, result.rotations)
        seen = np.asarray(np.isfinite(local[..., 0]))
        usable = [b for b in range(len(labels)) if seen[:, b].sum() >= 3]
        if not usable:
            raise InputError("beads.h5: no bead is seen in three frames of the skeleton")
        offsets = np.nanmedian(local[:, usable], axis=0)
        far = float(np.median(np.linalg.norm(offsets, axis=1)))
        if far > FARTHEST * size:
            raise InputError(
                f"beads.h5: beads are {far:.0f} mm from their segments, the body measures {size:.0f} mm: X-ray and"
                " light cameras do not share a frame of reference; calibrate them together"
                " (see docs/tutorials/xray.md), or pass --no-beads"
            )
        tied = MarkerSet(
            (*markers.names, *(labels[b] for b in usable)),
            (*markers.segments, *(beads.segments[b] for b in usable)),
            np.concatenate([markers.offsets, offsets]),
            np.concatenate([markers.sd_mm, np.full(len(usable), spring)]),
        )
        result = fit(
            (*names, *(labels[b] for b in usable)),
            np.concatenate([points, beads.positions[:, usable]], axis=1),
            np.concatenate([soft, beads.sigma[:, usable]], axis=1),
            tied,
        )
    return result
