"""XMALab projects (.xma): a zip archive of project.xml, pictures of grid and cube, and the points marked in its trials.

The films of a trial are not in the archive: it names them by the paths they had on the machine that saved it.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

import numpy as np

from calibration.foundation.arrays import HUGE, Bools, Floats
from calibration.foundation.damaged_files import reading, require_file
from calibration.foundation.errors import InputError
from calibration.foundation.names import checked_name

__all__ = ["XmalabCamera", "XmalabProject", "XmalabTrial", "read_xmalab_project"]

_LARGEST_MB = 2000
_NOT_A_LETTER = re.compile(r"[^0-9A-Za-z.+-]+")


@dataclass(frozen=True)
class XmalabCamera:
    """One camera: its kind, and the pictures that calibrate it as (file ending, content)."""

    name: str
    is_light: bool
    grid: tuple[str, bytes] | None
    cube: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, eq=False)
class XmalabTrial:
    """One trial.

    Attributes:
        name: of the trial.
        rate_hz: frames per second, None where it names none.
        films: per camera the paths of its film, or of its images, as they were where the project was saved.
        markers: names of the markers.
        pixels: (T, C, B, 2) of the images as brought, counted from 0, y down; NaN where not marked.
        bones: rigid bodies with the names of their markers.
    """

    name: str
    rate_hz: float | None
    films: dict[str, tuple[str, ...]]
    markers: tuple[str, ...]
    pixels: Floats
    bones: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class XmalabProject:
    """What a project holds; ``cube`` (n, 3) in the file's own unit, None where a checkerboard calibrates it."""

    path: Path
    cameras: tuple[XmalabCamera, ...]
    cube: Floats | None
    beads_are_white: bool
    trials: tuple[XmalabTrial, ...]


def read_xmalab_project(path: Path | str) -> XmalabProject:
    """Read a project; what its program writes and we have no use for (its own solution) is passed over."""
    source = require_file(path, most_mb=_LARGEST_MB)
    with reading(source, "an XMALab project"), zipfile.ZipFile(source) as archive:
        content = _Archive(source, archive)
        root = content.description()
        if root.get("FlipImages", "0") not in ("", "0"):
            raise InputError(f"{source}: its images are flipped (FlipImages); save the project without that setting")
        cameras = tuple(_camera(content, one) for one in root.iter("Camera"))
        if not cameras:
            raise InputError(f"{source}: no camera in the project")
        if len({camera.name for camera in cameras}) < len(cameras):
            raise InputError(f"{source}: two cameras have one name")
        cube, white = _cube(content, root.find("CalibrationObject"))
        trials = tuple(
            _trial(content, one, [camera.name for camera in cameras])
            for one in root.iter("Trial")
            if one.get("Default", "0") in ("", "0") and one.get("Name") != "Default"
        )
        return XmalabProject(source, cameras, cube, white, trials)


class _Archive:
    """The files of the archive, by the paths that project.xml writes on any system."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive
        if sum(entry.file_size for entry in archive.infolist()) > 1e6 * _LARGEST_MB:
            raise InputError(f"{path}: would unpack to more than {_LARGEST_MB} MB")
        self._entries = {_plain(entry.filename): entry for entry in archive.infolist()}

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None where there is none of that name."""
        entry = self._entries.get(_plain(name))
        return None if entry is None else self._archive.read(entry)

    def lines(self, name: str) -> Iterator[str]:
        """Yield the lines of a text, none where there is no such file."""
        for line in (self.read(name) or b"").decode("utf-8", "replace").splitlines():
            if line.strip():
                yield line

    def table(self, name: str) -> Floats:
        """Return the numbers of a text, one row per line; what is no number is NaN."""
        rows = [[_number(cell) for cell in line.split(",")] for line in self.lines(name)]
        if len({len(row) for row in rows}) > 1:
            raise InputError(f"{self.path}: {name}: its rows are of different lengths")
        return np.array(rows).reshape(len(rows), -1)

    def description(self) -> ElementTree.Element:
        """Return project.xml."""
        text = self.read("project.xml")
        if text is None:
            raise InputError(f"{self.path}: no project.xml in it: not an XMALab project")
        if b"<!" in text.replace(b"<!--", b""):
            raise InputError(f"{self.path}: project.xml declares entities, which XMALab does not")
        return ElementTree.fromstring(text)


def _plain(name: str) -> str:
    """Return a path within the archive without its system's separators, and without doubled ones."""
    return "/".join(part for part in name.replace("\\", "/").split("/") if part)


def _number(cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        return float("nan")
    return value if abs(value) < HUGE else float("nan")


def _camera(content: _Archive, tag: ElementTree.Element) -> XmalabCamera:
    name = checked_name(tag.get("Name", ""), f"{content.path}: a camera")
    if tag.find("CalibrationSequence") is not None:
        raise InputError(
            f"{content.path}: camera '{name}' is calibrated from a film of the cube; choose pictures of it in XMALab"
        )
    grid = tag.find("UndistortionGrid")
    cube = [_picture(content, one, f"a cube picture of '{name}'") for one in tag.iter("CalibrationImage")]
    return XmalabCamera(
        name,
        tag.get("isLightCamera", "0") not in ("", "0"),
        None if grid is None else _picture(content, grid, f"the grid of '{name}'"),
        tuple(cube),
    )


def _picture(content: _Archive, tag: ElementTree.Element, what: str) -> tuple[str, bytes]:
    name = tag.get("Filename", "")
    data = content.read(name)
    if data is None:
        raise InputError(f"{content.path}: {what} ('{name}') is not in the archive")
    return PurePosixPath(_plain(name)).suffix.lower(), data


def _cube(content: _Archive, tag: ElementTree.Element | None) -> tuple[Floats | None, bool]:
    """Return the beads of the calibration object, None for a checkerboard, and whether they are white."""
    if tag is None or tag.get("isPLanar", "0") not in ("", "0"):
        return None, False
    name = tag.get("FrameSpecifications", "")
    header, *lines = list(content.lines(name)) or [""]
    rows = [[_number(cell) for cell in line.replace(",", " ").split()[:3]] for line in lines]
    points = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
    if points.shape[1:] != (3,) or not np.isfinite(points).all():
        raise InputError(f"{content.path}: {name}: wanted a header and x , y , z of each bead of the cube")
    return points, header.strip().lower() == "white"


def _trial(content: _Archive, tag: ElementTree.Element, cameras: list[str]) -> XmalabTrial:
    name = checked_name(tag.get("Name", ""), f"{content.path}: a trial")
    films = {camera: tuple(content.lines(f"{name}/{camera}_filenames_absolute.txt")) for camera in cameras}
    marked = [_marked(content, one, len(cameras)) for one in tag.findall("Marker")]
    names = _names([one.get("Description", "") for one in tag.findall("Marker")])
    length = max((len(one) for one in marked), default=0)
    pixels = np.full((length, len(cameras), len(names), 2), np.nan)
    for b, one in enumerate(marked):
        pixels[: len(one), :, b] = one
    rate = _number(tag.get("recordingSpeed", ""))
    return XmalabTrial(
        name, rate if rate > 0 else None, films, names, pixels, _bones(content, f"{name}/data/RigidBodies.txt", names)
    )


def _marked(content: _Archive, tag: ElementTree.Element, cameras: int) -> Floats:
    """Return (T, C, 2) pixels of one marker; those that its program only lost, deleted or never had are NaN."""
    places, status = (content.table(tag.get(key, "")) for key in ("FilenamePoints2D", "FilenameStatus2D"))
    if places.shape[1:] != (2 * cameras,) or status.shape != (len(places), cameras):
        if not places.size:
            return np.empty((0, cameras, 2))
        raise InputError(
            f"{content.path}: {tag.get('FilenamePoints2D')}: {places.shape[1]} columns for {cameras} cameras"
        )
    seen: Bools = status > 0
    return np.asarray(np.where(seen[..., None], places.reshape(len(places), cameras, 2), np.nan))


def _names(described: list[str]) -> tuple[str, ...]:
    """Return names that tables can hold, each once."""
    names: list[str] = []
    for number, text in enumerate(described, start=1):
        name = _NOT_A_LETTER.sub("_", text).strip("_.")[:60] or f"marker{number:03d}"
        names.append(name if name not in names else f"{name}_{number:03d}")
    return tuple(names)


def _bones(content: _Archive, name: str, markers: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the rigid bodies of ``NAME[1 , 2 , 3]`` lines with their markers, counted from 1."""
    bones: dict[str, tuple[str, ...]] = {}
    for line in content.lines(name):
        title, _, numbers = line.strip().rstrip("]").partition("[")
        beads = [int(word) - 1 for word in numbers.replace(",", " ").split() if word.isdigit()]
        held = tuple(markers[bead] for bead in beads if 0 <= bead < len(markers))
        label = _NOT_A_LETTER.sub("_", title).strip("_.")[:60]
        if held and label:
            bones[label] = held
    return bones
