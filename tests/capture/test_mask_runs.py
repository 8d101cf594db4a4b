"""Parts of masks by their runs, against OpenCV's labels of the same masks."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from capture.mask_boxes import box_of, pixels_of
from capture.mask_runs import runs_of, runs_where
from capture.silhouettes.cleanup import fill_holes, holes_of


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.45, 0.6, 0.9, 1.0])
def test_parts_are_those_of_the_label_image(rng: np.random.Generator, diagonal: bool, share: float) -> None:
    for shape in ((40, 57), (1, 9), (9, 1)):
        mask, other = rng.random(shape) < share, rng.random(shape) < 0.5
        count, labels, stats, _ = cv2.connectedComponentsWithStats(
            mask.view(np.uint8), connectivity=8 if diagonal else 4
        )
        runs = runs_of(mask, diagonal=diagonal)
        assert len(runs.areas) == count - 1
        row, start, _, of_run = runs.table
        number = labels[row, start]  # OpenCV's number of each run's part
        assert len(np.unique(np.stack([number, of_run]), axis=1).T) == len(runs.areas)
        for part in range(len(runs.areas)):
            chosen = np.arange(len(runs.areas)) == part
            of = number[of_run == part][0]
            assert np.array_equal(runs.drawn(chosen), labels == of)
            assert runs.areas[part] == stats[of, cv2.CC_STAT_AREA]
            assert runs.counts(other)[part] == np.count_nonzero(other[labels == of])
            assert runs.rectangle(chosen) == tuple(stats[of, :4])


def test_holes_are_filled_by_size_and_bays_are_not() -> None:
    mask = np.ones((12, 14), dtype=bool)
    mask[2:4, 2:4] = False  # a hole of 4
    mask[6:9, 5:8] = False  # a hole of 9
    mask[5, 8] = False  # meets it in a corner only: a hole of 1
    mask[10:, 11] = False  # a bay
    filled = fill_holes(mask, 4)
    assert filled[2:4, 2:4].all() and filled[5, 8] and not filled[6:9, 5:8].any() and not filled[10:, 11].any()
    assert fill_holes(mask, 9)[6:9, 5:8].all() and not fill_holes(mask, 1e9)[10:, 11].any()


@pytest.mark.parametrize("shape", [(16, 64), (20, 57), (3, 5), (700, 40)])
def test_runs_between_others_are_those_of_the_opposite(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    mask = cv2.blur(rng.random(shape), (5, 3)) > 0.5  # runs longer than the eight pixels that are looked at at a time
    mask[shape[0] // 2] = mask[0, 0] = mask[-1, -1] = True
    wanted = runs_of(np.ascontiguousarray(~mask), diagonal=False)
    runs = runs_of(mask, diagonal=True)
    found, inner = runs.between(runs.all())
    np.testing.assert_array_equal(found.drawn(found.all()), ~mask)
    np.testing.assert_array_equal(found.table, wanted.table)
    np.testing.assert_array_equal(found.areas, wanted.areas)
    rim = np.ones(shape, dtype=bool)
    rim[1:-1, 1:-1] = False
    np.testing.assert_array_equal(inner, ~wanted.holding(rim))


@pytest.mark.parametrize("shape", [(16, 64), (20, 57), (3, 5), (70, 200)])
def test_runs_where_a_value_is_high_or_a_mask_is_set(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    values, own = rng.integers(0, 256, shape, dtype=np.uint8), rng.random(shape) < 0.1
    for mask, found in (
        (values >= 200, runs_where(values, np.uint8(200))),
        ((values >= 200) | own, runs_where(values, np.uint8(200), own)),
    ):
        wanted = runs_of(mask, diagonal=True)
        np.testing.assert_array_equal(found.table, wanted.table)
        np.testing.assert_array_equal(found.counts_from(values, np.uint8(230)), wanted.counts(values >= 230))
        np.testing.assert_array_equal(found.holding(own), wanted.counts(own) > 0)
    part = (slice(1, shape[0] - 1), slice(1, shape[1]))
    here = runs_where(values, np.uint8(200), own, part)
    wanted = runs_of(((values >= 200) | own)[part], diagonal=True)
    np.testing.assert_array_equal(here.table, wanted.table)
    np.testing.assert_array_equal(here.holding(own, (1, 1)), wanted.counts(own[part]) > 0)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_holes_are_the_background_that_no_border_touches(rng: np.random.Generator, share: float) -> None:
    mask = np.zeros((40, 57), dtype=bool)
    mask[4:30, 9:50] = rng.random((26, 41)) < share
    count, labels, stats, _ = cv2.connectedComponentsWithStats((~mask).view(np.uint8), connectivity=4)
    outer = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
    inner = np.setdiff1d(np.arange(1, count), outer)
    holes = holes_of(mask)
    assert sorted(holes.areas.tolist()) == sorted(stats[inner, cv2.CC_STAT_AREA].tolist())
    filled = mask.copy()
    holes.fill(filled, np.ones(len(holes.part), dtype=bool))
    np.testing.assert_array_equal(filled, mask | np.isin(labels, inner))
    for part in (mask, mask[5:, 10:]):
        assert box_of(part) == tuple(cv2.boundingRect(np.ascontiguousarray(part).view(np.uint8)))
    assert box_of(mask, (slice(4, 30), slice(9, 50))) == box_of(mask)
    other = rng.random(mask.shape) < 0.9
    assert box_of(mask, without=other) == box_of(mask & ~other)


@pytest.mark.parametrize("shape", [(1, 1), (5, 8), (40, 61), (0, 7)])
@pytest.mark.parametrize("share", [0.0, 0.02, 1.0])
def test_the_pixels_of_a_mask_come_row_by_row(shape: tuple[int, int], share: float, rng: np.random.Generator) -> None:
    mask, other = rng.random(shape) < share, rng.random(shape) < 0.3
    np.testing.assert_array_equal(pixels_of(mask, without=other), np.nonzero(mask & ~other))


def test_some_parts_of_runs_are_those_of_a_larger_mask(rng: np.random.Generator) -> None:
    mask = rng.random((30, 40)) < 0.3
    runs = runs_of(mask, diagonal=True)
    chosen = rng.random(len(runs.areas)) < 0.4
    some = runs.only(chosen, (50, 60), (7, 11))
    larger = np.zeros((50, 60), dtype=bool)
    larger[7:37, 11:51] = runs.drawn(chosen)
    np.testing.assert_array_equal(some.drawn(some.all()), larger)
    np.testing.assert_array_equal(some.areas, runs.areas[chosen])
    np.testing.assert_array_equal(some.counts(larger), some.areas)
