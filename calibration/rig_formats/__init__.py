"""Rig files of other programs: recognised from content, read, and written with what is lost said."""

from __future__ import annotations

from pathlib import Path

from calibration.cameras.rig import Rig
from calibration.foundation.errors import InputError, nearest
from calibration.rig_formats.matlab_formats import DANNCE
from calibration.rig_formats.opencv_formats import EASYMOCAP, JARVIS, OPENCV
from calibration.rig_formats.qualisys import QUALISYS
from calibration.rig_formats.rig_format import ReadOptions, RigFormat, losses, reduced
from calibration.rig_formats.text_formats import DLT, HUMANEVA, MAYACAM1, MAYACAM2
from calibration.rig_formats.toml_formats import ANIPOSE, CALISCOPE, POSE2SIM

__all__ = ["FORMATS", "ReadOptions", "RigFormat", "losses", "read_rig", "recognise", "rig_format", "write_rig"]

#: Every format by name; recognition tries them in this order, the more particular first.
FORMATS: dict[str, RigFormat] = {
    f.name: f
    for f in (
        CALISCOPE,
        POSE2SIM,
        ANIPOSE,
        EASYMOCAP,
        JARVIS,
        OPENCV,
        DANNCE,
        QUALISYS,
        MAYACAM2,
        MAYACAM1,
        HUMANEVA,
        DLT,
    )
}


def rig_format(name: str) -> RigFormat:
    """Return a format by name."""
    if name not in FORMATS:
        raise InputError(f"unknown rig format '{name}'; {nearest(name, FORMATS)}")
    return FORMATS[name]


def recognise(path: Path | str) -> RigFormat | None:
    """Return the format that a file's or folder's content speaks of, None where none does."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    for candidate in FORMATS.values():
        if candidate.recognise(place):
            return candidate
    return None


def read_rig(path: Path | str, format_name: str | None = None, options: ReadOptions | None = None) -> Rig:
    """Read a rig in any format, recognised from content unless named."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place}: no such file or folder")
    chosen = rig_format(format_name) if format_name else recognise(place)
    if chosen is None:
        raise InputError(f"{place}: not recognised as a rig; name its format with --from ({', '.join(FORMATS)})")
    return chosen.read(place, options or ReadOptions())


def write_rig(rig: Rig, path: Path | str, format_name: str, *, lossy: bool = False) -> list[str]:
    """Write a rig and return what was lost; anything lost is refused unless ``lossy``."""
    target = rig_format(format_name)
    lost = losses(rig, target)
    if lost and not lossy:
        raise InputError(f"{target.title} cannot hold {'; '.join(lost)}; write it without with --lossy")
    target.write(reduced(rig, target.holds), Path(path))
    return lost
