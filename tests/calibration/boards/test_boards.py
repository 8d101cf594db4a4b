"""Boards: geometry, files of several programs, printing at true scale, and what is said of a wrong description."""

from __future__ import annotations

import struct

import cv2
import numpy as np
import pytest

from calibration.boards.board import Board, board_toml, boards_from_table, load_boards, save_boards
from calibration.boards.detection import detect_in_image
from calibration.boards.diagnosis import explain_missing
from calibration.boards.printing import board_image, board_pdf, board_png
from calibration.foundation.errors import InputError

BOARDS = [
    Board("charuco", 8, 6, 30, 22, "DICT_5X5_100"),
    Board("charuco", 5, 6, 30, 22, "DICT_5X5_100", legacy=True),
    Board("charuco", 7, 5, 30, 20, "DICT_4X4_50", inverted=True, first_marker=7),
    Board("chessboard", 9, 6, 30.0),
    Board("aprilgrid", 5, 4, 40, 30, "DICT_APRILTAG_36h11"),
]

CODED = {"kind": "charuco", "square_mm": 3, "marker_mm": 2, "dictionary": "DICT_4X4_50"}


@pytest.mark.parametrize("board", BOARDS, ids=lambda b: f"{b.kind}-{b.columns}x{b.rows}")
def test_the_print_is_found_where_the_geometry_says(board: Board) -> None:
    scale, margin = 4.0, 10.0
    views = detect_in_image(board_image(board, pixels_per_mm=scale, margin_mm=margin), (board,))
    assert len(views) == 1 and len(views[0].corner) == board.corners
    origin = margin + (board.square_mm if board.kind == "chessboard" else 0.0)
    # an edge between pixels n-1 and n lies at n - 0.5: the centre of the first pixel is (0, 0)
    want = (board.points_mm[views[0].corner, :2] + origin) * scale - 0.5
    assert np.abs(views[0].pixels - want).max() < 0.1


def test_corner_spacing_and_neighbours() -> None:
    board = BOARDS[0]
    pairs = board.neighbours()
    points = board.points_mm
    assert len(pairs) == 7 * 4 + 6 * 5
    assert np.allclose(np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1), 30.0)


def test_png_states_its_scale_and_pdf_its_size() -> None:
    board = BOARDS[0]
    png = board_png(board, dpi=254)
    place = png.index(b"pHYs")
    assert struct.unpack(">IIB", png[place + 4 : place + 13]) == (10000, 10000, 1)
    image = cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_GRAYSCALE)
    assert image is not None and image.shape == (2000, 2600)  # (6 * 30 + 20) x (8 * 30 + 20) mm at 10 px/mm
    pdf = board_pdf(board, paper="a4")
    assert b"/MediaBox [0 0 841.88976 595.27559]" in pdf  # A4 on its side, in points
    assert board_pdf(board) == board_pdf(board)


def test_files_come_back_as_they_were(tmp_path) -> None:
    for boards in (
        BOARDS[:1],
        BOARDS[2:3],
        [BOARDS[0], Board("charuco", 5, 4, 20, 15, "DICT_5X5_100", first_marker=30, name="small")],
    ):
        save_boards(tuple(boards), tmp_path / "board.toml")
        assert load_boards(tmp_path / "board.toml") == tuple(boards)


def test_files_of_other_programs() -> None:
    anipose = {"calibration": {"board_type": "charuco", "board_size": [10, 7], "board_marker_bits": 4,
                               "board_marker_dict_number": 50, "board_marker_length": 18.75,
                               "board_square_side_length": 25}}  # fmt: skip
    assert boards_from_table(anipose)[0] == Board("charuco", 10, 7, 25.0, 18.75, "DICT_4X4_50")
    caliscope = {"columns": 4, "rows": 5, "board_height": 11.0, "board_width": 8.5, "dictionary": "DICT_4X4_1000",
                 "units": "inch", "aruco_scale": 0.75, "square_size_override_cm": 5.4, "inverted": True}  # fmt: skip
    board = boards_from_table(caliscope)[0]
    assert (board.square_mm, board.marker_mm, board.inverted) == (54.0, 40.5, True)
    checker = {"calibration": {"board_type": "checkerboard", "board_size": [9, 6], "board_square_side_length": 30}}
    assert boards_from_table(checker)[0].grid == (9, 6)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "no board described"),
        ({"kind": "charuko", "columns": 5, "rows": 4, "square_mm": 1.0}, "did you mean 'charuco'"),
        ({"kind": "chessboard", "columns": 5, "rows": 4}, "'square_mm' is missing"),
        ({"kind": "chessboard", "columns": 5, "rows": 4, "square_mm": "30"}, "must be a number"),
        ({"kind": "chessboard", "columns": 5, "rows": 4, "squaremm": 3}, "did you mean 'square_mm'"),
        ({"kind": "chessboard", "columns": 6, "rows": 6, "square_mm": 3}, "turned by 90 degrees"),
        ({**CODED, "columns": 9, "rows": 9, "marker_mm": 4}, "between 0 and square_mm"),
        ({**CODED, "columns": 12, "rows": 12}, "do not fit in"),
        ({**CODED, "columns": 5, "rows": 4, "dictionary": "DICT_4X4"}, "unknown marker dictionary"),
    ],
)  # fmt: skip
def test_bad_descriptions_are_named(table: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        boards_from_table(table)


def test_boards_that_share_markers_are_refused() -> None:
    one = board_toml((BOARDS[0],)).replace('name = "board"', 'name = "a"')
    both = "[[boards]]\n" + one + "[[boards]]\n" + one.replace('"a"', '"b"')
    import tomllib

    with pytest.raises(InputError, match="share markers"):
        boards_from_table(tomllib.loads(both))


def test_wrong_descriptions_are_recognised_in_the_picture() -> None:
    real = Board("charuco", 7, 10, 20, 15, "DICT_4X4_100")
    picture = board_image(real, pixels_per_mm=4)
    swapped = explain_missing([picture], Board("charuco", 10, 7, 20, 15, "DICT_4X4_100"))
    assert "found a 7x10 board, board.toml says 10x7" in swapped.sentence and not swapped.harmless
    inverted = explain_missing([255 - picture], real)
    assert inverted.harmless and inverted.board is not None and inverted.board.inverted
    chess = board_image(Board("chessboard", 10, 7, 20.0), pixels_per_mm=4)
    assert "9x6 inner corners" in explain_missing([chess], Board("chessboard", 8, 7, 20.0)).sentence
    assert explain_missing([np.full((200, 200), 128, np.uint8)], real).board is None


def test_paper_too_small_is_refused() -> None:
    with pytest.raises(InputError, match="does not fit on a4"):
        board_pdf(Board("chessboard", 12, 9, 40.0), paper="a4")
