"""``skeleton.h5``, written a chunk of frames at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Floats
from calibration.foundation.result_files import create_results, text_array
from calibration.foundation.spans import Span
from skeleton.analysis.constraints import GeometricConstraint
from skeleton.analysis.contacts import Contacts
from skeleton.analysis.foot_events import FootEvent
from skeleton.inverse_kinematics.fits import REASONS, SkeletonFit
from skeleton.inverse_kinematics.scaling import Scaling
from skeleton.tree.joint_tree import Skeleton

__all__ = ["SkeletonWriter", "create_skeleton"]


class SkeletonWriter:
    """Streams fitted frames into an open result file; made by `create_skeleton`."""

    def __init__(self, file: h5py.File, body: Skeleton, frames: int) -> None:
        self._file = file
        self._body = body
        self._frames = frames
        file["joint_names"] = text_array(list(body.joint_names))
        file["joint_parents"] = body.parents
        file["coordinate_names"] = text_array(list(body.coordinate_names))
        file["reasons"] = text_array(list(REASONS))
        file["landmark_joints"] = body.points(list(body.landmark_points.values()))[0]
        # Bone offsets of the subject: what a viewer needs to draw it.
        file["joint_offsets"] = np.array([joint.offset for joint in body.joints])

    @property
    def file(self) -> h5py.File:
        """The open file, for what is made from all frames together."""
        return self._file

    def write(
        self,
        span: Span,
        fit: SkeletonFit,
        cage_joints: Floats | None,
        markerless: SkeletonFit | None,
        beside: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        """Write the frames of a chunk.

        Args:
            span: which frames.
            fit: of those frames.
            cage_joints: (n, J, 3) the joints as the cage carried them, mm.
            markerless: what the skin alone says, where X-ray beads took part: they cannot judge a fit that they made.
            beside: more arrays with a row per frame, by name.
        """
        if "marker_names" not in self._file:
            self._file["marker_names"] = text_array(list(fit.marker_names))
        landmarks = self._body.landmarks(self._body.forward(fit.coordinates))
        if "landmark_names" not in self._file:
            self._file["landmark_names"] = text_array(list(landmarks[0]))
        values: dict[str, np.ndarray] = {
            "positions": fit.positions,
            "rotations": fit.rotations,
            "coordinates": fit.coordinates,
            "sigma": fit.sigma,
            "marker_residuals": fit.residuals,
            "marker_weights": fit.weights,
            "trust": fit.trust.astype(np.uint8),
            "reason": fit.reason.astype(np.uint8),
            "iterations": fit.iterations,
            "landmarks": landmarks[1],
        }
        if cage_joints is not None:
            values["cage_joints"] = cage_joints
        if markerless is not None:
            values |= {"markerless/positions": markerless.positions, "markerless/rotations": markerless.rotations}
        for name, rows in {**values, **(beside or {})}.items():
            if name not in self._file:
                self._file.create_dataset(name, (self._frames, *rows.shape[1:]), rows.dtype, track_times=False)
            self._file[name][span.first : span.stop] = rows

    def write_contacts(self, contacts: Mapping[str, Contacts]) -> None:
        """Write when each foot stands: frames, and begin and end of each stance finer than frames."""
        names = list(contacts)
        self._file["contacts/names"] = text_array(names)
        self._file["contacts/planted"] = np.stack([contacts[foot].states for foot in names], axis=1)
        for foot in names:
            self._file[f"contacts/spans_{foot}"] = np.asarray(contacts[foot].spans)

    def write_events(self, events: Sequence[FootEvent]) -> None:
        """Write heel strike, toe strike, heel off, toe off of all feet in the order of time."""
        group = self._file.create_group("events")
        group["foot"] = text_array([one.foot for one in events])
        group["kind"] = text_array([one.kind for one in events])
        group["time_s"] = np.array([one.time_s for one in events], np.float64)

    def write_constraints(self, found: Sequence[tuple[str, GeometricConstraint]]) -> None:
        """Write what parts do against the ground: a row for each, first and last frame both in it."""
        rows = [one for _, one in found]
        group = self._file.create_group("constraints")
        group["part"] = text_array([part for part, _ in found])
        group["kind"] = text_array([one.kind for one in rows])
        group["frames"] = np.array([(one.first, one.last) for one in rows], np.int64).reshape(-1, 2)
        group["place"] = np.array([one.place for one in rows], np.float64).reshape(-1, 3)
        group["axis"] = np.array([one.axis for one in rows], np.float64).reshape(-1, 3)
        group["spread_mm"] = np.array([one.spread_mm for one in rows], np.float64)
        group["confidence"] = np.array([one.confidence for one in rows], np.float64)


@contextmanager
def create_skeleton(
    path: Path,
    body: Skeleton,
    frames: int,
    *,
    rate_hz: float,
    parameters: Mapping[str, Any],
    scaling: Scaling | None,
    cage_names: tuple[str, ...],
    limb_names: tuple[str, ...] = (),
    limb_reasons: tuple[str, ...] = (),
) -> Iterator[SkeletonWriter]:
    """Yield a writer of ``skeleton.h5``."""
    with create_results(path, stage="skeleton", parameters=parameters) as file:
        file.attrs["body"] = body.name
        file.attrs["rate_hz"] = rate_hz
        if scaling is not None:
            group = file.create_group("scaling")
            group["factors"] = np.array([scaling.factors[name] for name in body.joint_names])
            group["factor_sd"] = np.array([scaling.factor_sd[name] for name in body.joint_names])
            group["marker_offsets"] = scaling.marker_set.offsets
            group["marker_offset_sd"] = scaling.offset_sd
            group["marker_names"] = text_array(list(scaling.marker_set.names))
            group["rms_mm"] = np.array(scaling.rms_mm)
        if limb_names:
            file["limb_names"] = text_array(list(limb_names))
            file["limb_reasons"] = text_array(list(limb_reasons))
        if cage_names:
            file["cage_joint_names"] = text_array(list(cage_names))
        yield SkeletonWriter(file, body, frames)
