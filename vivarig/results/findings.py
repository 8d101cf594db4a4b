"""What the results of a recording hold, read once for the report, the viewer and the exporters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.hdf5_files import mapped_or_read, words_of
from calibration.foundation.result_files import open_results
from capture.recordings.masks import first_frame, mask_cameras, read_agreement, read_flags
from capture.recordings.recording import Recording
from tracking.sequence.track_file import open_track
from vivarig.edits.edit_file import Edits, edits_file, load_edits

__all__ = [
    "Beads",
    "Findings",
    "HullFindings",
    "SilhouetteFindings",
    "SkeletonFindings",
    "TrackFindings",
    "load_findings",
    "load_outlines",
    "load_track",
]


@dataclass(frozen=True, eq=False)
class SilhouetteFindings:
    """Of ``silhouettes.h5``: camera names, agreement (T, C) IoU and flags (T, C)."""

    path: Path
    names: list[str]
    agreement: Singles
    flags: NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class HullFindings:
    """Of ``hull.h5``: volume (T,) mm^3, views used (T, C), agreement (T, C), flags (T,)."""

    path: Path
    volume: Floats
    views_used: Bools
    agreement: Floats
    flags: NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class TrackFindings:
    """Of ``track.h5``: trust (T,), reason (T,) with its words, residual and view agreement (T,), markers (T, M, 3).

    ``overlap`` (T, C) is the agreement camera by camera, where the file has it.

    The template's vertices (T, V, 3) stay in the file; see `vertices_at`.
    """

    path: Path
    trust: Ints
    reason: Ints
    reasons: tuple[str, ...]
    residual: Floats
    agreement: Floats
    overlap: Floats | None
    marker_names: tuple[str, ...]
    markers: Floats
    sigma: Floats | None
    faces: NDArray[np.int32]
    frames: int
    limb_names: tuple[str, ...] = ()
    limb_trust: Ints | None = None
    limb_reason: Ints | None = None
    marker_limbs: Ints | None = None

    @property
    def marker_trust(self) -> Ints:
        """(T, M) trust of each marker: its limb's, or its frame's where limbs were not judged."""
        if self.limb_trust is None or self.marker_limbs is None:
            return np.repeat(self.trust[:, None], len(self.marker_names), axis=1)
        return np.asarray(self.limb_trust[:, self.marker_limbs])

    @property
    def tracked(self) -> Bools:
        """(T,) frames in which the subject was found at all."""
        with open_track(self.path) as file:
            return np.asarray(np.isfinite(file.centres()).all(axis=(1, 2)))

    def quads(self, frames: Ints) -> tuple[Floats, Floats]:
        """Return the quads' rotations (n, Q, 3, 3) and centres (n, Q, 3), mm, of some frames."""
        with open_track(self.path) as file:
            pose = file.quads()
        return pose.rotations[frames], pose.centres[frames]

    @property
    def quad_names(self) -> tuple[str, ...]:
        """Names of the quads."""
        with open_track(self.path) as file:
            return file.quad_names

    @property
    def parameters(self) -> dict[str, Any]:
        """What the track was made with: subject, scale, shape, ..."""
        with open_track(self.path) as file:
            return file.parameters

    def vertices_at(self, frame: int) -> Floats:
        """Return the template (V, 3) of a frame, mm."""
        with open_track(self.path) as file:
            return file.vertices(frame)


@dataclass(frozen=True, eq=False)
class SkeletonFindings:
    """Of ``skeleton.h5``: joints, positions (T, J, 3), rotations wxyz (T, J, 4), coordinates (T, D), sigma (T, J)."""

    path: Path
    body: str
    rate_hz: float
    joint_names: tuple[str, ...]
    parents: Ints
    offsets: Floats
    positions: Floats
    rotations: Floats
    coordinate_names: tuple[str, ...]
    coordinates: Floats
    sigma: Floats
    trust: Ints
    landmark_names: tuple[str, ...]
    landmarks: Floats
    joint_trust: Ints
    landmark_trust: Ints
    landmark_joints: Ints | None = None

    @property
    def landmark_sigma(self) -> Floats | None:
        """(T, K) sigma of the joint that carries each landmark, mm; None for a file that does not say which."""
        return None if self.landmark_joints is None else np.asarray(self.sigma[:, self.landmark_joints])


@dataclass(frozen=True, eq=False)
class Beads:
    """Of ``beads.h5``: names and positions (T, B, 3) mm."""

    names: tuple[str, ...]
    positions: Floats


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything that is there; None where a stage has not run.

    ``recording`` begins at the frame that the results begin at, ``first`` of the recording on disk. ``redrawn`` is the
    file of the silhouettes that were drawn again with the template's help, which the track lies on.
    """

    recording: Recording
    first: int
    silhouettes: SilhouetteFindings | None
    hull: HullFindings | None
    track: TrackFindings | None = None
    skeleton: SkeletonFindings | None = None
    beads: Beads | None = None
    redrawn: Path | None = None

    @property
    def frames(self) -> int:
        """Number of frames, by whatever stage has run."""
        if self.skeleton is not None:
            return len(self.skeleton.positions)
        if self.track is not None:
            return self.track.frames
        if self.silhouettes is not None:
            return len(self.silhouettes.flags)
        return len(self.beads.positions) if self.beads is not None else 0

    @property
    def outlines(self) -> Findings:
        """What was found before the subject was tracked: silhouettes and hulls alone."""
        return replace(self, track=None, skeleton=None, beads=None, redrawn=None)


def load_outlines(recording: Recording) -> Findings:
    """Read silhouettes and hulls; what lies in the results folder beside them may be of a run before."""
    masks, hulls = recording.results / "silhouettes.h5", recording.results / "hull.h5"
    first = first_frame(masks) if masks.is_file() else 0
    findings = Findings(
        recording.from_frame(first),
        first,
        _silhouettes(masks) if masks.is_file() else None,
        _hull(hulls) if hulls.is_file() else None,
    )
    _check_lengths(findings)
    return findings


def load_findings(recording: Recording) -> Findings:
    """Read what the results folder holds."""
    place = recording.results

    def there(name: str) -> bool:
        return (place / name).is_file()

    findings = replace(
        load_outlines(recording),
        track=load_track(place / "track.h5") if there("track.h5") else None,
        skeleton=_skeleton(place / "skeleton.h5") if there("skeleton.h5") else None,
        beads=_beads(place / "beads.h5") if there("beads.h5") else None,
        redrawn=place / "redrawn.h5" if there("redrawn.h5") and there("track.h5") else None,
    )
    _check_lengths(findings)
    return _renamed(findings, load_edits(edits_file(recording.folder)))


def _renamed(findings: Findings, edits: Edits) -> Findings:
    """Return findings whose beads and markers are called as somebody said; two of one name are refused."""
    track, beads = findings.track, findings.beads
    if track is not None and edits.marker_names:
        track = replace(track, marker_names=_called(track.marker_names, edits.marker_names, "marker"))
    if beads is not None and edits.bead_names:
        beads = replace(beads, names=_called(beads.names, edits.bead_names, "bead"))
    return replace(findings, track=track, beads=beads)


def _called(names: tuple[str, ...], words: Mapping[str, str], what: str) -> tuple[str, ...]:
    missing = next((name for name in words if name not in names), None)
    if missing is not None:
        raise InputError(f"edits.toml: [names] no {what} '{missing}'; {nearest(missing, list(names))}")
    new = tuple(words.get(name, name) for name in names)
    if len(set(new)) < len(new):
        twice = next(name for name in new if new.count(name) > 1)
        raise InputError(f"edits.toml: [names] two {what}s would be called '{twice}'")
    return new


def _check_lengths(findings: Findings) -> None:
    """Refuse results of different frames: their rows would be shown side by side as if they belonged together."""
    counts = {
        "silhouettes.h5": None if findings.silhouettes is None else len(findings.silhouettes.flags),
        "hull.h5": None if findings.hull is None else len(findings.hull.volume),
        "track.h5": None if findings.track is None else findings.track.frames,
        "skeleton.h5": None if findings.skeleton is None else len(findings.skeleton.positions),
    }
    known = {name: count for name, count in counts.items() if count is not None}
    if len(set(known.values())) > 1:
        words = ", ".join(f"{name} {count}" for name, count in known.items())
        raise InputError(
            f"{findings.recording.results}: results of different runs (frames: {words}); bring them up to date with "
            f"`vivarig run {findings.recording.folder}`"
        )


def _silhouettes(path: Path) -> SilhouetteFindings:
    return SilhouetteFindings(path, mask_cameras(path)[0], read_agreement(path), read_flags(path))


def _hull(path: Path) -> HullFindings:
    with open_results(path, stage="hull") as file:
        return HullFindings(path, file["volume"][:], file["views_used"][:], file["agreement"][:], file["flags"][:])


def load_track(path: Path) -> TrackFindings:
    """Read a ``track.h5``."""
    with open_track(path) as file:
        limbs = file.limb_names
        return TrackFindings(
            path,
            file.trust(),
            file.reason(),
            file.reasons,
            file.residual(),
            file.agreement(),
            file.overlap(),
            file.marker_names,
            file.markers(),
            file.marker_sigma(),
            file.faces,
            len(file),
            limbs,
            file.limb_trust() if limbs else None,
            file.limb_reason() if limbs else None,
            file.marker_limbs if limbs else None,
        )


def _skeleton(path: Path) -> SkeletonFindings:
    with open_results(path, stage="skeleton") as file:
        trust = np.asarray(file["trust"][:], dtype=np.int64)
        by_joint, by_landmark = (
            np.repeat(trust[:, None], len(file[name]), axis=1) for name in ("joint_names", "landmark_names")
        )
        if "joint_trust" in file:
            by_joint = np.asarray(file["joint_trust"][:], dtype=np.int64)
            by_landmark = by_joint[:, file["landmark_joints"][:]]
        return SkeletonFindings(
            path,
            str(file.attrs["body"]),
            float(file.attrs["rate_hz"]),
            words_of(file["joint_names"]),
            np.asarray(file["joint_parents"][:], dtype=np.int64),
            np.asarray(file["joint_offsets"][:], dtype=np.float64),
            mapped_or_read(file["positions"]),
            mapped_or_read(file["rotations"]),
            words_of(file["coordinate_names"]),
            mapped_or_read(file["coordinates"]),
            mapped_or_read(file["sigma"]),
            trust,
            words_of(file["landmark_names"]),
            mapped_or_read(file["landmarks"]),
            by_joint,
            by_landmark,
            np.asarray(file["landmark_joints"][:], dtype=np.int64) if "landmark_joints" in file else None,
        )


def _beads(path: Path) -> Beads:
    with open_results(path, stage="beads") as file:
        return Beads(words_of(file["names"]), mapped_or_read(file["positions"]))
