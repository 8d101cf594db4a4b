"""Neurodata Without Borders (.nwb) with the ndx-pose extension: one series per body part.

Files are read with h5py by their declared neurodata types (ndx-pose's ``MultiCameraPoseEstimation`` and
``PoseEstimation``, or ``SpatialSeries`` in a ``Position``), so reading needs no extra package; writing goes through
pynwb: points in space as a ``MultiCameraPoseEstimation`` (ndx-pose 0.4), image points as a ``PoseEstimation``.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import written_by_library
from calibration.foundation.hdf5_files import create_hdf5, open_hdf5, words_of
from skeleton.motion_files.motions import MarkerSeries, millimetres_per
from skeleton.motion_files.optional import optional_package
from skeleton.motion_files.rates import rate_from_times

__all__ = ["NwbSession", "read_nwb", "write_nwb"]

_FRAME_NOTE = "world frame, vertical axis "


def _kind(node: Any) -> str:
    kind = node.attrs.get("neurodata_type", "")
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _groups(file: h5py.File, *kinds: str) -> list[h5py.Group]:
    found: list[h5py.Group] = []

    def look(_name: str, node: Any) -> None:
        if isinstance(node, h5py.Group) and _kind(node) in kinds:
            found.append(node)

    file.visititems(look)
    return found


def read_nwb(
    path: Path | str,
    *,
    individual: str | None = None,
    rate_hz: float | None = None,
    unit_mm: float | None = None,
    up: str = "",
) -> MarkerSeries:
    """Read the pose of one animal from an NWB file.

    Args:
        path: the file.
        individual: name of the pose group, where there are several; points in space go before image points.
        rate_hz: for files whose time stamps are not those of the camera.
        unit_mm: millimetres per unit, for 3D files whose stated unit is none (some say "pixels" for 3D points).
        up: the vertical axis, for files that do not say.
    """
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    with open_hdf5(source, "an NWB file") as file:
        groups = _groups(file, "MultiCameraPoseEstimation", "PoseEstimation") or _groups(file, "Position")
        groups = [group for group in groups if _series(group)] or groups
        in_space = [group for group in groups if _kind(group) == "MultiCameraPoseEstimation"]
        if individual is None and in_space:
            groups = in_space
        labels = [group.name.rsplit("/", 1)[-1] for group in groups]
        if not groups:
            raise InputError(f"{source}: holds no PoseEstimation (ndx-pose) and no Position")
        if individual is None and len(groups) > 1:
            raise InputError(f"{source}: holds several poses ({', '.join(labels)}); pass individual")
        if individual is not None and individual not in labels:
            raise InputError(f"{source}: no pose '{individual}'; the file has {', '.join(labels)}")
        group = groups[0] if individual is None else groups[labels.index(individual)]
        series = _series(group)
        if not series:
            raise InputError(f"{source}: pose '{group.name}' has no series of positions")
        names = _node_order(group, tuple(series), file)
        columns, confidence, units, times = [], [], set(), None
        for name in names:
            node = series[name]
            data = node["data"]
            unit = data.attrs.get("unit", "")
            units.add(unit.decode() if isinstance(unit, bytes) else str(unit))
            factor = float(data.attrs.get("conversion", 1.0))
            columns.append(np.asarray(data[:], dtype=np.float64) * factor)
            confidence.append(np.asarray(node["confidence"][:], dtype=np.float64) if "confidence" in node else None)
            times = times if times is not None else _times(node, len(data))
            note = node["reference_frame"][()] if "reference_frame" in node else b""
            note = note.decode() if isinstance(note, bytes) else str(note)
            if _FRAME_NOTE in note:
                up = note.split(_FRAME_NOTE, 1)[1][:1].strip("?")
    if len(units) != 1 or len({column.shape for column in columns}) != 1:
        raise InputError(f"{source}: body parts differ in unit or length ({', '.join(sorted(units))})")
    unit = units.pop()
    positions = np.stack(columns, axis=1)
    flat = positions.shape[-1] == 2
    if not flat:
        positions = positions * (millimetres_per(unit, str(source)) if unit_mm is None else unit_mm)
    elif unit.lower() not in ("px", "pixel", "pixels"):
        raise InputError(f"{source}: two coordinates in '{unit}'; wanted pixels, or three coordinates in a length")
    assert times is not None
    rate = rate_from_times(times, str(source)) if rate_hz is None else rate_hz
    scored = [score for score in confidence if score is not None]
    return MarkerSeries(
        names, positions, rate, unit="px" if flat else "mm", up="" if flat else up,
        confidence=np.stack(scored, axis=1) if len(scored) == len(names) else None,
        start_s=float(times[0]) if len(times) else 0.0,
    )  # fmt: skip


def _series(group: h5py.Group) -> dict[str, h5py.Group]:
    """Return the series of positions right in a group, by name."""
    return {name: node for name, node in group.items() if _kind(node) in ("PoseEstimationSeries", "SpatialSeries")}


def _node_order(group: h5py.Group, names: tuple[str, ...], file: h5py.File) -> tuple[str, ...]:
    """The skeleton's node order where it lists the series; HDF5 itself only keeps the alphabet."""
    for skeleton in _groups(file, "Skeleton"):
        if "nodes" in skeleton:
            nodes = words_of(skeleton["nodes"])
            if set(nodes) == set(names):
                return nodes
    return names


def _times(node: h5py.Group, count: int) -> Any:
    if "timestamps" in node:
        return np.asarray(node["timestamps"][:], dtype=np.float64)
    start = node["starting_time"]
    return float(start[()]) + np.arange(count) / float(start.attrs["rate"])


@dataclass(frozen=True, eq=False)
class NwbSession:
    """What an NWB file says beside the points.

    Attributes:
        start: of the recording, with time zone; None where not known (the file then says 1970-01-01 UTC).
        description: of the session.
        subject: of ``pynwb.file.Subject``: subject_id, species, sex, age, weight, description.
        people: of the file: experimenter, lab, institution.
        edges: pairs of points joined by a bone.
        rig: the cameras.
        videos: camera name to its video file or folder, as it shall stand in the file.
    """

    start: datetime.datetime | None = None
    description: str = "3D motion capture"
    subject: Mapping[str, str] = field(default_factory=dict)
    people: Mapping[str, str] = field(default_factory=dict)
    edges: tuple[tuple[str, str], ...] = ()
    rig: Rig | None = None
    videos: Mapping[str, str] = field(default_factory=dict)


def write_nwb(series: MarkerSeries, path: Path | str, *, session: NwbSession | None = None) -> None:
    """Write points into the processing module "behavior".

    Args:
        series: the points; names may not hold "/".
        path: the file, written atomically.
        session: what is known beside them.
    """
    pynwb, ndx_pose = optional_package("pynwb", "writing NWB"), optional_package("ndx_pose", "writing NWB")
    about = session or NwbSession()
    # The identifier is the file's name, not a random one: same input, same content.
    nwb = pynwb.NWBFile(
        session_description=about.description,
        identifier=Path(path).stem,
        session_start_time=about.start or datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
        **{key: [value] if key == "experimenter" else value for key, value in about.people.items()},
    )
    if about.subject:
        nwb.subject = pynwb.file.Subject(**dict(about.subject))
    pairs = [(series.names.index(a), series.names.index(b)) for a, b in about.edges]
    skeleton = ndx_pose.Skeleton(
        name="skeleton", nodes=list(series.names), edges=np.array(pairs, dtype=np.uint8).reshape(-1, 2),
        **({"subject": nwb.subject} if about.subject else {}),
    )  # fmt: skip
    module = nwb.create_processing_module(name="behavior", description="processed behavioural data")
    module.add(ndx_pose.Skeletons(skeletons=[skeleton]))
    seen = np.isfinite(series.positions).all(axis=-1)
    confidence: Floats = np.asarray(seen, dtype=np.float64)
    if series.confidence is not None:
        confidence = series.confidence
    parts = [
        ndx_pose.PoseEstimationSeries(
            name=name, description=f"position of {name}", data=series.positions[:, index],
            unit="pixels" if series.unit == "px" else "millimeters",
            reference_frame="image, centre of the top-left pixel is (0, 0)"
            if series.unit == "px"
            else f"{_FRAME_NOTE}{series.up or '?'}",
            rate=series.rate_hz, starting_time=series.start_s, confidence=confidence[:, index],
            confidence_definition="1 trusted, 0.5 doubtful, 0 lost or missing; of other makers their score",
        )
        for index, name in enumerate(series.names)
    ]  # fmt: skip
    shared = {
        "pose_estimation_series": parts, "description": about.description, "source_software": "vivarig",
        "skeleton": skeleton,
    }  # fmt: skip
    if series.unit == "px":
        module.add(ndx_pose.PoseEstimation(name="PoseEstimation", **shared))
    else:
        views = _views(nwb, ndx_pose, pynwb, about, series)
        module.add(ndx_pose.MultiCameraPoseEstimation(pose_estimations=views, **shared))
    with written_by_library(path) as temporary, create_hdf5(temporary, path) as file:
        with pynwb.NWBHDF5IO(file=file, mode="w") as io:
            io.write(nwb)


def _views(nwb: Any, ndx_pose: Any, pynwb: Any, about: NwbSession, series: MarkerSeries) -> list[Any]:
    """Add the cameras as devices and their videos as external files; return one view per camera that links them."""
    views = []
    for camera in about.rig or ():
        if isinstance(camera, LensCamera):
            model = "fisheye (OpenCV)" if isinstance(camera.lens, FisheyeLens) else "pinhole (OpenCV)"
            device = ndx_pose.CalibratedCamera(
                name=camera.name,
                description=f"{model}, {camera.size[0]}x{camera.size[1]} px; world in mm, x_camera = R x_world + t",
                intrinsic_matrix=camera.lens.intrinsics.astype(np.float32),
                rotation_matrix=camera.camera_from_world.rotation.astype(np.float32),
                translation_vector=camera.camera_from_world.translation.astype(np.float32),
                distortion_coefficients=camera.lens.distortion.astype(np.float32),
            )
        else:
            device = pynwb.device.Device(name=camera.name, description="camera given by a projection matrix (DLT)")
        nwb.add_device(device)
        video = None
        if camera.name in about.videos:
            video = pynwb.image.ImageSeries(
                name=f"video_{camera.name}", external_file=[about.videos[camera.name]], format="external",
                rate=series.rate_hz, num_samples=series.frames, starting_frame=[0], dimension=list(camera.size),
            )  # fmt: skip
            nwb.add_acquisition(video)
        views.append(ndx_pose.PoseEstimation(name=f"view_{camera.name}", device=device, source_video=video))
    return views
