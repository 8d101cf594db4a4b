"""What lies in a folder that a laboratory filmed: which file is whose video, plate or mask, and which the calibration.

Files are told by their names and content; what cannot be told is left to the user, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibration.boards.session import VIDEOS
from calibration.foundation.errors import VivarigError
from calibration.foundation.names import natural_key
from calibration.rig_formats import RigFormat, recognise
from capture.recordings.video import IMAGE_SUFFIXES, image_files

__all__ = ["Survey", "camera_of", "survey_folder"]

_DEPTH = 3
_RIG_SUFFIXES = (".toml", ".yml", ".yaml", ".xml", ".mat", ".txt", ".csv", ".cal")
_NOT_RIGS = ("recording.toml", "board.toml", "config.toml", "charuco.toml", "points.toml", "subjects.toml")
_BOARDS = re.compile(r"calib|board|charuco|checker|chess|intrinsic|extrinsic|wand|floor", re.IGNORECASE)
_PLATES = re.compile(r"background|empty|plate|(^|[^a-z])bg([^a-z]|$)", re.IGNORECASE)
_MASKS = re.compile(r"mask|silhouette|segment", re.IGNORECASE)
_POINTS = (".h5", ".csv", ".slp")


@dataclass(frozen=True)
class Survey:
    """What was found, each list in natural order.

    Attributes:
        folder: where.
        footage: videos, or folders of images, of the subject.
        plates: pictures or clips of the empty scene.
        masks: folders or videos of silhouettes.
        boards: videos or folders of calibration boards.
        rigs: calibration files, with their formats.
        points: files that may hold 2D points.
        projects: XMALab projects.
    """

    folder: Path
    footage: tuple[Path, ...]
    plates: tuple[Path, ...]
    masks: tuple[Path, ...]
    boards: tuple[Path, ...]
    rigs: tuple[tuple[Path, RigFormat], ...]
    points: tuple[Path, ...]
    projects: tuple[Path, ...] = ()


def survey_folder(folder: Path) -> Survey:
    """Look at a folder, three levels deep; ``results`` and hidden files are passed over."""
    footage: list[Path] = []
    plates: list[Path] = []
    masks: list[Path] = []
    boards: list[Path] = []
    points: list[Path] = []
    projects: list[Path] = []
    for path in _media(folder):
        words = path.relative_to(folder).as_posix()
        if _BOARDS.search(words):
            boards.append(path)
        elif _PLATES.search(words):
            plates.append(path)
        elif _MASKS.search(words):
            masks.append(path)
        else:
            footage.append(path)
    rigs: list[tuple[Path, RigFormat]] = []
    for path in _files(folder, _DEPTH):
        kind = _rig_format(path)
        if kind is not None:
            rigs.append((path, kind))
        elif path.suffix.lower() in _POINTS:
            points.append(path)
        elif path.suffix.lower() == ".xma":
            projects.append(path)
    # One file per camera (MayaCam, OpenCV): the folder is the calibration.
    for place in sorted({path.parent for path, _ in rigs}):
        whole = _rig_format(place)
        if whole is not None and sum(path.parent == place for path, _ in rigs) > 1:
            rigs = [*(entry for entry in rigs if entry[0].parent != place), (place, whole)]
    if not rigs:
        rigs = [(place, kind) for place in _folders(folder, _DEPTH - 1) if (kind := _rig_format(place)) is not None]
    # a still of the scene is a plate or nothing; footage is moving pictures
    moving = [path for path in footage if path.is_dir() or path.suffix.lower() in VIDEOS]
    lists = (_sorted(moving), _sorted(plates), _sorted(masks), _sorted(boards), tuple(rigs), _sorted(points))
    return Survey(folder, *lists, _sorted(projects))


def _rig_format(path: Path) -> RigFormat | None:
    if path.is_file() and (path.suffix.lower() not in _RIG_SUFFIXES or path.name in _NOT_RIGS):
        return None
    try:
        return recognise(path)
    except (VivarigError, OSError, ValueError):
        return None  # damaged, or nothing that we know: not a calibration


def _sorted(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(paths, key=lambda path: natural_key(path.name)))


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    yield folder
    if depth > 0:
        for place in sorted(folder.iterdir()):
            if place.is_dir() and place.name != "results" and not place.name.startswith("."):
                yield from _folders(place, depth - 1)


def _files(folder: Path, depth: int) -> Iterator[Path]:
    for place in _folders(folder, depth):
        yield from sorted(path for path in place.iterdir() if path.is_file() and not path.name.startswith("."))


def _media(folder: Path) -> Iterator[Path]:
    """Yield videos, single pictures, and folders that hold a sequence of images instead of those images."""
    for place in _folders(folder, _DEPTH):
        images = image_files(place)
        sequence = len(images) > 2 and place != folder and not any(_PLATES.search(image.stem) for image in images)
        if sequence:
            yield place
        for path in sorted(place.iterdir()):
            suffix = path.suffix.lower()
            if path.is_file() and (suffix in VIDEOS or (suffix in IMAGE_SUFFIXES and not sequence)):
                yield path


def camera_of(path: Path, folder: Path, names: Sequence[str]) -> str | None:
    """Return which camera a file belongs to: the one name that its file's or folders' names hold as a word."""
    parts = [path.stem if path.is_file() else path.name, *(p.name for p in path.relative_to(folder).parents if p.name)]
    for part in parts:
        exact = [name for name in names if part.lower() == name.lower()]
        if exact:
            return exact[0]
        words = {word for word in re.split(r"[^0-9a-z]+", part.lower()) if word}
        within = [name for name in names if name.lower() in words or _spelt(name) <= words]
        if len(within) == 1:
            return within[0]
    return None


def _spelt(name: str) -> set[str]:
    """Return the words of a camera's name."""
    return {word for word in re.split(r"[^0-9a-z]+", name.lower()) if word} or {"\0"}
