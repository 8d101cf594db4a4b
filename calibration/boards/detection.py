"""Finding calibration boards in images, to a fraction of a pixel.

The functions take images, never files: a caller hands them an iterator of (frame index, image).
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from calibration.boards.board import Board, marker_dictionary
from calibration.boards.sightings import Sightings
from calibration.foundation.arrays import Bytes, Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["BoardView", "CameraDetections", "detect_boards", "detect_in_image", "grey"]

LEAST_CORNERS = 4
SMALL_SQUARES = 16.0  # px


@dataclass(frozen=True, eq=False)
class BoardView:
    """One board in one image.

    Attributes:
        board: index of the board.
        corner: (k,) corner numbers, ascending.
        pixels: (k, 2) image points, px.
        edge_px: width of the print's black-white edges in this image, px: blur.
    """

    board: int
    corner: Ints
    pixels: Floats
    edge_px: float


@dataclass(frozen=True, eq=False)
class CameraDetections:
    """All that one camera's footage showed.

    Attributes:
        name: camera name.
        size: image size (width, height), px.
        frame: (f,) numbers of the frames looked at.
        fresh: (f,) False where the image repeats the frame before it, pixel by pixel.
        views: (frame, view), in order.
    """

    name: str
    size: tuple[int, int]
    frame: Ints
    fresh: np.ndarray
    views: tuple[tuple[int, BoardView], ...]

    def sightings(self, boards: tuple[Board, ...]) -> Sightings:
        """Return the corners as a table of one camera."""
        count = [len(view.corner) for _, view in self.views]
        total = sum(count)

        def column(values: Iterable[int]) -> Ints:
            return np.repeat(np.fromiter(values, np.int64, len(count)), count)

        return Sightings(
            cameras=(self.name,),
            sizes=(self.size,),
            boards=boards,
            camera=np.zeros(total, np.int64),
            frame=column(frame for frame, _ in self.views),
            board=column(view.board for _, view in self.views),
            corner=np.concatenate([np.empty(0, np.int64), *(view.corner for _, view in self.views)]),
            pixels=np.concatenate([np.empty((0, 2)), *(view.pixels for _, view in self.views)]),
        ).sorted()


def grey(image: np.ndarray) -> Bytes:
    """Return an image as (h, w) uint8 intensities."""
    if image.dtype != np.uint8:
        raise InputError(f"images must be 8-bit, got {image.dtype}")
    if image.ndim == 2:
        return np.ascontiguousarray(image)
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))


def detect_boards(
    frames: Iterable[tuple[int, np.ndarray]],
    boards: tuple[Board, ...],
    *,
    name: str,
    workers: int = 1,
    on_progress: Callable[[int], None] | None = None,
) -> CameraDetections:
    """Detect every board in every frame of one camera.

    ``workers`` images are searched at once; the result does not depend on it. ``on_progress`` is called with
    the number of frames done.
    """
    numbers: list[int] = []
    fresh: list[bool] = []
    size: tuple[int, int] | None = None
    digest = b""

    def search(image: Bytes) -> tuple[BoardView, ...]:
        return detect_in_image(image, boards)

    found: list[tuple[int, BoardView]] = []
    waiting: deque[tuple[int, Future[tuple[BoardView, ...]]]] = deque()
    with ThreadPoolExecutor(max_workers=max(workers, 1)) as pool:
        for number, image in frames:
            picture = grey(image)
            here = (picture.shape[1], picture.shape[0])
            if size is not None and here != size:
                raise InputError(
                    f"camera '{name}': frame {number} is {here[0]}x{here[1]}, the first {size[0]}x{size[1]}"
                )
            size = here
            previous, digest = digest, hashlib.blake2b(picture.tobytes(), digest_size=16).digest()
            numbers.append(number)
            fresh.append(digest != previous)
            if fresh[-1]:
                waiting.append((number, pool.submit(search, picture)))
            while len(waiting) > 2 * max(workers, 1):
                found += _collect(waiting.popleft())
            if on_progress is not None:
                on_progress(len(numbers))
        while waiting:
            found += _collect(waiting.popleft())
    if size is None:
        raise InputError(f"camera '{name}': the footage holds no frame")
    return CameraDetections(name, size, np.array(numbers, np.int64), np.array(fresh, np.bool_), tuple(found))


def _collect(job: tuple[int, Future[tuple[BoardView, ...]]]) -> Iterator[tuple[int, BoardView]]:
    number, future = job
    return ((number, view) for view in future.result())


def detect_in_image(image: np.ndarray, boards: tuple[Board, ...]) -> tuple[BoardView, ...]:
    """Find the boards in one image; a board of which fewer than four corners show is not returned."""
    picture = grey(image)
    views = []
    for index, board in enumerate(boards):
        positive = np.asarray(255 - picture) if board.inverted else picture
        finder = {"charuco": _charuco, "chessboard": _chessboard, "aprilgrid": _aprilgrid}[board.kind]
        corner, pixels = finder(positive, board)
        if len(corner) < LEAST_CORNERS or _in_line(board.points_mm[corner]):
            continue
        order = np.argsort(corner)
        corner, pixels = corner[order], pixels[order]
        views.append(BoardView(index, corner, pixels, edge_width(positive, pixels)))
    return tuple(views)


def _in_line(points: Floats) -> bool:
    centred = points[:, :2] - points[:, :2].mean(0)
    return bool(np.linalg.svd(centred, compute_uv=False)[1] < 1e-6 * np.abs(centred).max())


def _nothing() -> tuple[Ints, Floats]:
    return np.empty(0, np.int64), np.empty((0, 2))


def charuco_board(board: Board) -> Any:
    """Return OpenCV's object for a ChArUco board."""
    ids = np.arange(board.first_marker, board.first_marker + board.markers)
    made = cv2.aruco.CharucoBoard(
        (board.columns, board.rows), board.square_mm, board.marker_mm, marker_dictionary(board.dictionary), ids
    )
    made.setLegacyPattern(board.legacy)
    return made


def _charuco(picture: Bytes, board: Board) -> tuple[Ints, Floats]:
    """Find ChArUco corners; a board seen from behind, through its sheet, is found in the mirrored picture."""
    detector = cv2.aruco.CharucoDetector(charuco_board(board))
    best = _nothing()
    for mirrored in (False, True):
        corners, ids, _, _ = detector.detectBoard(cv2.flip(picture, 1) if mirrored else picture)
        if ids is None or len(ids) <= len(best[0]):
            continue
        pixels = np.asarray(corners).reshape(-1, 2).astype(np.float64)
        if mirrored:
            pixels[:, 0] = picture.shape[1] - 1 - pixels[:, 0]
        best = np.asarray(ids).reshape(-1).astype(np.int64), pixels
        if len(best[0]) >= LEAST_CORNERS:
            break
    return best


def _aprilgrid(picture: Bytes, board: Board) -> tuple[Ints, Floats]:
    parameters = cv2.aruco.DetectorParameters()
    parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_SUBPIX
    found, ids, _ = cv2.aruco.ArucoDetector(marker_dictionary(board.dictionary), parameters).detectMarkers(picture)
    if ids is None:
        return _nothing()
    corner, pixels = [], []
    for quad, marker in zip(found, np.asarray(ids).reshape(-1), strict=True):
        tag = int(marker) - board.first_marker
        if 0 <= tag < board.markers:
            corner.append(4 * tag + np.arange(4))
            pixels.append(np.asarray(quad).reshape(4, 2))
    if not corner:
        return _nothing()
    numbers = np.concatenate(corner).astype(np.int64)
    unique, first, count = np.unique(numbers, return_index=True, return_counts=True)
    once = count == 1  # a tag seen twice (a reflection, a second print) is not trusted
    return unique[once], np.concatenate(pixels).astype(np.float64)[first[once]]


def _chessboard(picture: Bytes, board: Board) -> tuple[Ints, Floats]:
    pixels = find_chessboard(picture, board.grid)
    if pixels is None:
        return _nothing()
    return np.arange(len(pixels), dtype=np.int64), _first_square_dark(picture, board, pixels)


def find_chessboard(picture: Bytes, grid: tuple[int, int]) -> Floats | None:
    """Find the inner corners (k, 2) of a chessboard, row by row in a right-handed order; None if there is none.

    Three searches, the fast one first: OpenCV's quad linking, its sector-based search, and the first again in a
    rectified picture of each bright quadrilateral, for boards lying flat far away.
    """
    flags = cv2.CALIB_CB_ADAPTIVE_THRESH | cv2.CALIB_CB_NORMALIZE_IMAGE
    ok, found = cv2.findChessboardCorners(picture, grid, flags=flags | cv2.CALIB_CB_FAST_CHECK)
    if not ok:
        ok, found = cv2.findChessboardCornersSB(picture, grid, flags=cv2.CALIB_CB_NORMALIZE_IMAGE)
    start = np.asarray(found, np.float64).reshape(-1, 2) if ok else _find_rectified(picture, grid)
    if start is None:
        return None
    refined = refine_corners(picture, start, grid)
    if _spacing(start, grid) < SMALL_SQUARES:
        flat = _refine_flattened(picture, start, grid)
        refined = flat if flat is not None else refined
    return refined if _is_grid(refined, grid) else None


def _spacing(corners: Floats, grid: tuple[int, int]) -> float:
    """Return the smallest distance between neighbouring corners, px."""
    steps = corners.reshape(grid[1], grid[0], 2)
    return min(
        float(np.linalg.norm(np.diff(steps, axis=0), axis=-1).min()),
        float(np.linalg.norm(np.diff(steps, axis=1), axis=-1).min()),
    )


def _refine_flattened(picture: Bytes, start: Floats, grid: tuple[int, int], side: int = 24) -> Floats | None:
    """Refine the corners of small, slanted squares in a picture of the board stretched to squares of ``side`` px.

    There the sector-based search localises them by whole edges; on the floor boards of the Utrecht room this
    leaves 0.11 to 0.17 px where windows around the corners leave 0.4 to 0.9.
    """
    y, x = np.mgrid[: grid[1], : grid[0]]
    flat_corners = (np.stack([x, y], -1).reshape(-1, 2) + 2.0) * side
    cv2.setRNGSeed(1)
    warp, _ = cv2.findHomography(start, flat_corners, cv2.RANSAC, 0.2 * side)
    if warp is None:
        return None
    size = (side * (grid[0] + 3), side * (grid[1] + 3))
    flat = cv2.warpPerspective(picture, warp, size, flags=cv2.INTER_CUBIC)
    ok, found = cv2.findChessboardCornersSB(flat, grid, flags=cv2.CALIB_CB_EXHAUSTIVE | cv2.CALIB_CB_ACCURACY)
    if not ok:
        return None
    back = cv2.perspectiveTransform(np.asarray(found, np.float64).reshape(-1, 1, 2), np.linalg.inv(warp))
    corners = np.asarray(back, np.float64).reshape(-1, 2)
    if np.linalg.norm(corners[0] - start[0]) > np.linalg.norm(corners[0] - start[-1]):
        corners = corners[::-1].copy()
    return corners


def _find_rectified(picture: Bytes, grid: tuple[int, int]) -> Floats | None:
    """Search rectified bright quadrilaterals: a board on the floor may show squares of 15 x 5 pixels only."""
    _, bright = cv2.threshold(picture, 0, 255, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    closed = cv2.morphologyEx(bright, cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8))
    quads = []
    for mask in (closed, cv2.morphologyEx(bright, cv2.MORPH_CLOSE, np.ones((15, 15), np.uint8))):
        contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
        for contour in contours:
            hull = cv2.convexHull(contour)
            if cv2.contourArea(hull) < 20 * grid[0] * grid[1]:
                continue
            quad = cv2.approxPolyDP(hull, 0.03 * cv2.arcLength(hull, True), True)
            if len(quad) == 4 and cv2.contourArea(contour) > 0.7 * cv2.contourArea(hull):
                quads.append(np.asarray(quad, np.float32).reshape(4, 2))
    side, edge = 40, 40
    for quad in quads:
        if cv2.contourArea(quad, True) < 0:
            quad = quad[::-1]
        for turn in range(2):
            w, h = side * (grid[0] + 1), side * (grid[1] + 1)
            box = np.array([[0, 0], [w, 0], [w, h], [0, h]], np.float32) + edge
            warp = cv2.getPerspectiveTransform(np.roll(quad, turn, axis=0), box)
            flat = cv2.warpPerspective(picture, warp, (w + 2 * edge, h + 2 * edge), flags=cv2.INTER_CUBIC)
            if not _looks_checkered(flat[edge:-edge, edge:-edge], grid, side):
                break  # walls and screens are bright quadrilaterals too, and the searches below are slow
            ok, found = cv2.findChessboardCorners(flat, grid, flags=cv2.CALIB_CB_ADAPTIVE_THRESH)
            if not ok:
                ok, found = cv2.findChessboardCornersSB(flat, grid, flags=cv2.CALIB_CB_EXHAUSTIVE)
            if ok:
                # the squares are large here: settle the corners before going back to the small picture
                sharp = refine_corners(flat, np.asarray(found, np.float64).reshape(-1, 2), grid)
                back = cv2.perspectiveTransform(sharp.reshape(-1, 1, 2), np.linalg.inv(warp))
                return np.asarray(back, np.float64).reshape(-1, 2)
    return None


def _looks_checkered(flat: Bytes, grid: tuple[int, int], side: int) -> bool:
    """Whether a rectified picture holds about as many separate dark patches as a board has dark squares."""
    _, dark = cv2.threshold(flat, 0, 255, cv2.THRESH_BINARY_INV + cv2.THRESH_OTSU)
    apart = cv2.erode(dark, np.ones((side // 5, side // 5), np.uint8))
    _, _, stats, _ = cv2.connectedComponentsWithStats(apart)
    patches = int((stats[1:, cv2.CC_STAT_AREA] > 0.03 * side * side).sum())
    squares = (grid[0] + 1) * (grid[1] + 1) / 2
    return 0.3 * squares <= patches <= 2 * squares


def refine_corners(picture: Bytes, start: Floats, grid: tuple[int, int]) -> Floats:
    """Move corners to the saddle point of the intensities, in a window that never reaches the next corner.

    The half window is a fifth of the smallest spacing, at most 5 px: larger windows see lens distortion and
    bias the focal length by half a percent on the published stereo pairs.
    """
    spacing = _spacing(start, grid)
    half = int(np.clip(0.2 * spacing, 1, 5 * max(1.0, picture.shape[1] / 1280)))
    if spacing < 6:
        return start
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 60, 1e-4)
    moved = cv2.cornerSubPix(picture, start.astype(np.float32).reshape(-1, 1, 2), (half, half), (-1, -1), stop)
    return np.asarray(moved, np.float64).reshape(-1, 2)


def _is_grid(pixels: Floats, grid: tuple[int, int]) -> bool:
    """Whether the corners still form a grid: right-handed cells that change little from one to the next."""
    g = pixels.reshape(grid[1], grid[0], 2)
    right, down = np.diff(g, axis=1)[:-1], np.diff(g, axis=0)[:, :-1]
    area = right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]
    # a mirrored order has negative areas everywhere, a slipped corner in a few cells
    return bool((area > 0).all() and area.max() < 60 * area.min())


def _first_square_dark(picture: Bytes, board: Board, pixels: Floats) -> Floats:
    """Return the corners in the one order that starts at the dark square.

    A board that looks the same upside down is numbered from the end nearer to the image's top left: arbitrary,
    but the same in every frame of a board at rest.
    """
    across, down = board.grid
    if board.looks_same_upside_down:
        return pixels if pixels[0].sum() < pixels[-1].sum() else pixels[::-1].copy()
    g = pixels.reshape(down, across, 2)
    centres = (g[:-1, :-1] + g[1:, 1:] + g[1:, :-1] + g[:-1, 1:]) / 4
    x = np.clip(np.rint(centres[..., 0]).astype(int), 0, picture.shape[1] - 1)
    y = np.clip(np.rint(centres[..., 1]).astype(int), 0, picture.shape[0] - 1)
    level = picture[y, x].astype(np.float64)
    even = np.add.outer(np.arange(down - 1), np.arange(across - 1)) % 2 == 0
    return pixels if level[even].mean() < level[~even].mean() else pixels[::-1].copy()


def edge_width(picture: Bytes, pixels: Floats, half: int = 6) -> float:
    """Return the width of the black-white edges around corners, px: contrast over steepest slope, the median."""
    height, width = picture.shape
    widths = []
    for u, v in np.rint(pixels[:: max(1, len(pixels) // 24)]).astype(int):
        if not (half < u < width - half - 1 and half < v < height - half - 1):
            continue
        patch = picture[v - half : v + half + 1, u - half : u + half + 1].astype(np.float64)
        slope = max(np.abs(np.diff(patch, axis=0)).max(), np.abs(np.diff(patch, axis=1)).max())
        if slope > 0:
            widths.append((np.percentile(patch, 95) - np.percentile(patch, 5)) / slope)
    return float(np.median(widths)) if widths else float("nan")
