"""Calibration boards: their geometry, and the files that describe them (ours, Anipose's and Caliscope's)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text, write_text

__all__ = ["KINDS", "Board", "board_toml", "boards_from_table", "load_boards", "save_boards"]

KINDS = ("charuco", "chessboard", "aprilgrid")
_KEYS = [
    "name",
    "kind",
    "columns",
    "rows",
    "square_mm",
    "marker_mm",
    "dictionary",
    "inverted",
    "legacy",
    "first_marker",
    "inner_corners",
]
_MILLIMETRES = {"mm": 1.0, "cm": 10.0, "m": 1000.0, "inch": 25.4}


@dataclass(frozen=True)
class Board:
    """One flat calibration board, in its own frame: x along a row, y down the rows, z into the paper, mm.

    Attributes:
        kind: ``charuco``, ``chessboard`` or ``aprilgrid``.
        columns: squares across (aprilgrid: tags across).
        rows: squares down (aprilgrid: tags down).
        square_mm: side of a square (aprilgrid: distance from tag to tag), mm.
        marker_mm: side of a marker's black border, mm; 0 for a chessboard.
        dictionary: name of the OpenCV marker dictionary; empty for a chessboard.
        inverted: whether black and white are exchanged on the print.
        legacy: ChArUco layout of OpenCV before 4.6 (an even number of rows starts with a white square).
        first_marker: number of the first marker, so that several boards can be told apart.
        name: what reports call it.
    """

    kind: str
    columns: int
    rows: int
    square_mm: float
    marker_mm: float = 0.0
    dictionary: str = ""
    inverted: bool = False
    legacy: bool = False
    first_marker: int = 0
    name: str = "board"

    def __post_init__(self) -> None:
        who = f"board '{self.name}'"
        if self.kind not in KINDS:
            raise InputError(f"{who}: unknown kind '{self.kind}'; {nearest(self.kind, KINDS)}")
        least = 1 if self.kind == "aprilgrid" else 3
        if min(self.columns, self.rows) < least:
            raise InputError(f"{who}: a {self.kind} needs at least {least}x{least}, got {self.columns}x{self.rows}")
        if not 0 < self.square_mm < 1e6:
            raise InputError(f"{who}: square_mm must be a positive length below a kilometre, got {self.square_mm}")
        if self.kind == "chessboard":
            if self.columns == self.rows:
                raise InputError(
                    f"{who}: a chessboard of {self.columns}x{self.rows} squares looks the same turned by 90 degrees; "
                    "use one whose sides differ, or a ChArUco board"
                )
            return
        if not 0 < self.marker_mm < self.square_mm:
            raise InputError(
                f"{who}: marker_mm must lie between 0 and square_mm = {self.square_mm:g}, got {self.marker_mm:g}"
            )
        size = int(marker_dictionary(self.dictionary).bytesList.shape[0])
        if self.first_marker < 0 or self.first_marker + self.markers > size:
            raise InputError(
                f"{who}: {self.markers} markers from number {self.first_marker} on do not fit in "
                f"{self.dictionary}, which has {size}"
            )

    @property
    def markers(self) -> int:
        """Number of coded markers."""
        if self.kind == "aprilgrid":
            return self.columns * self.rows
        return self.columns * self.rows // 2 if self.kind == "charuco" else 0

    @property
    def grid(self) -> tuple[int, int]:
        """Corners across and down."""
        if self.kind == "aprilgrid":
            return 2 * self.columns, 2 * self.rows
        return self.columns - 1, self.rows - 1

    @property
    def corners(self) -> int:
        """Number of corners that detection can return."""
        return self.grid[0] * self.grid[1]

    @property
    def points_mm(self) -> Floats:
        """Corners (k, 3) in the board's frame, mm; corner number = row in this array.

        Chessboard: inner corners row by row, the first at the origin. ChArUco: as OpenCV numbers them, the
        origin at the board's outer corner. Aprilgrid: four per tag, clockwise from the tag's top left.
        """
        across, down = self.grid
        if self.kind == "aprilgrid":
            m = self.marker_mm
            tag = np.array([[0, 0], [m, 0], [m, m], [0, m]])
            origins = [(c, r) for r in range(self.rows) for c in range(self.columns)]
            flat = (np.array(origins)[:, None, :] * self.square_mm + tag).reshape(-1, 2)
        else:
            y, x = np.mgrid[:down, :across]
            flat = np.stack([x, y], -1).reshape(-1, 2) * self.square_mm
            if self.kind == "charuco":
                flat = flat + self.square_mm
        return np.column_stack([flat, np.zeros(len(flat))]).astype(np.float64)

    @property
    def looks_same_upside_down(self) -> bool:
        """Whether the print turned by 180 degrees cannot be told from itself (chessboards only)."""
        return self.kind == "chessboard" and (self.columns + self.rows) % 2 == 0

    @property
    def size_mm(self) -> tuple[float, float]:
        """Width and height of the printed pattern, mm."""
        if self.kind == "aprilgrid":
            gap = self.square_mm - self.marker_mm
            return self.columns * self.square_mm - gap, self.rows * self.square_mm - gap
        return self.columns * self.square_mm, self.rows * self.square_mm

    def neighbours(self) -> np.ndarray:
        """Pairs (p, 2) of corners one square apart (aprilgrid: one tag side apart)."""
        points = self.points_mm
        side = self.marker_mm if self.kind == "aprilgrid" else self.square_mm
        distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
        return np.argwhere(np.triu(np.abs(distance - side) < 1e-6 * side))

    def describe(self) -> str:
        """One line for reports."""
        size = f"{self.columns}x{self.rows} squares of {self.square_mm:g} mm"
        if self.kind == "aprilgrid":
            size = f"{self.columns}x{self.rows} tags of {self.marker_mm:g} mm every {self.square_mm:g} mm"
        elif self.kind == "charuco":
            size += f", markers {self.marker_mm:g} mm of {self.dictionary}"
        return f"{self.kind} {size}" + (", colours inverted" if self.inverted else "")


@lru_cache(maxsize=8)
def marker_dictionary(name: str) -> Any:
    """Return OpenCV's marker dictionary of that name."""
    known = [word for word in dir(cv2.aruco) if word.startswith("DICT_")]
    if name not in known:
        raise InputError(f"unknown marker dictionary '{name}'; {nearest(name, known)}")
    return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, name))


@guarded("a description of boards")
def load_boards(path: Path | str) -> tuple[Board, ...]:
    """Read the boards a TOML file describes: ours, Anipose's config.toml, sleap-anipose's or Caliscope's."""
    try:
        table = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a TOML file: {error}") from None
    try:
        return boards_from_table(table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def boards_from_table(table: Mapping[str, Any]) -> tuple[Board, ...]:
    """Return the boards of a parsed board file, whichever program wrote it."""
    if "boards" in table:
        boards = tuple(_own({"name": f"board{i + 1}", **entry}) for i, entry in enumerate(table["boards"]))
        if not boards:
            raise InputError("`boards` is empty; describe at least one board")
        if len({board.name for board in boards}) < len(boards):
            raise InputError("two boards have the same name")
        _refuse_shared_markers(boards)
        return boards
    if "kind" in table:
        return (_own(table),)
    if "calibration" in table:
        return (_anipose(table["calibration"]),)
    if "board_x" in table:
        return (_sleap_anipose(table),)
    if "charuco" in table:
        return (_caliscope(table["charuco"]),)
    if "aruco_scale" in table:
        return (_caliscope(table),)
    raise InputError("no board described: give at least kind, columns, rows and square_mm")


def _refuse_shared_markers(boards: tuple[Board, ...]) -> None:
    coded = [board for board in boards if board.markers]
    for i, a in enumerate(coded):
        for b in coded[i + 1 :]:
            apart = a.first_marker + a.markers <= b.first_marker or b.first_marker + b.markers <= a.first_marker
            if a.dictionary == b.dictionary and not apart:
                raise InputError(
                    f"boards '{a.name}' and '{b.name}' share markers of {a.dictionary}; give one a first_marker "
                    f"beyond the other's (from {a.first_marker + a.markers} on)"
                )
    if len(boards) - len(coded) > 1:
        raise InputError("two chessboards cannot be told apart in one image; use ChArUco boards")


def _own(table: Mapping[str, Any]) -> Board:
    for key in table:
        if key not in _KEYS:
            raise InputError(f"unknown board key '{key}'; {nearest(key, _KEYS)}")
    fields = dict(table)
    inner = fields.pop("inner_corners", None)
    if inner is not None:
        if "columns" in fields or "rows" in fields or len(inner) != 2:
            raise InputError("inner_corners = [across, down] replaces columns and rows; give one or the other")
        fields["columns"], fields["rows"] = inner[0] + 1, inner[1] + 1
    for key in ("kind", "columns", "rows", "square_mm"):
        if key not in fields:
            raise InputError(f"board key '{key}' is missing")
    for key in ("columns", "rows", "first_marker"):
        if key in fields and (isinstance(fields[key], bool) or not isinstance(fields[key], int)):
            raise InputError(f"board key '{key}' must be a whole number, got {fields[key]!r}")
    for key in ("square_mm", "marker_mm"):
        if key in fields:
            fields[key] = _number(fields[key], key)
    return Board(**fields)


def _number(value: Any, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"board key '{key}' must be a number, got {value!r}")
    return float(value)


def _anipose(table: Mapping[str, Any]) -> Board:
    """Anipose's config.toml, table [calibration]; board_size counts squares, lengths are what the user says (mm)."""
    kind = str(table.get("board_type", "charuco"))
    if "board_size" not in table or "board_square_side_length" not in table:
        raise InputError("[calibration] needs board_size and board_square_side_length (Anipose's names)")
    columns, rows = (int(n) for n in table["board_size"])
    side = _number(table["board_square_side_length"], "board_square_side_length")
    if kind in ("checkerboard", "chessboard"):
        # Anipose counts the inner corners of checkerboards (it hands board_size to findChessboardCorners)
        return Board("chessboard", columns + 1, rows + 1, side)
    bits, count = int(table.get("board_marker_bits", 4)), int(table.get("board_marker_dict_number", 50))
    marker = _number(table.get("board_marker_length", 0.75 * side), "board_marker_length")
    return Board("charuco", columns, rows, side, marker, f"DICT_{bits}X{bits}_{count}")


def _sleap_anipose(table: Mapping[str, Any]) -> Board:
    """sleap-anipose's board.toml (and its marker-less variant for checkerboards)."""
    columns, rows = int(table["board_x"]), int(table["board_y"])
    side = _number(table["square_length"], "square_length")
    if "marker_length" not in table:
        return Board("chessboard", columns + 1, rows + 1, side)
    bits, count = int(table["marker_bits"]), int(table["dict_size"])
    marker = _number(table["marker_length"], "marker_length")
    return Board("charuco", columns, rows, side, marker, f"DICT_{bits}X{bits}_{count}")


def _caliscope(table: Mapping[str, Any]) -> Board:
    """Caliscope's charuco.toml; the square side is its override, else what fits the sheet."""
    columns, rows = int(table["columns"]), int(table["rows"])
    override = table.get("square_size_override_cm", table.get("square_size_overide_cm"))
    if override:
        side = 10.0 * _number(override, "square_size_override_cm")
    else:
        unit = _MILLIMETRES.get(str(table.get("units", "inch")))
        if unit is None:
            raise InputError(f"units must be one of {', '.join(_MILLIMETRES)}, got {table['units']!r}")
        side = unit * min(float(table["board_width"]) / columns, float(table["board_height"]) / rows)
    return Board(
        "charuco",
        columns,
        rows,
        side,
        _number(table["aruco_scale"], "aruco_scale") * side,
        str(table["dictionary"]),
        inverted=bool(table.get("inverted", False)),
        legacy=bool(table.get("legacy_pattern", False)),
    )


def board_toml(boards: tuple[Board, ...]) -> str:
    """Return our TOML text of one or several boards."""

    def lines(board: Board) -> list[str]:
        out = [f'kind = "{board.kind}"', f"columns = {board.columns}", f"rows = {board.rows}"]
        out.append(f"square_mm = {board.square_mm!r}")
        if board.kind != "chessboard":
            out += [f"marker_mm = {board.marker_mm!r}", f'dictionary = "{board.dictionary}"']
        out += [f"{key} = true" for key in ("inverted", "legacy") if getattr(board, key)]
        if board.first_marker:
            out.append(f"first_marker = {board.first_marker}")
        return out

    if len(boards) == 1:
        return "\n".join([f'name = "{boards[0].name}"', *lines(boards[0])]) + "\n"
    return "\n".join("\n".join(["[[boards]]", f'name = "{b.name}"', *lines(b)]) + "\n" for b in boards)


def save_boards(boards: tuple[Board, ...], path: Path | str) -> None:
    """Write the boards as our TOML, atomically."""
    write_text(path, board_toml(boards))
