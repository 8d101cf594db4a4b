"""truth.h5: what really happened in a synthetic recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Floats, Ints, Singles, measured
from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import create_results, open_results, read_parameters, text_array

__all__ = ["NamedPoints", "Truth", "load_truth", "save_truth"]

FILE = "truth.h5"
STAGE = "simulate"


@dataclass(frozen=True, eq=False)
class NamedPoints:
    """Named points over time: ``names`` (n) and ``positions`` (T, n, 3) mm."""

    names: tuple[str, ...]
    positions: Floats

    def __post_init__(self) -> None:
        if self.positions.ndim != 3 or self.positions.shape[1:] != (len(self.names), 3):
            raise InputError(f"named points: {len(self.names)} names for positions of shape {self.positions.shape}")
        measured(self.positions, "named points")

    @classmethod
    def none(cls, frames: int) -> NamedPoints:
        """No point at all."""
        return cls((), np.zeros((frames, 0, 3)))


@dataclass(frozen=True, eq=False)
class Truth:
    """What really happened, T frames.

    Attributes:
        rate_hz: frames per second.
        joints: joint centres of the skeleton.
        rotations: (T, J, 4) world from segment, wxyz.
        coordinates: (T, D) of the skeleton; empty where the motion is not one of a built-in skeleton.
        landmarks: the scored points (DESIGN.md: HumanEva's 15, or the rodent's list).
        vertices: (T, V, 3) skin, mm.
        faces: (F, 3) of the skin.
        markers: virtual markers on the skin.
        beads: implanted metal beads.
        contact_names: feet.
        contacts: (T, K) whether the foot is planted.
        cameras: per camera, numbers of the pictures: ``frames`` (n,) the time of each image of the video in
            recording frames, and for X-ray cameras the map of the intensifier.
        parameters: how the recording was made.
    """

    rate_hz: float
    joints: NamedPoints
    rotations: Floats
    coordinates: Floats
    landmarks: NamedPoints
    vertices: Singles
    faces: Ints
    markers: NamedPoints
    beads: NamedPoints
    contact_names: tuple[str, ...]
    contacts: Bools
    cameras: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.vertices)


def save_truth(path: Path | str, truth: Truth, *, vertex_step: float = 0.0) -> None:
    """Write ``truth`` to an HDF5 file.

    Args:
        vertex_step: the skin is rounded to multiples of it, mm (0 keeps float32); a power of two packs best.
    """
    parameters = {**truth.parameters, "rate_hz": truth.rate_hz}
    with create_results(path, stage=STAGE, parameters=parameters) as file:
        joints = _named(file, "joints", truth.joints)
        _packed(joints, "rotations", truth.rotations.astype(np.float32))
        joints["rotations"].attrs["order"] = "wxyz, world from segment"
        _packed(joints, "coordinates", truth.coordinates)
        _named(file, "landmarks", truth.landmarks)
        skin = file.create_group("skin")
        vertices = truth.vertices.astype(np.float32)
        if vertex_step > 0.0:
            vertices = (np.rint(vertices / vertex_step) * vertex_step).astype(np.float32)
        # One chunk holds some vertices over all frames: neighbours in time differ little and pack well.
        chunk = (len(vertices), min(512, vertices.shape[1]), 3)
        skin.create_dataset(
            "vertices", data=vertices, chunks=chunk, compression="gzip", compression_opts=9, shuffle=True
        )
        skin["vertices"].attrs["rounded_to_mm"] = vertex_step
        _packed(skin, "faces", truth.faces.astype(np.int32))
        _named(file, "markers", truth.markers)
        _named(file, "beads", truth.beads)
        contacts = file.create_group("contacts")
        contacts["names"] = text_array(list(truth.contact_names))
        _packed(contacts, "planted", truth.contacts)
        cameras = file.create_group("cameras", track_order=True)
        for name, numbers in truth.cameras.items():
            group = cameras.create_group(name, track_order=True)
            for key, value in numbers.items():
                _packed(group, key, np.asarray(value))


def load_truth(path: Path | str) -> Truth:
    """Read truth.h5, or that of a recording folder."""
    source = Path(path)
    if source.is_dir():
        source = source / FILE
    if not source.is_file():
        raise InputError(f"{source}: no such file; only sample data and `vivarig simulate` know the truth")
    with open_results(source, stage=STAGE) as file, reading(source, "the truth of a recording"):
        parameters = read_parameters(file)
        truth = Truth(
            rate_hz=float(parameters.pop("rate_hz")),
            joints=_points(file["joints"]),
            rotations=file["joints/rotations"][()].astype(np.float64),
            coordinates=file["joints/coordinates"][()],
            landmarks=_points(file["landmarks"]),
            vertices=file["skin/vertices"][()],
            faces=file["skin/faces"][()].astype(np.int64),
            markers=_points(file["markers"]),
            beads=_points(file["beads"]),
            contact_names=_names(file["contacts/names"]),
            contacts=file["contacts/planted"][()].astype(np.bool_),
            cameras={name: {key: group[key][()] for key in group} for name, group in file["cameras"].items()},
            parameters=parameters,
        )
        for name in ("rotations", "coordinates", "vertices"):
            measured(getattr(truth, name), f"truth: {name}")
        for table in truth.cameras.values():
            for name, value in table.items():
                measured(np.asarray(value, float), f"truth: {name}")
        return truth


def _named(file: h5py.File, key: str, points: NamedPoints) -> h5py.Group:
    group = file.create_group(key)
    group["names"] = text_array(list(points.names))
    _packed(group, "positions", points.positions)
    return group


def _packed(group: h5py.Group, key: str, array: NDArray[Any]) -> None:
    if array.size > 1000:
        group.create_dataset(key, data=array, compression="gzip", compression_opts=9, shuffle=True)
    else:
        group[key] = array


def _points(group: h5py.Group) -> NamedPoints:
    return NamedPoints(_names(group["names"]), group["positions"][()])


def _names(dataset: h5py.Dataset) -> tuple[str, ...]:
    return words_of(dataset)
