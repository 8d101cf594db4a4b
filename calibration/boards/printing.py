"""Boards to print: PDF and PNG at true scale, drawn from rectangles, so that no viewer resamples an edge."""

from __future__ import annotations

import struct
import zlib

import cv2
import numpy as np

from calibration.boards.board import Board, marker_dictionary
from calibration.foundation.arrays import Bytes, Floats
from calibration.foundation.errors import InputError

__all__ = ["PAPERS_MM", "board_image", "board_pdf", "board_png", "dark_rectangles"]

PAPERS_MM = {
    "a4": (210.0, 297.0),
    "a3": (297.0, 420.0),
    "a2": (420.0, 594.0),
    "a1": (594.0, 841.0),
    "letter": (215.9, 279.4),
}
POINTS_PER_MM = 72 / 25.4


def dark_rectangles(board: Board) -> Floats:
    """Return the dark parts of a board (n, 4) as x, y, width, height in mm, y down from its top left corner.

    Of an inverted board these are the parts that stay white on a black sheet.
    """
    out: list[tuple[float, float, float, float]] = []
    s, m = board.square_mm, board.marker_mm
    if board.kind == "aprilgrid":
        for i in range(board.markers):
            out += _marker(board, i, (i % board.columns) * s, (i // board.columns) * s)
        return np.array(out)
    # before OpenCV 4.6 a ChArUco board with an even number of rows began with a white square
    shift = 1 if board.kind == "charuco" and board.legacy and board.rows % 2 == 0 else 0
    number = 0
    for row in range(board.rows):
        for column in range(board.columns):
            if (row + column + shift) % 2 == 0:
                out.append((column * s, row * s, s, s))
            elif board.kind == "charuco":
                edge = (s - m) / 2
                out += _marker(board, number, column * s + edge, row * s + edge)
                number += 1
    return np.array(out)


def _marker(board: Board, number: int, x: float, y: float) -> list[tuple[float, float, float, float]]:
    """Return the dark cells of a marker, those beside each other joined along the row."""
    dictionary = marker_dictionary(board.dictionary)
    cells = int(dictionary.markerSize) + 2
    picture = dictionary.generateImageMarker(board.first_marker + number, cells)
    side = board.marker_mm / cells
    out = []
    for r in range(cells):
        c = 0
        while c < cells:
            start = c
            while c < cells and picture[r, c] == 0:
                c += 1
            if c > start:
                out.append((x + start * side, y + r * side, (c - start) * side, side))
            c += 1
    return out


def _sheet(board: Board, paper: str | None, margin_mm: float) -> tuple[float, float]:
    width, height = board.size_mm
    need = (width + 2 * margin_mm, height + 2 * margin_mm)
    if paper is None:
        return need
    if paper not in PAPERS_MM:
        raise InputError(f"unknown paper '{paper}'; known are {', '.join(PAPERS_MM)}")
    short, long = PAPERS_MM[paper]
    for sheet in ((short, long), (long, short)):
        if need[0] <= sheet[0] and need[1] <= sheet[1]:
            return sheet
    raise InputError(
        f"a board of {width:g} x {height:g} mm with {margin_mm:g} mm margin does not fit on {paper} "
        f"({short:g} x {long:g} mm); take larger paper, smaller squares or fewer of them"
    )


def board_pdf(board: Board, *, paper: str | None = None, margin_mm: float = 10.0) -> bytes:
    """Return a one-page PDF of the board at true scale, with a ruler of 100 mm to check the printer."""
    sheet = _sheet(board, paper, margin_mm)
    width, height = board.size_mm
    left, top = (sheet[0] - width) / 2, (sheet[1] - height) / 2
    ink, ground = ("1 g", "0 g") if board.inverted else ("0 g", "1 g")
    parts = ["q", f"{POINTS_PER_MM:.8f} 0 0 {POINTS_PER_MM:.8f} 0 0 cm"]
    if board.inverted:
        edge = min(margin_mm / 2, left, top)
        parts += [ground, f"{left - edge:.5f} {top - edge:.5f} {width + 2 * edge:.5f} {height + 2 * edge:.5f} re f"]
    parts.append(ink)
    for x, y, w, h in dark_rectangles(board):
        parts.append(f"{left + x:.5f} {sheet[1] - top - y - h:.5f} {w:.5f} {h:.5f} re f")
    parts.append("0 g")
    if sheet[0] >= 110:
        parts.append("10.00000 3.00000 100.00000 0.40000 re f")
        parts += [f"{10 + 10 * i:.5f} 3.00000 0.20000 {2.0 if i % 5 else 3.0:.5f} re f" for i in range(11)]
    parts.append("Q")
    text = f"{board.describe()}   print at 100 %, ruler 100 mm"
    safe = text.replace("\\", "").replace("(", "[").replace(")", "]")
    parts.append(f"BT /F1 6 Tf {115 * POINTS_PER_MM:.3f} {3.5 * POINTS_PER_MM:.3f} Td ({safe}) Tj ET")
    return _pdf("\n".join(parts).encode("latin-1", "replace"), sheet)


def _pdf(content: bytes, sheet: tuple[float, float]) -> bytes:
    box = f"{sheet[0] * POINTS_PER_MM:.5f} {sheet[1] * POINTS_PER_MM:.5f}"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /ViewerPreferences << /PrintScaling /None >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {box}] /Contents 4 0 R "
        "/Resources << /Font << /F1 5 0 R >> >> >>".encode(),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, places = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places:
        out += b"%010d 00000 n \n" % place
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def board_image(board: Board, *, pixels_per_mm: float, margin_mm: float = 10.0) -> Bytes:
    """Return the board as a picture (h, w) uint8; edges fall on whole pixels as nearly as the scale allows."""
    width, height = board.size_mm
    shape = (round((height + 2 * margin_mm) * pixels_per_mm), round((width + 2 * margin_mm) * pixels_per_mm))
    ground, ink = (0, 255) if board.inverted else (255, 0)
    image = np.full(shape, ground, np.uint8)
    for x, y, w, h in dark_rectangles(board):
        x0, x1 = (round((v + margin_mm) * pixels_per_mm) for v in (x, x + w))
        y0, y1 = (round((v + margin_mm) * pixels_per_mm) for v in (y, y + h))
        image[y0:y1, x0:x1] = ink
    return image


def board_png(board: Board, *, dpi: int = 600, margin_mm: float = 10.0) -> bytes:
    """Return the board as a PNG that states its true size (pHYs), so that programs print it at scale."""
    image = board_image(board, pixels_per_mm=dpi / 25.4, margin_mm=margin_mm)
    ok, encoded = cv2.imencode(".png", image)
    if not ok:
        raise InputError(f"a board of {image.shape[1]} x {image.shape[0]} px cannot be written; lower the dpi")
    data = encoded.tobytes()
    per_metre = round(dpi / 0.0254)
    body = b"pHYs" + struct.pack(">IIB", per_metre, per_metre, 1)
    chunk = struct.pack(">I", 9) + body + struct.pack(">I", zlib.crc32(body))
    return data[:33] + chunk + data[33:]  # after the signature and the IHDR chunk
