"""Parts that look like shade, and which of them the subject has after all.

Ears, paws and a tail before a grey floor look like shade of it. What tells them is the place (the other views see
something there, well above the floor: `capture.silhouettes.views.restoration`) and that they stand out from how the
ground around is lit. Shade is smooth: the ratio of image and background is measured around, where the subject cannot
be, and carried on inwards; how far that may be wrong is how much the ratio varies over the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.backgrounds.background import SCALE, Background
from capture.backgrounds.evidence import Evidence, Window
from capture.backgrounds.uncovered import filled, spread_at, variation_of
from capture.discs import disc
from capture.mask_boxes import box_of, pixels_of
from capture.mask_runs import Runs, runs_of, runs_where
from capture.silhouettes.cleanup import Cleaning, Holes, holes_between
from capture.silhouettes.difference import PlateModel, matched_channels
from capture.silhouettes.edges.half_way import Corners, drop_ground

__all__ = ["Doubt", "doubt_of", "standing_out"]

#: Room around a silhouette in which its missing parts are looked for, share of its extent, and px.
_ROOM, _ROOM_PX = 1.0, 16
#: The same where the border cuts what is found: a share of the extent is not seen.
_ROOM_CUT = 1.5
#: Least error of the ratio that ground is lit by, share; and standard deviations that a part must stand out by.
_RATIO_ERROR = 0.03
_STANDS_OUT = 4.0
#: Ratios that ground may be lit by; pixels between silhouette and ground that are neither.
_LIT = (0.35, 1.2)
_BETWEEN_PX = 2
#: What is evident differs by so many times what is weak; holes of this radius in it are none, px.
_EVIDENT = 2
_HOLE_PX = 3
#: In windows that are larger, light is looked at in as many pixels along the longer side only.
_LARGE_PX = 80
#: Pixels along a window's rim that nothing may reach.
_RIM_PX = 3
#: What hangs together with a silhouette is looked for so much farther where it goes on, px.
_GROWS_PX = 64
#: Around what is asked the ratio's variation is measured, px.
_AROUND_PX = 25
#: In as many places, about.
_ENOUGH = 2000
#: Pixels around those whose edge is found by which it is.
_EDGE_PX = 10


@dataclass(frozen=True, eq=False)
class Doubt:
    """What differs from the background around a silhouette, shade or not.

    Attributes:
        window: rows and columns of the image that are looked at.
        plain: (h, w) the distance from the background, shade or not, in units of 1 / `SCALE` standard deviations.
        beyond: (h, w) what differs evidently and cannot be shade.
        low: from where on it differs, in the same units.
        image: (h, w, C) of the image.
        light: (C,) gain of its light.
        ground: the empty scene, of the whole image or of a part of it.
        corner: row and column of the ground at which the window begins.
        runs: of what differs and hangs together with the silhouette, as it was found; None where they are not known.
    """

    window: tuple[slice, slice]
    plain: Bytes
    beyond: Bools
    low: np.uint8
    image: Bytes
    light: Floats
    ground: Background
    corner: tuple[int, int]
    runs: Runs | None = None

    @property
    def wide(self) -> Bools:
        """(h, w) what differs."""
        return np.asarray(self.plain >= self.low)

    def by_itself(self) -> Doubt:
        """Return it with the ground of its window only: one of this image alone is not to be held as a whole."""
        centre, spread = (one[self.window].copy() for one in (self.ground.centre, self.ground.spread))
        return replace(self, ground=Background(centre, spread), corner=(0, 0))

    def around(self, box: tuple[int, int, int, int]) -> Window:
        """Return the part of the window that is needed to judge what lies in a box (left, top, width, height) of it."""
        return _with_room(box, _AROUND_PX, self.plain.shape)

    def lit(self, part: Window) -> Singles:
        """Return (h, w, C) how many times as bright as the empty scene a part of the window is, by nine pixels each."""
        (rows, columns), (top, left) = part, self.corner
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        corners = ((rows.start, columns.start), (top + rows.start, left + columns.start))
        return _ratios(self.image, self.ground.centre, self.light.astype(np.float32), 1, shape, corners)

    def evident(self, mask: Bools) -> tuple[Bools, Bools]:
        """Return (h, w) what of a silhouette evidently differs from the background, and what else does, no shade."""
        more = self.beyond & ~mask
        x, y, w, h = box_of(mask)
        least = _nine_times(_high(self.low))
        place = (y, y + h, x, x + w)
        gaps = mask[y : y + h, x : x + w] & (_evidently(self.plain, place, least, place) == 0)
        left, top, across, down = box_of(gaps)
        if across == 0:  # most subjects differ all over
            return mask, more
        # Whether a gap is narrow is told by what lies within twice the radius.
        here = _with_room((left + x, top + y, across, down), 2 * _HOLE_PX, mask.shape)
        own, differs = mask.copy(), _evidently(self.plain, _place(here), least, _place(here))
        own[here] &= cv2.morphologyEx(differs, cv2.MORPH_CLOSE, disc(_HOLE_PX)).view(np.bool_)
        return own, more

    def whole(self, mask: Bools, holes: Holes) -> Bools:
        """Return (h, w) a silhouette in the window with what differs and hangs together with it, and with its holes."""
        runs = self.runs
        if runs is None or int(runs.counts(mask).sum()) < np.count_nonzero(mask):  # it has gained others
            runs = runs_where(self.plain, self.low, mask)
        out = runs.drawn(runs.holding(mask))
        holes.fill(out, np.ones(len(holes.part), dtype=bool))
        return out


def doubt_of(
    image: Bytes,
    mask: Bools,
    model: PlateModel,
    cleaning: Cleaning,
    light: Floats | None = None,
    *,
    apart: bool = True,
    known: Evidence | None = None,
    box: tuple[int, int, int, int] | None = None,
) -> Doubt | None:
    """Return what differs around a silhouette (H, W) in an image of known ``light``; None where there is none.

    The window holds the silhouette and what differs and hangs together with it, clear of its rim; where the image's own
    border cuts that, it reaches there: what lies beyond is not known, and the views must see that. ``apart``: it
    also holds what may be shade and does not hang together with the silhouette, but is no speck and may be a thin part.
    ``known``: what was measured of the image before, and ``box`` (left, top, width, height) where the silhouette is,
    if that is known. The model is one of a single look.
    """
    box = box_of(mask) if box is None else box
    if box[2] == 0:
        return None
    if light is None:
        light = model.light(image)
    low = np.uint8(min(255.0, cleaning.low * SCALE))
    frame = matched_channels(image, model.background)
    evidence = model.measuring(frame, light) if known is None else known
    # What does not hang together with the silhouette may be anywhere in its room; what does is followed from there.
    for share in (_ROOM, _ROOM_CUT):
        room = _around(box, share, mask.shape)
        window = room if apart else _within(box, evidence.rectangle(), room)
        while True:
            evidence = model.measured(frame, window, light, evidence)
            runs = runs_where(evidence.plain, low, mask, window)
            found = runs.holding(mask, (window[0].start, window[1].start))
            reaches = _reaching(runs, found)
            larger = _grown(window, reaches, room)
            if larger == window:
                break
            window = larger
        cut = [at and reached for at, reached in zip(_at_border(window, mask.shape), reaches, strict=True)]
        if not any(cut) or room == _around(box, _ROOM_CUT, mask.shape):
            break
    known_here = _place(evidence.rectangle())
    beyond = _evidently(evidence.shaded, _place(room), _nine_times(_high(low)), known_here).view(np.bool_)
    chosen = found | (runs.areas >= cleaning.least_px) if apart else found
    boxes = [_moved(runs.rectangle(chosen), window)]
    if beyond.any():
        boxes.append(_moved(box_of(beyond), room))
    here = _needed(room, boxes, cut)
    evidence = model.measured(frame, here, light, evidence)
    rows, columns = here
    plain = evidence.plain[here].copy()
    beyond = beyond[rows.start - room[0].start : rows.stop - room[0].start][
        :, columns.start - room[1].start : columns.stop - room[1].start
    ].copy()
    for image_of in (plain, beyond):
        for rim, is_cut in zip(_rims(image_of), cut, strict=True):
            if not is_cut:
                rim[:] = 0
    corner, moved = (rows.start, columns.start), (window[0].start - rows.start, window[1].start - columns.start)
    joined = None if any(reaches) else runs.only(found, plain.shape, moved)  # what reaches a rim may end there
    return Doubt(here, plain, beyond, low, frame[here].copy(), light, model.background, corner, joined)


def _around(box: tuple[int, int, int, int], share: float, shape: tuple[int, ...]) -> Window:
    """Return a box (left, top, width, height) with room of a share of its extent, and some pixels, in an image."""
    return _with_room(box, round(share * max(box[2:])) + _ROOM_PX, shape)


def _with_room(box: tuple[int, int, int, int], room: int, shape: tuple[int, ...]) -> Window:
    """Return a box (left, top, width, height) with so many pixels of room, in an image (H, W)."""
    x, y, w, h = box
    return (
        slice(max(0, y - room), min(shape[0], y + h + room)),
        slice(max(0, x - room), min(shape[1], x + w + room)),
    )


def _place(window: Window) -> tuple[int, int, int, int]:
    """Return the first row of a window, the one after the last, and columns likewise."""
    return window[0].start, window[0].stop, window[1].start, window[1].stop


@compiled
def _evidently(
    values: Bytes, place: tuple[int, int, int, int], least: np.uint16, known: tuple[int, int, int, int]
) -> Bytes:
    """Return (h, w) 1 where nine pixels, of (H, W) between two rows and columns, sum up to ``least``, else 0.

    Beyond the image it is as mirrored at its outermost pixels. More than a pixel beyond what is ``known``, rows and
    columns likewise, nothing does.
    """
    top, bottom, left, right = place
    height, width = values.shape
    out, sums = np.zeros((bottom - top, right - left), np.uint8), np.empty(width + 2, np.uint16)
    # Nine pixels reach one pixel beyond what is known.
    first, last = max(top, known[0] - 1), min(bottom, known[1] + 1)
    begin, end = max(left, known[2] - 1), min(right, known[3] + 1)
    line, count, reached = sums[1 : width + 1], max(end - begin, 0), slice(max(begin - 1, 0), min(end + 1, width))
    near = line[reached]
    for y in range(first, last):
        above, below = abs(y - 1), y + 1 if y + 1 < height else max(0, height - 2)
        before, own, after = values[above, reached], values[y, reached], values[below, reached]
        for x in range(len(near)):
            near[x] = np.uint16(np.uint16(before[x]) + np.uint16(own[x]) + np.uint16(after[x]))
        sums[0], sums[width + 1] = line[min(1, width - 1)], line[max(0, width - 2)]
        one, two, three = sums[begin:end], sums[begin + 1 : end + 1], sums[begin + 2 : end + 2]
        kept = out[y - top, begin - left :]
        for x in range(count):
            kept[x] = np.uint8(np.uint16(one[x] + two[x] + three[x]) >= least)
    return out


def _reaching(runs: Runs, chosen: Bools) -> tuple[bool, bool, bool, bool]:
    """Return whether the parts chosen (parts,) reach the upper, lower, left and right rim of their window."""
    height, width = runs.shape
    left, top, w, h = runs.rectangle(chosen)
    return top < _RIM_PX, top + h > height - _RIM_PX, left < _RIM_PX, left + w > width - _RIM_PX


def _within(box: tuple[int, int, int, int], known: Window, room: Window) -> Window:
    """Return the rectangle of a box (left, top, width, height) and what is known already, in a room that holds it."""
    x, y, w, h = box
    rows, columns = room
    if known[0].stop == 0:  # nothing is
        return slice(y, y + h), slice(x, x + w)
    return (
        slice(max(rows.start, min(y, known[0].start)), min(rows.stop, max(y + h, known[0].stop))),
        slice(max(columns.start, min(x, known[1].start)), min(columns.stop, max(x + w, known[1].stop))),
    )


def _grown(window: Window, reached: tuple[bool, bool, bool, bool], room: Window) -> Window:
    """Return a window larger, in its room, on the sides (upper, lower, left, right) that are reached."""
    up, down, left, right = (_GROWS_PX * side for side in reached)
    rows, columns = window
    return (
        slice(max(room[0].start, rows.start - up), min(room[0].stop, rows.stop + down)),
        slice(max(room[1].start, columns.start - left), min(room[1].stop, columns.stop + right)),
    )


def _at_border(window: Window, shape: tuple[int, ...]) -> tuple[bool, bool, bool, bool]:
    """Return whether a window of an image (H, W) lies at its upper, lower, left and right border."""
    rows, columns = window
    return rows.start == 0, rows.stop == shape[0], columns.start == 0, columns.stop == shape[1]


def _moved(box: tuple[int, int, int, int], window: Window) -> tuple[int, int, int, int]:
    """Return where a box (left, top, width, height) of a window lies in the image."""
    return box[0] + window[1].start, box[1] + window[0].start, box[2], box[3]


def _needed(room: Window, boxes: Sequence[tuple[int, int, int, int]], cut: Sequence[bool]) -> Window:
    """Return the part of a room that is needed to judge what lies in boxes (left, top, width, height) of the image.

    It reaches the sides (upper, lower, left, right) that ``cut`` it.
    """
    rows, columns = room
    around = _AROUND_PX + _RIM_PX
    top, bottom = min(y for _, y, _, _ in boxes), max(y + h for _, y, _, h in boxes)
    left, right = min(x for x, _, _, _ in boxes), max(x + w for x, _, w, _ in boxes)
    return (
        slice(
            rows.start if cut[0] else max(rows.start, top - around),
            rows.stop if cut[1] else min(rows.stop, bottom + around),
        ),
        slice(
            columns.start if cut[2] else max(columns.start, left - around),
            columns.stop if cut[3] else min(columns.stop, right + around),
        ),
    )


def _high(low: np.uint8) -> np.uint8:
    """Return from where on something differs evidently."""
    return np.uint8(min(255, _EVIDENT * int(low)))


def _nine_times(value: np.uint8) -> np.uint16:
    """Return what nine pixels sum up to, at least, whose rounded mean is a value."""
    return np.uint16(9 * int(value) - 4)


def _rims(image: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the pixels along the upper, lower, left and right rim of an image (h, w)."""
    return image[:_RIM_PX], image[-_RIM_PX:], image[:, :_RIM_PX], image[:, -_RIM_PX:]


def standing_out(doubt: Doubt, mask: Bools, seen: Bools) -> Bools:
    """Return the silhouette (h, w) with those of the pixels ``seen`` (h, w) by others that stand out from the shade.

    Both are of the doubt's window.
    """
    at = pixels_of(seen, without=mask)
    if at.shape[1] == 0:
        return mask
    rows, columns = here = doubt.around(_box_with(box_of(mask), at))
    at -= np.array([[rows.start], [columns.start]])
    corner, (top, left) = (rows.start, columns.start), doubt.corner
    corners = (corner, (top + rows.start, left + columns.start))
    own = np.ascontiguousarray(mask[here])
    covered = own.copy()
    covered[at[0], at[1]] = True
    step = -(-max(own.shape) // _LARGE_PX)
    ground, gain = doubt.ground, doubt.light.astype(np.float32)
    ratio, error = _lighting(_ratios(doubt.image, ground.centre, gain, step, own.shape, corners), covered, at, step)
    found = own.copy()
    away = _differs(doubt.image, (ground.centre, ground.spread, gain), at, ratio, error, corners)
    found[at[0], at[1]] = away > _STANDS_OUT**2
    found = _without_specks(found, own, max(Cleaning.least_px, Cleaning.hole_share * float(np.count_nonzero(own))))
    x, y, w, h = box_of(found, without=own)
    if w == 0:
        return mask
    # Only what is new has an edge to be found.
    near = slice(max(0, y - _EDGE_PX), y + h + _EDGE_PX), slice(max(0, x - _EDGE_PX), x + w + _EDGE_PX)
    moved = tuple((row + near[0].start, column + near[1].start) for row, column in corners)
    out, some = mask.copy(), found[near].copy()
    drop_ground(some, doubt.image, ground.centre, doubt.light, own[near], (moved[0], moved[1]))
    out[here][near] |= some
    return out


def _box_with(box: tuple[int, int, int, int], at: Ints) -> tuple[int, int, int, int]:
    """Return a box (left, top, width, height; none if it has no width) grown to hold pixels (2, n)."""
    x, y, w, h = box
    (top, left), (bottom, right) = at.min(axis=1).tolist(), at.max(axis=1).tolist()
    if w > 0:
        top, left, bottom, right = min(top, y), min(left, x), max(bottom, y + h - 1), max(right, x + w - 1)
    return left, top, right + 1 - left, bottom + 1 - top


def _lighting(ratio: Singles, covered: Bools, at: Ints, step: int) -> tuple[Singles, Singles]:
    """Return (n, C) the ratio that the ground is lit by at pixels (2, n) under what is covered, and its error.

    Light is smooth: ``ratio`` is that of every ``step``-th pixel along both axes.
    """
    free = _lit(ratio, cv2.dilate(covered.view(np.uint8), disc(_BETWEEN_PX)), step)
    cells = tuple(at // step)
    if not free.any():
        return np.ones_like(ratio[cells]), np.ones_like(ratio[cells])
    covered = covered[::step, ::step]
    near = cv2.distanceTransform((~covered).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5) < _AROUND_PX / step
    variation = variation_of(ratio, free, near, step, _ENOUGH)
    distance = np.float32(step) * cv2.distanceTransform((~free).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return filled(ratio, free)[cells], spread_at(distance[cells], variation)


@compiled
def _ratios(
    image: Bytes, centre: Singles, gain: Singles, step: int, shape: tuple[int, int], corners: Corners
) -> Singles:
    """Return (h, w, C) image over ground of every ``step``-th pixel along both axes, each the mean of nine pixels.

    Of a part of that ``shape`` which begins at the corners (row, column) of image and ground. Beyond the part it is as
    mirrored at its outermost pixels.
    """
    (height, width), channels = shape, image.shape[2]
    (top, left), (first, start) = corners
    out = np.empty((-(-height // step), -(-width // step), channels), np.float32)
    now, then = np.empty(width, np.float32), np.empty(width, np.float32)
    for row in range(out.shape[0]):
        y = row * step
        above, below = min(abs(y - 1), height - 1), y + 1 if y + 1 < height else max(0, height - 2)
        for c in range(channels):
            # Three rows are summed up first: this loop takes many pixels at a time.
            a, b = image[top + above, left : left + width, c], image[top + y, left : left + width, c]
            d = image[top + below, left : left + width, c]
            for x in range(width):
                now[x] = np.float32(int(a[x]) + int(b[x]) + int(d[x]))
            e, f = centre[first + above, start : start + width, c], centre[first + y, start : start + width, c]
            g = centre[first + below, start : start + width, c]
            for x in range(width):
                then[x] = e[x] + f[x] + g[x]
            for column in range(out.shape[1]):
                x = column * step
                before, after = min(abs(x - 1), width - 1), x + 1 if x + 1 < width else max(0, width - 2)
                ground = (then[before] + then[x] + then[after]) * gain[c] / np.float32(9.0)
                mean = (now[before] + now[x] + now[after]) / np.float32(9.0)
                out[row, column, c] = mean / max(ground, np.float32(8.0))
    return out


@compiled
def _lit(ratio: Singles, covered: Bytes, step: int) -> Bools:
    """Return (h, w) where all channels of a ratio (h, w, C) may be ground's, and every ``step``-th pixel is free."""
    height, width, channels = ratio.shape
    out = np.empty((height, width), np.bool_)
    for y in range(height):
        for x in range(width):
            free = covered[y * step, x * step] == 0
            for c in range(channels):
                free &= (ratio[y, x, c] > _LIT[0]) & (ratio[y, x, c] < _LIT[1])
            out[y, x] = free
    return out


@compiled
def _differs(
    image: Bytes, grounds: tuple[Singles, Singles, Singles], at: Ints, ratio: Singles, error: Singles, corners: Corners
) -> Singles:
    """Return (n,) the mean square by which pixels differ from ground lit by ratios (n, C), in units of their error.

    ``grounds``: its brightness, spread and light. Pixels (2, n) are counted from the corners of image and ground.
    """
    centre, spread, gain = grounds
    (top, left), (first, start) = corners
    count, channels = ratio.shape
    out = np.empty(count, np.float32)
    for n in range(count):
        y, x, total = at[0, n], at[1, n], np.float32(0.0)
        for c in range(channels):
            ground = centre[first + y, start + x, c] * gain[c]
            away, sigma = (
                np.float32(image[top + y, left + x, c]) - ratio[n, c] * ground,
                spread[first + y, start + x, c],
            )
            unsure = (error[n, c] + np.float32(_RATIO_ERROR)) * ground
            total += away * away / (sigma * sigma + unsure * unsure)
        out[n] = total / np.float32(channels)
    return out


def _without_specks(mask: Bools, body: Bools, least_px: float) -> Bools:
    """Return the parts of a mask (h, w) that hold some of a body or are no specks: a tail may lose its base.

    Holes that are as small are filled.
    """
    runs = runs_of(mask, diagonal=True)
    chosen = runs.holding(body) | (runs.areas >= least_px)
    out, holes = runs.drawn(chosen), holes_between(runs, chosen)
    holes.fill(out, holes.areas <= least_px)
    return out
