"""The outline of a silhouette on the image's edge: discs whose edge is known, shade, tails, and ways by brute force."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.hull import overlap
from capture.silhouettes.edges.image_edge import _best_way, brighter_or_darker, on_image_edge

SHAPE = (160, 200)
REACH = 10


def disc_of(radius: float) -> np.ndarray:
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    return np.asarray((rows - 80) ** 2 + (columns - 100) ** 2 <= radius**2)


def filmed(levels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a picture of grey levels, as sharp as a lens is, with noise of 1.5 levels."""
    blurred = cv2.GaussianBlur(levels.astype(np.float32), (0, 0), 0.8)
    return np.clip(np.rint(blurred + rng.normal(0.0, 1.5, SHAPE)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize(("inside", "outside", "sign"), [(120, 60, 1), (40, 90, -1)])
@pytest.mark.parametrize("radius", [34, 40, 47])
def test_the_edge_is_found_from_within_and_from_without(
    radius: float, inside: int, outside: int, sign: int, rng: np.random.Generator
) -> None:
    picture = filmed(np.where(disc_of(40), inside, outside), rng)
    found = on_image_edge(disc_of(radius), picture, REACH, sign)
    assert overlap(found, disc_of(40)) > 0.975  # half a pixel all around is 2.5 % of the area


def test_an_edge_in_shade_counts_though_one_in_the_light_is_higher(rng: np.random.Generator) -> None:
    """Half of the body lies in its own shade, 40 before 25; the border of its shade is 8 px inside, 100 before 40."""
    rows, columns = np.mgrid[: SHAPE[0], : SHAPE[1]]
    lit = columns < 100
    picture = filmed(np.where(disc_of(40), np.where(lit, 100, 40), 25), rng)
    cut = disc_of(40) & (columns < 100 + 36)
    found = on_image_edge(cut, picture, REACH, 1)
    shade = ~lit & (np.abs(rows - 80) < 25)
    assert np.count_nonzero((found ^ disc_of(40)) & shade) < 40  # of 50 rows: less than a pixel


def test_the_border_of_a_shadow_beside_a_bright_body_is_not_taken(rng: np.random.Generator) -> None:
    """Body 90, its shadow 6 px around 40, ground 160: the higher edge has the wrong side."""
    picture = filmed(np.where(disc_of(40), 90, np.where(disc_of(46), 40, 160)), rng)
    assert overlap(on_image_edge(disc_of(43), picture, REACH, 1), disc_of(40)) > 0.975


def test_a_tail_and_a_hole_stay_and_so_does_all_where_nothing_is_seen(rng: np.random.Generator) -> None:
    mask = disc_of(40).astype(np.uint8)
    cv2.line(mask, (130, 80), (190, 95), 1, 5)
    picture = filmed(np.where(mask > 0, 120, 60), rng)
    rough = cv2.dilate(mask, np.ones((3, 3), np.uint8)) > 0
    found = on_image_edge(rough, picture, REACH, 1)
    assert overlap(found, mask > 0) > 0.965
    assert cv2.connectedComponents(found.astype(np.uint8))[0] == 2 and found[90:97, 180:188].any()
    holed = disc_of(40) & ~disc_of(15)
    assert not (on_image_edge(holed, filmed(np.where(disc_of(40), 120, 60), rng), REACH, 1) & disc_of(15)).any()
    even = np.full(SHAPE, 80, np.uint8)
    for known in (mask > 0, holed, disc_of(2), np.zeros(SHAPE, bool)):
        assert (on_image_edge(known, even, REACH, 1) == known).all()
    assert (on_image_edge(disc_of(34), picture, REACH, 0) == disc_of(34)).all()


def test_a_subject_is_brighter_or_darker_only_if_it_is_so_nearly_all_around(rng: np.random.Generator) -> None:
    ground = np.full(SHAPE, 80)
    halves = np.where(np.arange(SHAPE[1]) < 100, 40, 120)
    for levels, sign in ((120, 1), (40, -1), (halves, 0)):
        picture = filmed(np.where(disc_of(40), levels, ground), rng)
        assert brighter_or_darker([disc_of(42), disc_of(38)], [picture, picture], REACH) == sign
    assert brighter_or_darker([np.zeros(SHAPE, bool)], [picture], REACH) == 0


def plain_way(gains: np.ndarray) -> list[int]:
    """Go round twice, keeping the best way to each column; return the middle half, by row."""
    rows, columns = gains.shape
    ways = {column: (gains[0, column], (column,)) for column in range(columns)}
    for row in range(1, 2 * rows):
        ways = {
            column: max(
                (ways[c][0] + gains[row % rows, column], (*ways[c][1], column)) for c in ways if abs(c - column) < 2
            )
            for column in range(columns)
        }
    _, best = max(ways.values())
    return [best[row if row >= rows // 2 else row + rows] for row in range(rows)]


def test_the_best_closed_way_is_that_of_plain_code(rng: np.random.Generator) -> None:
    for rows, columns in ((7, 3), (12, 5), (30, 9)):
        gains = rng.normal(size=(rows, columns))
        assert _best_way(gains).tolist() == plain_way(gains)


def test_a_way_closes_where_the_best_does(rng: np.random.Generator) -> None:
    """A high ridge that winds once around is followed all along, across the start too."""
    row = np.arange(60)
    ridge = np.rint(6 + 4 * np.sin(2 * np.pi * row / 60 + 1.0)).astype(int)
    gains = rng.normal(0.0, 0.1, (60, 13))
    gains[row, ridge] += 5.0
    assert (_best_way(gains) == ridge).all()
