"""X-ray results on disk: distortion maps, bead tracks, bead motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.damaged_files import reading
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import create_results, open_results, text_array
from calibration.xray.undistortion import AnyMap, DistortionMap, MovingMap
from tracking.beads.filtering import Smoothed
from tracking.beads.session import BeadSession
from tracking.beads.tracks import BeadTracks

__all__ = ["load_maps", "load_tracks", "save_beads", "save_maps", "save_tracks"]

MAPS_STAGE = "xray undistort"
TRACKS_STAGE = "xray track"
BEADS_STAGE = "beads"


def save_maps(path: Path | str, maps: Mapping[str, AnyMap], parameters: Mapping[str, Any]) -> None:
    """Write distortion maps, px: one group per camera, or per camera and frame (``name@frame``) of a moving C-arm."""
    with create_results(path, stage=MAPS_STAGE, parameters=parameters, units="px") as file:
        for name, one in maps.items():
            if isinstance(one, MovingMap):
                for frame, still in zip(one.frames, one.maps, strict=True):
                    _save_map(file.create_group(f"{name}@{frame}"), still)
            else:
                _save_map(file.create_group(name), one)


def _save_map(group: h5py.Group, one: DistortionMap) -> None:
    group.attrs["size"] = one.size
    group.attrs["step"] = one.step
    for key, value in (("to_ideal", one.to_ideal), ("to_raw", one.to_raw), ("known", one.known)):
        group.create_dataset(key, data=value, compression="gzip", shuffle=True)


def load_maps(path: Path | str) -> dict[str, AnyMap]:
    """Read distortion maps; none where there is no file (images without an intensifier need none)."""
    if not Path(path).is_file():
        return {}
    maps: dict[str, AnyMap] = {}
    moving: dict[str, dict[int, DistortionMap]] = {}
    with open_results(path, stage=MAPS_STAGE) as file, reading(path, "distortion maps"):
        for label in file:
            group = file[label]
            one = DistortionMap(
                (int(group.attrs["size"][0]), int(group.attrs["size"][1])),
                float(group.attrs["step"]),
                np.asarray(group["to_ideal"][:]),
                np.asarray(group["to_raw"][:]),
                np.asarray(group["known"][:]),
            )
            name, at, frame = label.rpartition("@")
            if at:
                moving.setdefault(name, {})[int(frame)] = one
            else:
                maps[label] = one
    for name, stills in moving.items():
        frames = tuple(sorted(stills))
        maps[name] = MovingMap(frames, tuple(stills[frame] for frame in frames))
    return maps


def save_tracks(path: Path | str, tracks: BeadTracks, parameters: Mapping[str, Any]) -> None:
    """Write bead tracks: pixels (T, C, B, 2), covariance, status."""
    with create_results(path, stage=TRACKS_STAGE, parameters=parameters, units="px") as file:
        file["names"] = text_array(list(tracks.names))
        file["cameras"] = text_array(list(tracks.cameras))
        for key in ("pixels", "covariance", "status", "sigma", "contrast"):
            file[key] = getattr(tracks, key)
        file["status"].attrs["codes"] = "0 lost, 1 tracked, 2 overlapping, 3 given by the user"


def load_tracks(path: Path | str) -> BeadTracks:
    """Read bead tracks."""
    with open_results(path, stage=TRACKS_STAGE) as file, reading(path, "bead tracks"):
        return BeadTracks(
            words_of(file["names"]),
            words_of(file["cameras"]),
            *(np.asarray(file[key][:]) for key in ("pixels", "covariance", "status", "sigma", "contrast")),
        )


def save_beads(
    path: Path | str,
    session: BeadSession,
    smoothed: Smoothed,
    rate_hz: float,
    parameters: Mapping[str, Any],
    *,
    bones: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write beads.h5 (see DESIGN.md): positions as triangulated, and beside them filtered; bones as rigid bodies.

    ``bones`` are those that the user named, with their beads: ``bead_bones`` tells the skeleton which is where.
    """
    motion = session.motion
    owners = {bead: bone for bone, beads in (bones or {}).items() for bead in beads}
    with create_results(path, stage=BEADS_STAGE, parameters=parameters) as file:
        file.attrs["rate_hz"] = rate_hz
        file["names"] = text_array(list(motion.names))
        file["bead_bones"] = text_array([owners.get(name, "") for name in motion.names])
        file["cameras"] = text_array(list(motion.cameras))
        file["positions"] = motion.positions
        file["covariance"] = motion.covariance
        file["pixels"] = motion.pixels
        file["residual_px"] = motion.residual_px
        file["views"] = motion.views
        file["bridged"] = motion.bridged
        file["filtered"] = smoothed.positions
        file["filtered"].attrs["method"] = smoothed.method
        file["cutoff_hz"] = smoothed.cutoff_hz
        rigid = file.create_group("bones")
        for bone in session.bones:
            group = rigid.create_group(bone.name)
            group["beads"] = text_array([motion.names[b] for b in bone.beads])
            group["shape"] = bone.shape
            group["rotation"] = bone.pose.rotation
            group["translation"] = bone.pose.translation
            group["residual_mm"] = bone.residual_mm
            group["scale"] = bone.scale
