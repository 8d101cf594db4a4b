"""Detection: reference corners of hard pictures, small slanted boards, blur, still frames, any number of workers."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from board_scenes import CHARUCO, scene

from calibration.boards.board import Board
from calibration.boards.detection import BoardView, CameraDetections, detect_boards, detect_in_image
from calibration.boards.frame_choice import choose_frames, refuse_rolling_duplicates, sharp_views
from calibration.boards.printing import board_image
from calibration.boards.sightings import merge_sightings
from calibration.foundation.errors import InputError

CHESS = Board("chessboard", 9, 7, 115.0)


def slanted(board: Board, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A board seen far and flat: squares of about 18 x 8 px; the picture and the true corners."""
    scale, margin = 2.0, 60.0
    flat = board_image(board, pixels_per_mm=scale, margin_mm=margin)
    h, w = flat.shape
    quad = np.array([[90, 150], [300, 120], [390, 190], [150, 235]], np.float32)
    warp = cv2.getPerspectiveTransform(np.array([[0, 0], [w, 0], [w, h], [0, h]], np.float32), quad)
    big = cv2.warpPerspective(flat, np.diag([4.0, 4.0, 1.0]) @ warp, (4 * 480, 4 * 320), borderValue=90)
    # average 4 x 4 blocks: what a sensor does
    small = big.reshape(320, 4, 480, 4).mean((1, 3))
    small = cv2.GaussianBlur(small, (0, 0), 0.7) + np.random.default_rng(seed).normal(0, 1.5, small.shape)
    points = ((board.points_mm[:, :2] + board.square_mm + margin) * scale - 0.5).reshape(-1, 1, 2)
    true = cv2.perspectiveTransform(points, np.diag([4.0, 4.0, 1.0]) @ warp).reshape(-1, 2)
    return np.clip(small, 0, 255).astype(np.uint8), (true - 1.5) / 4


def test_a_small_slanted_board_is_found_to_a_tenth_of_a_pixel() -> None:
    image, true = slanted(CHESS)
    view = detect_in_image(image, (CHESS,))[0]
    found = view.pixels if np.linalg.norm(view.pixels[0] - true[0]) < 5 else view.pixels[::-1]
    assert np.sqrt(((found - true) ** 2).sum(1).mean()) < 0.15


def test_workers_change_nothing_and_repeats_are_noticed() -> None:
    image, _ = slanted(CHESS)
    frames = [(i, np.roll(image, 3 * (i // 2), axis=1)) for i in range(6)]
    one = detect_boards(frames, (CHESS,), name="a", workers=1)
    two = detect_boards(frames, (CHESS,), name="a", workers=2)
    assert one.fresh.tolist() == [True, False] * 3 == two.fresh.tolist()
    assert [f for f, _ in one.views] == [0, 2, 4] == [f for f, _ in two.views]
    assert all((a.pixels == b.pixels).all() for (_, a), (_, b) in zip(one.views, two.views, strict=True))


def test_a_board_seen_from_behind_keeps_its_numbers() -> None:
    image = board_image(CHARUCO, pixels_per_mm=2)
    front = detect_in_image(image, (CHARUCO,))[0]
    back = detect_in_image(cv2.flip(image, 1), (CHARUCO,))[0]
    assert (front.corner == back.corner).all()
    assert np.abs(image.shape[1] - 1 - back.pixels[:, 0] - front.pixels[:, 0]).max() < 0.2


def test_blurred_views_are_left_out() -> None:
    image = board_image(CHARUCO, pixels_per_mm=2)
    sharp, soft = (detect_in_image(p, (CHARUCO,))[0] for p in (image, cv2.GaussianBlur(image, (0, 0), 3)))
    assert sharp.edge_px < 1.5 and soft.edge_px > 4.0
    views = tuple((i, soft if i == 4 else sharp) for i in range(6))
    found = CameraDetections("a", (100, 100), np.arange(6), np.ones(6, bool), views)
    kept, dropped = sharp_views(found)
    assert dropped == 1 and [f for f, _ in kept.views] == [0, 1, 2, 3, 5]


def test_frames_are_chosen_for_coverage_and_still_ones_averaged() -> None:
    table = scene(1, cameras=3, frames=40).sightings
    chosen, choice = choose_frames(table, 12)
    assert choice.chosen == 12 == len(np.unique(chosen.frame)) and choice.still == 0
    frames = np.unique(table.frame)
    first = np.isin(table.frame, frames[:12])

    def covered(t) -> int:
        return len(np.unique(np.column_stack([t.camera, t.pixels // 64]), axis=0))

    assert covered(chosen) > covered(table.where(first))
    still = table.of_frames(frames[:1])
    rng = np.random.default_rng(0)
    from dataclasses import replace

    repeated = [
        replace(still, frame=still.frame + i, pixels=still.pixels + rng.normal(0, 0.1, still.pixels.shape))
        for i in range(9)
    ]
    joined = replace(
        still,
        **{
            k: np.concatenate([getattr(r, k) for r in repeated])
            for k in ("camera", "frame", "board", "corner", "pixels", "velocity")
        },
    ).sorted()
    averaged, choice = choose_frames(joined, 100)
    assert choice.still == 8 and len(averaged) == len(still)
    assert np.sqrt(((averaged.pixels - still.pixels) ** 2).mean()) < 0.07  # 0.1 px over 9 frames, medians


def test_rolling_duplicates_are_refused() -> None:
    def camera(name: str, fresh: list[bool]) -> CameraDetections:
        view = BoardView(0, np.arange(4), np.zeros((4, 2)), 1.0)
        return CameraDetections(name, (10, 10), np.arange(len(fresh)), np.array(fresh), ((0, view),))

    steady = camera("a", [True] * 10)
    with pytest.raises(InputError, match="'b' repeats 5 of 10 frames"):
        refuse_rolling_duplicates([steady, camera("b", [True, False] * 5)])
    both = [camera(n, [True, False] * 5) for n in "ab"]  # a transcoded recording: all repeat together
    assert len(refuse_rolling_duplicates(both)) == 2
    with pytest.raises(InputError, match="same name"):
        merge_sightings([steady.sightings((CHARUCO,))] * 2)


def test_wrong_images_are_refused() -> None:
    with pytest.raises(InputError, match="8-bit"):
        detect_in_image(np.zeros((10, 10)), (CHARUCO,))
    with pytest.raises(InputError, match="no frame"):
        detect_boards([], (CHARUCO,), name="a")
    with pytest.raises(InputError, match="frame 1 is 30x20"):
        detect_boards([(0, np.zeros((10, 10), np.uint8)), (1, np.zeros((20, 30), np.uint8))], (CHARUCO,), name="a")


@pytest.mark.realdata
def test_reference_corners_of_hard_pictures(shared_data: Path) -> None:
    """OpenCV's own test pictures: found, and near the reference (which was set by hand)."""
    folder = shared_data / "opencv_boards" / "cameracalibration"
    found = 0
    for i in range(1, 10):
        storage = cv2.FileStorage(str(folder / f"chess_corners{i}.dat"), cv2.FILE_STORAGE_READ)
        want = storage.getNode("corners").mat()
        storage.release()
        rows, columns = want.shape[:2]
        board = Board("chessboard", columns + 1, rows + 1, 10.0)
        views = detect_in_image(cv2.imread(str(folder / f"chess{i}.png")), (board,))
        if not views:
            continue
        found += 1
        reference = want.reshape(-1, 2)
        nearest = np.linalg.norm(views[0].pixels[:, None] - reference[None], axis=-1).min(1)
        assert np.median(nearest) < 0.6 and nearest.max() < 2.5
    assert found >= 7


@pytest.mark.realdata
def test_negative_pictures_show_no_board(shared_data: Path) -> None:
    folder = shared_data / "opencv_boards" / "cameracalibration"
    for i in (1, 2, 3):
        image = cv2.imread(str(folder / f"negative_{i}.png"))
        assert detect_in_image(image, (Board("chessboard", 9, 7, 10.0),)) == ()
