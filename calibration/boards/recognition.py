"""Which ChArUco board pictures show, told from the pictures alone but for the side of a square."""

from __future__ import annotations

from collections.abc import Iterable

import cv2
import numpy as np

from calibration.boards.board import Board, marker_dictionary
from calibration.boards.detection import charuco_board, grey
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints

__all__ = ["recognise_charuco"]

_LARGEST = 16
_FAMILIES = ("DICT_4X4_1000", "DICT_5X5_1000", "DICT_6X6_1000", "DICT_7X7_1000", "DICT_ARUCO_ORIGINAL")
"""The largest of each family: the smaller ones are their beginnings."""
_FEWEST = 6
"""Markers that one picture must show: fewer fit several layouts."""


def recognise_charuco(pictures: Iterable[np.ndarray], square_mm: float) -> Board | None:
    """Return the board that explains the markers in the pictures, None where they show none, or too few at a time."""
    greys = [grey(picture) for picture in pictures]
    seen = {
        (family, inverted): {int(number) for picture in greys for number in _markers(picture, family, inverted)[0]}
        for family in _FAMILIES
        for inverted in (False, True)
    }
    (family, inverted), numbers = max(seen.items(), key=lambda one: len(one[1]))
    if len(numbers) < _FEWEST:
        return None
    dictionary = _smallest(family, max(numbers))
    found = [_markers(picture, dictionary, inverted) for picture in greys]
    ids, quads = max(found, key=lambda one: len(one[0]))
    if len(ids) < _FEWEST:
        return None
    last = max(int(one[0].max(initial=0)) for one in found)
    return _laid_out(ids, quads, last, Board("charuco", 3, 3, square_mm, 0.5 * square_mm, dictionary, inverted))


def _smallest(family: str, last: int) -> str:
    """Return the smallest dictionary of a family that holds a marker of this number."""
    stem = family.removesuffix("1000")
    return next((f"{stem}{size}" for size in (50, 100, 250) if stem != family and last < size), family)


def _markers(picture: Bytes, dictionary: str, inverted: bool) -> tuple[Ints, Floats]:
    """Return numbers (n,) and corners (n, 4, 2) of the markers of a picture."""
    seen = np.asarray(255 - picture) if inverted else picture
    corners, ids, _ = cv2.aruco.ArucoDetector(marker_dictionary(dictionary)).detectMarkers(seen)
    if ids is None:
        return np.empty(0, np.int64), np.empty((0, 4, 2))
    return np.asarray(ids).reshape(-1).astype(np.int64), np.array(corners, dtype=np.float64).reshape(-1, 4, 2)


def _laid_out(ids: Ints, quads: Floats, last: int, board: Board) -> Board | None:
    """Return the layout under which one homography puts all markers where they are seen."""
    capacity = int(marker_dictionary(board.dictionary).bytesList.shape[0])
    centres = quads.mean(axis=1)
    reach = float(np.linalg.norm(np.ptp(centres, axis=0)))
    found: list[tuple[float, int, Board]] = []
    for columns in range(3, _LARGEST):
        for rows in range(3, _LARGEST):
            count = columns * rows // 2
            if not last < count <= capacity:
                continue
            for legacy in (False, True):
                trial = Board("charuco", columns, rows, 1.0, 0.5, board.dictionary, legacy=legacy)
                layout = np.asarray(charuco_board(trial).getObjPoints())[ids].reshape(-1, 4, 3).mean(1)[:, :2]
                placed, inlier = _homography(layout, centres, 0.05 * reach / max(columns, rows))
                if placed is None:
                    continue
                ratio = _marker_share(placed, quads[inlier])
                if inlier.mean() >= 0.9 and 0.2 < ratio < 0.98:
                    likely = Board(
                        "charuco", columns, rows, board.square_mm, round(ratio, 2) * board.square_mm,
                        board.dictionary, board.inverted, legacy,
                    )  # fmt: skip
                    found.append((float(inlier.mean()), -(count - last - 1), likely))
    return max(found, key=lambda one: one[:2])[2] if found else None


def _homography(layout: Floats, centres: Floats, tolerance: float) -> tuple[Floats | None, Bools]:
    """Return the homography from pixels to the layout, and which markers it explains to ``tolerance`` px."""
    cv2.setRNGSeed(1)
    shown, mask = cv2.findHomography(layout.astype(np.float64), centres, cv2.RANSAC, max(tolerance, 1.0))
    if shown is None or abs(np.linalg.det(shown)) < 1e-12:
        return None, np.zeros(len(layout), dtype=bool)
    return np.linalg.inv(shown), np.asarray(mask).reshape(-1).astype(bool)


def _marker_share(placed: Floats, quads: Floats) -> float:
    """Return the median side of the markers in squares."""
    flat = np.asarray(cv2.perspectiveTransform(quads.reshape(1, -1, 2), placed)).reshape(-1, 4, 2)
    sides = np.linalg.norm(flat - np.roll(flat, 1, axis=1), axis=2)
    return float(np.median(sides)) if sides.size else float("nan")
