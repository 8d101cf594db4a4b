"""Motion files: one module per format, one table of readers and writers.

    motion = read_motion("walk.trc", up="y")
    write_motion(motion, "walk.c3d")

A reader gets only the options it has a use for; an option that a format needs and does not store (the unit of a BVH
file, the rate of an AMC file) is asked for in the error, never guessed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text
from calibration.foundation.hdf5_files import open_hdf5
from skeleton.motion_files.acclaim import read_acclaim, write_acclaim
from skeleton.motion_files.anipose import is_anipose, read_anipose
from skeleton.motion_files.bvh import read_bvh, write_bvh
from skeleton.motion_files.c3d import C3dRecording, read_c3d, read_c3d_markers, write_c3d
from skeleton.motion_files.deeplabcut import read_deeplabcut
from skeleton.motion_files.motions import CoordinateSeries, JointMotion, MarkerSeries, Motion
from skeleton.motion_files.movement_netcdf import read_movement, write_movement
from skeleton.motion_files.nwb import read_nwb, write_nwb
from skeleton.motion_files.sleap import read_sleap, write_sleap
from skeleton.motion_files.storage import read_storage, write_storage
from skeleton.motion_files.table import read_csv, write_csv
from skeleton.motion_files.trc import read_trc, write_trc

__all__ = [
    "READERS", "SUFFIXES", "WRITERS", "C3dRecording", "CoordinateSeries", "JointMotion", "MarkerSeries",
    "Motion",
    "format_of", "read_acclaim", "read_anipose", "read_bvh", "read_c3d", "read_csv", "read_deeplabcut",
    "read_motion",
    "read_movement", "read_nwb", "read_sleap", "read_storage", "read_trc", "write_acclaim", "write_bvh",
    "write_c3d",
    "write_csv", "write_motion", "write_movement", "write_nwb", "write_sleap", "write_storage", "write_trc",
]  # fmt: skip

#: Format name -> reader(path, **options).
READERS: dict[str, Callable[..., Motion]] = {
    "bvh": read_bvh,
    "amc": read_acclaim,
    "c3d": read_c3d_markers,
    "trc": read_trc,
    "mot": read_storage,
    "csv": read_csv,
    "deeplabcut": read_deeplabcut,
    "sleap": read_sleap,
    "anipose": read_anipose,
    "nwb": read_nwb,
    "netcdf": read_movement,
}

#: Format name -> (what it writes, writer(motion, path, **options)).
WRITERS: dict[str, tuple[type, Callable[..., None]]] = {
    "bvh": (JointMotion, write_bvh),
    "amc": (JointMotion, write_acclaim),
    "c3d": (MarkerSeries, write_c3d),
    "trc": (MarkerSeries, write_trc),
    "mot": (CoordinateSeries, write_storage),
    "csv": (MarkerSeries, write_csv),
    "nwb": (MarkerSeries, write_nwb),
    "netcdf": (MarkerSeries, write_movement),
    "sleap": (MarkerSeries, write_sleap),
}

_LARGEST_MB = 4000

#: File name suffix -> format name; .h5 and .csv are told apart by their content when reading.
SUFFIXES = {
    ".bvh": "bvh", ".amc": "amc", ".c3d": "c3d", ".trc": "trc", ".mot": "mot", ".sto": "mot", ".csv": "csv",
    ".nwb": "nwb", ".nc": "netcdf", ".h5": "sleap", ".hdf5": "sleap",
}  # fmt: skip


def format_of(path: Path | str) -> str:
    """Return the format name of an existing file, by suffix and, for .csv and .h5, by content."""
    source = Path(path)
    suffix = source.suffix.lower()
    if suffix == ".asf":
        raise InputError(f"{source}: is a skeleton; give the .amc motion that belongs to it")
    if suffix not in SUFFIXES:
        raise InputError(f"{source}: unknown motion format '{suffix}'; known are {', '.join(SUFFIXES)}")
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    if suffix == ".csv":
        lines = read_text(source).splitlines()[:4]
        firsts = {line.split(",", 1)[0].strip().lower() for line in lines}
        if {"bodyparts", "coords"} <= firsts:
            return "deeplabcut"
        return "anipose" if lines and is_anipose(lines[0].split(",")) else "csv"
    if suffix in (".h5", ".hdf5"):
        with open_hdf5(source, "an HDF5 file") as file:
            return "sleap" if "tracks" in file else "deeplabcut"
    return SUFFIXES[suffix]


def read_motion(path: Path | str, format: str | None = None, **options: Any) -> Motion:
    """Read a motion file.

    Args:
        path: the file.
        format: a key of `READERS`; by default told from the file (`format_of`).
        options: ``rate_hz``, ``unit_mm``, ``up``, ``individual`` ... as far as the format's reader takes
            them; None
            counts as not given.
    """
    name = format_of(path) if format is None else format
    if name not in READERS:
        raise InputError(f"unknown motion format '{name}'; {nearest(name, READERS)}")
    reader = READERS[name]
    takes = inspect.signature(reader).parameters
    given = {key: value for key, value in options.items() if value is not None and key in takes}
    needs = [
        key
        for key, parameter in takes.items()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty and key not in given
    ]
    if needs:
        hint = {"rate_hz": "frames per second", "unit_mm": "millimetres per file unit"}
        raise InputError(
            f"{path}: a {name} file does not hold "
            f"{' and '.join(f'{key} ({hint.get(key, key)})' for key in needs)}; give it"
        )
    require_file(path, most_mb=_LARGEST_MB)
    with reading(path, f"a {name} file"), np.errstate(over="ignore", invalid="ignore"):
        return reader(path, **given)


def write_motion(motion: Motion, path: Path | str, format: str | None = None, **options: Any) -> None:
    """Write a motion file; a joint motion becomes its joint centres in a format of points.

    Args:
        motion: what to write.
        path: the file.
        format: a key of `WRITERS`; by default by suffix.
        options: what the format's writer takes; None counts as not given.
    """
    name = SUFFIXES.get(Path(path).suffix.lower(), "") if format is None else format
    if name not in WRITERS:
        raise InputError(f"{path}: cannot write this format; can write {', '.join(WRITERS)}")
    kind, writer = WRITERS[name]
    if kind is MarkerSeries and isinstance(motion, JointMotion):
        motion = motion.as_markers()
    if not isinstance(motion, kind):
        held = {MarkerSeries: "points", JointMotion: "a joint tree", CoordinateSeries: "named coordinates"}
        raise InputError(
            f"{path}: {name} holds {held[kind]}, this motion is {held[type(motion)]}; fit a skeleton first"
        )
    takes = inspect.signature(writer).parameters
    writer(motion, path, **{key: value for key, value in options.items() if value is not None and key in takes})
