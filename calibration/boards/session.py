"""Calibration sessions on disk: which footage belongs to which camera, and which board was shown.

Recognised as they are: our own layout, Anipose projects, sleap-anipose sessions, Caliscope projects and a flat
folder of numbered stills. Nothing is opened here but small text files.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.boards.board import Board, boards_from_table, load_boards
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text

__all__ = ["BoardFootage", "Session", "numbered_images", "open_session"]

VIDEOS = {".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv"}
IMAGES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm"}
BOARD_WORDS = ("calib", "board", "checker", "charuco", "chess", "april")
FLOOR = "floor"


@dataclass(frozen=True)
class BoardFootage:
    """What one camera recorded of the boards: a video, or images with their frame numbers."""

    name: str
    video: Path | None = None
    images: tuple[tuple[int, Path], ...] = ()


@dataclass(frozen=True)
class Session:
    """A calibration session.

    Attributes:
        folder: where it lies.
        layout: which program's habits it follows: vivarig, anipose, sleap-anipose or caliscope.
        boards: the boards that were shown.
        board_file: where they are described.
        footage: one per camera, in order of name (numbers by value).
        floor: footage of a board lying on the floor, where there is any; camera names as in ``footage``.
        lenses: pictures for the lenses alone, not taken together, where the project keeps them apart.
        lens_boards: the boards in these, if others.
        rest_frame: frame in which the board lies on the floor by the project's own word.
        scene_file: where the surveyed points are that the project's poses come from, if not from a board.
    """

    folder: Path
    layout: str
    boards: tuple[Board, ...]
    board_file: Path
    footage: tuple[BoardFootage, ...]
    floor: tuple[BoardFootage, ...] = ()
    lenses: tuple[BoardFootage, ...] = ()
    lens_boards: tuple[Board, ...] = ()
    rest_frame: int | None = None
    scene_file: Path | None = None


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key of a name: numbers by value, before letters."""
    return [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.split(r"(\d+)", name) if p]


def numbered_images(files: Sequence[Path]) -> tuple[tuple[int, Path], ...]:
    """Number images by the last number in their names if that tells them apart, else by their order."""
    ordered = sorted(files, key=lambda f: natural(f.name))
    found = [re.findall(r"\d+", f.stem) for f in ordered]
    numbers = [int(n[-1]) for n in found if n]
    if len(set(numbers)) == len(ordered):
        return tuple(sorted(zip(numbers, ordered, strict=True)))
    return tuple(enumerate(ordered))


def open_session(folder: Path | str, board_file: Path | str | None = None) -> Session:
    """Recognise a session folder; ``board_file`` names the board's description if it lies elsewhere."""
    place = Path(folder)
    if not place.is_dir():
        raise InputError(f"{place}: no such session folder")
    described = None if board_file is None else Path(board_file)
    # A folder without a board's description may be the root of a project; else it is taken for a session of ours.
    for recognise in (_caliscope, _pose2sim, _anipose, _sleap_anipose, _own_described, _within, _own):
        session = recognise(place, described)
        if session is not None:
            return session
    raise InputError(
        f"{place}: no footage found; wanted one video per camera (front.mp4, side.mp4, ...) or one folder of images "
        "per camera, with board.toml beside them"
    )


def _within(place: Path, described: Path | None) -> Session | None:
    """Find the one session below the root of a project; several are named."""
    found: list[Session] = []
    for folder in sorted((f for f in place.rglob("*") if f.is_dir() and len(f.relative_to(place).parts) <= 3), key=str):
        if "results" in folder.parts or not any(word in folder.name.lower() for word in BOARD_WORDS):
            continue
        # An Anipose session is the folder that holds the calibration videos.
        for candidate in (folder.parent, folder):
            session = (_anipose if candidate == folder.parent else _own_described)(candidate, described)
            if session is not None and all(one.footage != session.footage for one in found):
                found.append(session)
                break
    if len(found) > 1:
        names = ", ".join(str(one.folder) for one in found[:5])
        raise InputError(f"{place}: holds {len(found)} calibration sessions ({names}); give one of them")
    return found[0] if found else None


def _own_described(place: Path, described: Path | None) -> Session | None:
    """Our own layout, only where a board is described: any folder of videos looks like it."""
    return _own(place, described) if described is not None or (place / "board.toml").is_file() else None


def _pose2sim(place: Path, described: Path | None) -> Session | None:
    """Pose2Sim: Config.toml, calibration/intrinsics/int_CAM_img and calibration/extrinsics/ext_CAM_img."""
    config = place / "Config.toml"
    if not config.is_file():
        return None
    asked = _toml(config).get("calibration", {}).get("calculate", {})
    root = next((f for f in _folders(place) if f.name.lower().startswith("calibration")), None)
    if root is None or "intrinsics" not in asked:
        return None
    lenses, poses = (_pose2sim_footage(root / name) for name in ("intrinsics", "extrinsics"))
    if not lenses:
        return None
    extrinsics = asked.get("extrinsics", {})
    method = str(extrinsics.get("extrinsics_method", "board"))
    lens_board = _pose2sim_board(asked["intrinsics"], "intrinsics", config)
    if method == "scene":
        return Session(
            place, "pose2sim", (lens_board,), config, tuple(lenses), lenses=tuple(lenses), lens_boards=(lens_board,),
            scene_file=config,
        )  # fmt: skip
    board = load_boards(described) if described else (lens_board,)
    if not described and "extrinsics_corners_nb" in extrinsics.get("board", {}):
        board = (_pose2sim_board(extrinsics["board"], "extrinsics", config),)
    rest = poses[0].images[0][0] if poses and poses[0].images else 0
    flat = str(extrinsics.get("board", {}).get("board_position", "horizontal")) == "horizontal"
    return Session(
        place, "pose2sim", board, config, tuple(poses or lenses), lenses=tuple(lenses), lens_boards=(lens_board,),
        rest_frame=rest if flat else None,
    )  # fmt: skip


def _pose2sim_board(table: dict[str, Any], word: str, config: Path) -> Board:
    try:
        across, down = (int(n) for n in table[f"{word}_corners_nb"])
        return Board("chessboard", across + 1, down + 1, float(table[f"{word}_square_size"]), name=word)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{config}: {word}_corners_nb = [n, n] and {word}_square_size (mm) must describe a board"
        ) from None


def _pose2sim_footage(place: Path) -> list[BoardFootage]:
    """One entry per camera folder; ``int_cam1_img`` and ``ext_cam1_img`` are both cam1."""
    found = []
    for folder in _folders(place) if place.is_dir() else []:
        name = re.sub(r"^(int|ext)_|_img$", "", folder.name)
        images, videos = _files(folder, IMAGES), _files(folder, VIDEOS)
        if len(images) == 1:  # one picture of the board at rest: all cameras' are of one instant, whatever their names
            found.append(BoardFootage(name, images=((0, images[0]),)))
        elif images:
            found.append(BoardFootage(name, images=numbered_images(images)))
        elif videos:
            found.append(BoardFootage(name, video=videos[0]))
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a TOML file: {error}") from None


def _files(folder: Path, suffixes: set[str]) -> list[Path]:
    if not folder.is_dir():
        return []
    found = [f for f in folder.iterdir() if f.suffix.lower() in suffixes and f.is_file() and f.name[0] != "."]
    return sorted(found, key=lambda f: natural(f.name))


def _folders(folder: Path) -> list[Path]:
    found = [f for f in folder.iterdir() if f.is_dir() and f.name[0] != "." and f.name != "results"]
    return sorted(found, key=lambda f: natural(f.name))


def _caliscope(place: Path, described: Path | None) -> Session | None:
    videos = _files(place / "calibration" / "extrinsic", VIDEOS)
    if not videos:
        return None
    candidates = [described] if described else [place / "charuco.toml", place / "config.toml"]
    board = next((c for c in candidates if c.is_file()), None)
    if board is None:
        raise InputError(f"{place}: looks like a Caliscope project but has no charuco.toml; give --board FILE")
    footage = tuple(BoardFootage(v.stem, video=v) for v in videos)
    return Session(place, "caliscope", load_boards(board), board, footage)


def _anipose(place: Path, described: Path | None) -> Session | None:
    config = next((c for c in (place, place.parent, place.parent.parent) if (c / "config.toml").is_file()), None)
    if config is None:
        return None
    table = _toml(config / "config.toml")
    if "calibration" not in table:
        return None
    inner = str(table.get("pipeline", {}).get("calibration_videos", "calibration"))
    videos = _files(place / inner, VIDEOS) or (_files(place, VIDEOS) if config != place else [])
    if not videos:
        return None
    pattern = str(table.get("triangulation", {}).get("cam_regex", r"cam([A-Z0-9]+)"))
    names = []
    for video in videos:
        match = re.search(pattern, video.stem)
        if match is None:
            raise InputError(f"{video.name}: its name does not match cam_regex = '{pattern}' of Anipose's config.toml")
        names.append(match.group(1) if match.groups() else match.group(0))
    if len(set(names)) < len(names):
        raise InputError(f"{place}: cam_regex = '{pattern}' gives two videos the same camera name; keep one per camera")
    board = described or config / "config.toml"
    boards = load_boards(board) if described else boards_from_table(table)
    footage = sorted(
        (BoardFootage(n, video=v) for n, v in zip(names, videos, strict=True)), key=lambda f: natural(f.name)
    )
    return Session(place, "anipose", boards, board, tuple(footage))


def _sleap_anipose(place: Path, described: Path | None) -> Session | None:
    views = [f for f in _folders(place) if (f / "calibration_images").is_dir()]
    if not views:
        return None
    board = described or place / "board.toml"
    if not board.is_file():
        raise InputError(f"{place}: looks like a sleap-anipose session but has no board.toml; give --board FILE")
    footage = []
    for view in views:
        images = _files(view / "calibration_images", IMAGES)
        video = next(iter(_files(view / "calibration_images", VIDEOS)), None)
        if images:
            footage.append(BoardFootage(view.name, images=numbered_images(images)))
        elif video is not None:
            footage.append(BoardFootage(view.name, video=video))
        else:
            raise InputError(f"{view / 'calibration_images'}: neither images nor a video")
    return Session(place, "sleap-anipose", load_boards(board), board, tuple(footage))


def _own(place: Path, described: Path | None) -> Session | None:
    footage = _collect(place)
    if not footage and (place / "videos").is_dir():
        footage = _collect(place / "videos")
    if not footage:
        return None
    board = described or place / "board.toml"
    if not board.is_file():
        raise InputError(
            f"{place}: no board.toml describes the board; write one with `vivarig board`, or give --board FILE"
        )
    floor = _collect(place / FLOOR) if (place / FLOOR).is_dir() else []
    floor += [
        BoardFootage(f.name, video=v)
        for f in _folders(place)
        for v in _files(f, VIDEOS)
        if v.stem.lower().startswith(FLOOR)
    ]
    known = {f.name for f in footage}
    for entry in floor:
        if entry.name not in known:
            raise InputError(f"floor footage of '{entry.name}', but the session has {', '.join(sorted(known))}")
    return Session(place, "vivarig", load_boards(board), board, tuple(footage), tuple(floor))


def _collect(place: Path) -> list[BoardFootage]:
    """Return one video or image set per camera: files, folders, or numbered stills side by side."""
    videos = [v for v in _files(place, VIDEOS) if not v.stem.lower().startswith(FLOOR)]
    if videos:
        return [BoardFootage(v.stem, video=v) for v in videos]
    stills = _files(place, IMAGES)
    groups: dict[str, list[Path]] = {}
    for still in stills:
        match = re.fullmatch(r"(.*?)[-_ ]?(\d+)", still.stem)
        if match and match.group(1):
            groups.setdefault(match.group(1), []).append(still)
    if len(groups) > 1 and all(len(g) > 1 for g in groups.values()):
        named = sorted(groups.items(), key=lambda item: natural(item[0]))
        return [BoardFootage(name, images=numbered_images(files)) for name, files in named]
    found = []
    for folder in _folders(place):
        if folder.name in (FLOOR, "videos"):
            continue
        inside = [v for v in _files(folder, VIDEOS) if not v.stem.lower().startswith(FLOOR)]
        images = _files(folder, IMAGES)
        if len(inside) > 1:
            likely = [v for v in inside if any(word in v.stem.lower() for word in BOARD_WORDS)]
            if len(likely) != 1:
                raise InputError(
                    f"{folder}: {len(inside)} videos ({', '.join(v.name for v in inside)}); keep one, or call the one "
                    "that shows the board board.mp4"
                )
            inside = likely
        if inside:
            found.append(BoardFootage(folder.name, video=inside[0]))
        elif images:
            found.append(BoardFootage(folder.name, images=numbered_images(images)))
    return found
