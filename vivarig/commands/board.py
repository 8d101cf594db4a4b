"""``vivarig board``: a calibration board to print, with the description that ``vivarig calibrate`` reads."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.boards.board import KINDS, Board, save_boards
from calibration.boards.printing import PAPERS_MM, board_pdf, board_png
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = """Write a calibration board as PDF and PNG at true scale, and its board.toml.

Print at 100 % ("actual size"), glue it on something flat, and measure the ruler: if its 100 mm are not 100 mm,
measure a square and correct square_mm in board.toml."""
EXAMPLE = """  vivarig board my_session                       # ChArUco, 8x6 squares of 30 mm, on A4
  vivarig board my_session --columns 11 --rows 8 --square 45 --paper a2"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument("folder", type=Path, help="where board.toml, board.pdf and board.png go")
    parser.add_argument("--kind", default="charuco", choices=KINDS)
    parser.add_argument("--columns", type=int, default=8, help="squares across, or tags (8)")
    parser.add_argument("--rows", type=int, default=6, help="squares down, or tags (6)")
    parser.add_argument("--square", type=float, default=30.0, metavar="MM", help="side of a square; tag pitch (30)")
    parser.add_argument("--marker", type=float, metavar="MM", help="side of a marker (0.75 of the square)")
    parser.add_argument("--dictionary", help="marker dictionary (DICT_5X5_100; aprilgrid DICT_APRILTAG_36h11)")
    parser.add_argument("--first-marker", type=int, default=0, metavar="N", help="number of the first marker (0)")
    parser.add_argument("--inverted", action="store_true", help="white on black")
    parser.add_argument("--paper", choices=(*PAPERS_MM, "fit"), default="fit", help="sheet; fit: as large as needed")
    parser.add_argument("--dpi", type=int, default=600, help="resolution of the PNG (600)")
    parser.add_argument("--name", default="board")


def run(args: argparse.Namespace) -> CommandReport:
    """Write the three files."""
    chess, april = args.kind == "chessboard", args.kind == "aprilgrid"
    if not 50 <= args.dpi <= 2400:
        raise InputError(f"--dpi must lie between 50 and 2400, got {args.dpi}")
    board = Board(
        kind=args.kind,
        columns=args.columns,
        rows=args.rows,
        square_mm=args.square,
        marker_mm=0.0 if chess else args.marker if args.marker is not None else 0.75 * args.square,
        dictionary="" if chess else args.dictionary or ("DICT_APRILTAG_36h11" if april else "DICT_5X5_100"),
        inverted=args.inverted,
        first_marker=args.first_marker,
        name=args.name,
    )
    pdf = board_pdf(board, paper=None if args.paper == "fit" else args.paper)
    png = board_png(board, dpi=args.dpi)
    write_bytes(args.folder / "board.pdf", pdf)
    write_bytes(args.folder / "board.png", png)
    save_boards((board,), args.folder / "board.toml")
    width, height = board.size_mm
    lines = [
        f"{board.describe()}: {width:g} x {height:g} mm, {board.corners} corners",
        f"wrote board.pdf, board.png and board.toml to {args.folder}; print at 100 % and check the ruler",
    ]
    if board.looks_same_upside_down:
        lines.append("note: this chessboard looks the same upside down; an odd sum of rows and columns is safer")
    return CommandReport(lines, {"width_mm": width, "height_mm": height, "corners": board.corners})
