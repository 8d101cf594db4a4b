"""Lines of sight of one view followed through the silhouettes of the others: the compiled loops.

A point is looked at in all views at once: their numbers lie side by side, `LANES` of them, and are worked on together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibration.cameras.camera_row import (
    CX,
    CY,
    FX,
    FY,
    K1,
    K2,
    K3,
    LIMIT,
    P1,
    P2,
    R00,
    R01,
    R02,
    R10,
    R11,
    R12,
    R20,
    R21,
    R22,
    SKEW,
    TX,
    TY,
    TZ,
)
from calibration.cameras.projection import project_point
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled

__all__ = ["LANES", "LATTICE_PX", "SURE", "Others", "PackedViews", "direction", "follow"]

#: Lines are known exactly for every so many pixels, and interpolated between: lenses are smooth.
LATTICE_PX = 16
#: OpenCV's distances are right to this share.
SURE = 0.95
#: Views that are worked on together: as many numbers as a processor takes at a time.
LANES = 8
#: What is known of a line of sight; of several the bits of all.
_MET, _MISSED = np.uint8(1), np.uint8(2)
#: Numbers of a view.
_NUMBERS = 36
# Where they lie from the first on, the same number of all lanes side by side. They have no sign: the compiler then
# knows that one lies beside the other. First the lens,
_FX, _SKEW, _CX, _FY, _CY, _LIMIT, _K1, _K2, _K3, _P1, _P2 = (np.uintp(LANES * n) for n in range(11))
# the image, the rectangle of the silhouette in it, what it says, where it is stored;
_LEFT, _TOP, _RIGHT, _BOTTOM, _X, _Y, _LAST_X, _LAST_Y = (np.uintp(LANES * n) for n in range(11, 19))
_CARVES, _PLAIN, _START, _WIDTH, _START_AWAY, _GAIN = (np.uintp(LANES * n) for n in range(19, 25))
# where a line begins and goes in the axes of the view;
_AT_X, _AT_Y, _AT_Z, _TO_X, _TO_Y, _TO_Z = (np.uintp(LANES * n) for n in range(25, 31))
# where a point on it is seen, its distance squared, and across the line; how far outside the silhouette it is.
_U, _V, _SQUARE, _ACROSS, _AWAY = (np.uintp(LANES * n) for n in range(31, 36))


class PackedViews(NamedTuple):
    """Cameras (C, 36), their masks and distances from these in buffers, px, and how they lie in them.

    ``masks`` has every pixel, ``away`` the distance of every two by two of them from such that show something, in twos.
    ``layout`` (C, 12) has start, width, height, x, y, the image's left, top, right and bottom, carving, plain lens and
    the start of the distances; ``gains`` (C,) how many pixels a point moves in a view at most, times its distance.
    """

    rows: Floats
    masks: Bytes
    away: Singles
    layout: Ints
    gains: Floats


class Others(NamedTuple):
    """When a point belongs to the others' hull: how many may have it outside, how many must have it inside."""

    tolerated: int
    needed: int


@compiled
def _first(view: int) -> np.uintp:
    """Return where the numbers of a view begin."""
    return np.uintp(view // LANES * _NUMBERS * LANES + view % LANES)


@compiled
def _lanes(views: PackedViews, origin: Floats) -> Floats:
    """Return the numbers of all views side by side, with where lines begin in their axes."""
    count = len(views.rows)
    lanes = np.zeros(-(-count // LANES) * _NUMBERS * LANES)
    for view in range(count):
        row, layout, n = views.rows[view], views.layout[view], _first(view)
        lens = (row[FX], row[SKEW], row[CX], row[FY], row[CY], row[LIMIT], row[K1], row[K2], row[K3], row[P1], row[P2])
        for k in range(11):
            lanes[n + _FX + np.uintp(LANES * k)] = lens[k]
        frame = (layout[5], layout[6], layout[7], layout[8], layout[3], layout[4], layout[1] - 1, layout[2] - 1)
        for k in range(8):
            lanes[n + _LEFT + np.uintp(LANES * k)] = frame[k]
        told = (layout[9], layout[10], layout[0], layout[1], layout[11])
        for k in range(5):
            lanes[n + _CARVES + np.uintp(LANES * k)] = told[k]
        lanes[n + _GAIN] = views.gains[view]
        lanes[n + _AT_X] = row[R00] * origin[0] + row[R01] * origin[1] + row[R02] * origin[2] + row[TX]
        lanes[n + _AT_Y] = row[R10] * origin[0] + row[R11] * origin[1] + row[R12] * origin[2] + row[TY]
        lanes[n + _AT_Z] = row[R20] * origin[0] + row[R21] * origin[1] + row[R22] * origin[2] + row[TZ]
    return lanes


@compiled
def _turn(rows: Floats, d: Floats, lanes: Floats) -> None:
    """Note where a line goes in the axes of all views."""
    for view in range(len(rows)):
        n = _first(view)
        lanes[n + _TO_X] = rows[view, R00] * d[0] + rows[view, R01] * d[1] + rows[view, R02] * d[2]
        lanes[n + _TO_Y] = rows[view, R10] * d[0] + rows[view, R11] * d[1] + rows[view, R12] * d[2]
        lanes[n + _TO_Z] = rows[view, R20] * d[0] + rows[view, R21] * d[1] + rows[view, R22] * d[2]


@compiled
def _project(lanes: Floats, first: np.uintp, together: np.uintp, depth: float) -> None:
    """Note where the point at a depth is seen in the views of one block, by a lens without the rarer terms."""
    for lane in range(together):
        n = first + lane
        a, b, c = lanes[n + _TO_X], lanes[n + _TO_Y], lanes[n + _TO_Z]
        x, y, z = lanes[n + _AT_X] + depth * a, lanes[n + _AT_Y] + depth * b, lanes[n + _AT_Z] + depth * c
        over = 1.0 / z
        p, q = x * over, y * over
        r2 = p * p + q * q
        radial = 1 + r2 * (lanes[n + _K1] + r2 * (lanes[n + _K2] + r2 * lanes[n + _K3]))
        p1, p2 = lanes[n + _P1], lanes[n + _P2]
        xd = p * radial + 2 * p1 * p * q + p2 * (r2 + 2 * p * p)
        yd = q * radial + p1 * (r2 + 2 * q * q) + 2 * p2 * p * q
        nowhere = (z <= 0) | (r2 > lanes[n + _LIMIT])
        u = lanes[n + _FX] * xd + lanes[n + _SKEW] * yd + lanes[n + _CX]
        v = lanes[n + _FY] * yd + lanes[n + _CY]
        lanes[n + _U] = np.nan if nowhere else u
        lanes[n + _V] = np.nan if nowhere else v
        square, along = x * x + y * y + z * z, x * a + y * b + z * c
        lanes[n + _SQUARE] = square
        lanes[n + _ACROSS] = max(square - along * along, 1e-6 * square)


@compiled
def _project_any(rows: Floats, view: int, line: tuple[Floats, Floats], depth: float, lanes: Floats) -> None:
    """Note where the point at a depth of a line (origin and direction) is seen in a view of any lens."""
    (a, b, c), (x, y, z) = line
    u, v = project_point(rows[view], a + depth * x, b + depth * y, c + depth * z)
    lanes[_first(view) + _U], lanes[_first(view) + _V] = u, v


@compiled
def _outside_rectangle(lanes: Floats, first: np.uintp, together: np.uintp) -> None:
    """Note how far outside the rectangle of its silhouette a point is seen, px: 0 if within, -1 where not known."""
    for lane in range(together):
        n = first + lane
        u, v = lanes[n + _U], lanes[n + _V]
        pictured = (lanes[n + _LEFT] <= u + 0.5) & (u + 0.5 < lanes[n + _RIGHT])
        pictured &= (lanes[n + _TOP] <= v + 0.5) & (v + 0.5 < lanes[n + _BOTTOM])
        column, row = u - lanes[n + _X], v - lanes[n + _Y]
        beside = max(max(-column, column - lanes[n + _LAST_X]), max(-row, row - lanes[n + _LAST_Y]))
        away = max(beside - 0.5, 1e-6) if beside >= 0.5 else 0.0 if pictured else 1e-6
        # A point behind a camera, or far outside its image, has no pixel.
        told = pictured | ((lanes[n + _CARVES] != 0) & (np.abs(u) < np.inf) & (np.abs(v) < np.inf))
        lanes[n + _AWAY] = away if told else -1.0


@compiled
def _rooms(lanes: Floats, first: np.uintp, together: np.uintp) -> None:
    """Turn pixels outside into how many mm a point can move at least before it comes inside.

    What is inside becomes -1, what is not known -2.
    """
    for lane in range(together):
        n = first + lane
        # A camera sees the point move by its gain times the angle: as fast as it would move across the line of sight
        # at this distance, times the sine between the lines, and faster as it comes nearer. Pixels are as large as
        # one, and half of it may be missing.
        square, away = lanes[n + _SQUARE], lanes[n + _AWAY]
        free, far = square * max(away - 1.0, 0.0), np.sqrt(square)
        speed = lanes[n + _GAIN] * np.sqrt(lanes[n + _ACROSS]) * far + 2.0 * free
        lanes[n + _AWAY] = free * far / speed if away > 0.0 else away - 1.0


@compiled
def _look_up(lanes: Floats, masks: Bytes, away: Singles, first: np.uintp, count: int) -> None:
    """Note how far outside their silhouettes, px, points are seen in views that have them in their rectangles."""
    for lane in range(count):
        n = first + np.uintp(lane)
        if lanes[n + _AWAY] == 0.0:
            i, j = int(lanes[n + _V] - lanes[n + _Y] + 0.5), int(lanes[n + _U] - lanes[n + _X] + 0.5)
            width = int(lanes[n + _WIDTH])
            if masks[int(lanes[n + _START]) + i * width + j] == 0:
                at = int(lanes[n + _START_AWAY]) + (i >> 1) * ((width + 1) >> 1) + (j >> 1)
                # No pixel is nearer: pixels lie within half of one along both axes of the middle of their four.
                lanes[n + _AWAY] = max(1e-6, 2.0 * SURE * float(away[at]) - np.sqrt(2.0))


@compiled
def _judged(lanes: Floats, count: int, own: int, others: Others) -> float:
    """Return how many mm a point can move before it belongs to the others' hull, as `_met_at` says."""
    inside, outside, largest, second = 0, 0, -1.0, -1.0
    for view in range(count):
        # Without branches: which views see a point outside is as good as chance.
        room = -2.0 if view == own else lanes[_first(view) + _AWAY]
        inside, outside = inside + (room == -1.0), outside + (room >= 0.0)
        second = max(second, min(largest, room))
        largest = max(largest, room)
    if outside <= others.tolerated:
        return -1.0 if inside >= others.needed else 0.0
    # Of the views that have it outside all but those tolerated must come inside. Nobody tolerates more than one.
    return largest if others.tolerated == 0 else second if others.tolerated == 1 else 0.0


@compiled
def _crossed(origin: Floats, d: Floats, low: Floats, high: Floats) -> tuple[float, float]:
    """Return from where to where a line lies in a box; the first is larger if it does not."""
    near, far = 0.0, np.inf
    for axis in range(3):
        if abs(d[axis]) > 1e-12:
            a, b = (low[axis] - origin[axis]) / d[axis], (high[axis] - origin[axis]) / d[axis]
            near, far = max(near, min(a, b)), min(far, max(a, b))
        elif origin[axis] < low[axis] or origin[axis] > high[axis]:
            far = -1.0
    return near, far


@compiled
def _met_at(
    reach: tuple[float, float, float],
    step: float,
    own: int,
    line: tuple[Floats, Floats],
    lanes: Floats,
    rows: Floats,
    shown: tuple[Bytes, Singles],
    others: Others,
    together: np.uintp,
) -> float:
    """Return the depth at which a line (origin and direction) meets the hull of the others, -1 if it does not.

    ``reach``: from where to where it is followed, and where it is begun, to both sides in turn. ``shown``: silhouettes
    and distances. A point can move by its room, mm, before it belongs to the hull; 0: it may within any step, negative:
    it does.
    """
    near, far, begin = reach
    masks, distances = shown
    ahead = back = begin
    for turn in range(2 * (int(max(far - near, 0.0) / step) + 1)):
        forward = turn % 2 == 0
        depth = ahead if forward else back
        if (depth > far) if forward else (depth < near):
            continue
        for block in range(0, len(rows), LANES):
            first, count = np.uintp(block * _NUMBERS), min(LANES, len(rows) - block)
            _project(lanes, first, together, depth)
            for view in range(block, block + count):
                if lanes[_first(view) + _PLAIN] == 0.0:
                    _project_any(rows, view, line, depth, lanes)
            _outside_rectangle(lanes, first, together)
            _look_up(lanes, masks, distances, first, count)
            _rooms(lanes, first, together)
        room = _judged(lanes, len(rows), own, others)
        if room < 0:
            return depth
        room = max(step, room)
        ahead += room if forward else 0.0
        back -= room if turn == 0 or not forward else 0.0
        if ahead > far and back < near:
            break
    return -1.0


@compiled
def follow(
    asked: Bools,
    where: tuple[int, int, int, int],
    origin: Floats,
    lattice: Floats,
    own: int,
    views: PackedViews,
    within: tuple[Floats, Floats],
    step: float,
    others: Others,
    together: int,
) -> Bools:
    """Follow lines through the pixels asked (h, w), ``where``: row, column, spacing and coarseness of their grid.

    ``together`` is `LANES`, kept from the compiler: it would write out each lane by itself.
    """
    height, width = asked.shape
    top, left, spacing, coarse = where
    # Of each line whether it meets the hull, as far as that is known; and how far away, if it does.
    state, depths, (low, high) = np.zeros(asked.shape, np.uint8), np.empty(asked.shape, np.float32), within
    last, d = -1.0, np.empty(3)
    todo, open_ones = np.zeros(-(-width // 8) * 8, np.uint8), np.empty(width, np.int64)
    beside = np.zeros(width + 2, np.uint8)  # made once for all rows, like the other two
    lanes, line, rows, shown = _lanes(views, origin), (origin, d), views.rows, (views.masks, views.away)
    level = coarse
    while level >= 1:
        finer = level < coarse
        for row in range(0, height, level):
            _note_open(asked, state, row, level, finer, beside, todo)
            # Those around a line that were followed before: every two of this level, a power of two, along both axes.
            up, down = row - (row & level), min(row + (row & level), height)
            for n in range(_columns_of(todo, open_ones)):
                column, some, none, guess = open_ones[n], False, False, last
                for r in (up, down):
                    for c in (column - (column & level), column + (column & level)):
                        if finer and r < height and c < width and state[r, c] != 0:
                            some, none = some or state[r, c] == _MET, none or state[r, c] == _MISSED
                            guess = depths[r, c] if state[r, c] == _MET else guess
                if some != none:
                    state[row, column] = _MET if some else _MISSED
                    depths[row, column] = guess
                    continue
                state[row, column] = _MISSED
                direction((top + row * spacing) / LATTICE_PX, (left + column * spacing) / LATTICE_PX, lattice, d)
                near, far = _crossed(origin, d, low, high)
                if not far < np.inf:  # a lens has no line there
                    continue
                _turn(rows, d, lanes)
                begin = guess if near < guess < far else 0.5 * (near + far)
                depth = _met_at((near, far, begin), step, own, line, lanes, rows, shown, others, np.uintp(together))
                if depth >= 0.0:
                    state[row, column] = _MET
                    depths[row, column] = last = depth
        level //= 2
    met: Bools = state == _MET
    return met


@compiled
def _note_open(asked: Bools, state: Bytes, row: int, level: int, finer: bool, line: Bytes, todo: Bytes) -> None:
    """Note which lines of a row are asked at a level and not known; ``finer``: there was a coarser level before.

    At the finest level, where most lines are, those around which all that were followed before agree are settled here,
    many at a time: nobody asks later how far away they meet the hull. ``line``: a row of zeros, two columns longer.
    """
    height, width = state.shape
    own, wanted = state[row], asked[row]
    if level > 1 or not finer:
        for x in range(0, width, level):
            todo[x] = np.uint8(wanted[x] & (own[x] == 0))
        return
    above, below = state[row - (row & 1)], state[row + 1 if row & 1 and row + 1 < height else row - (row & 1)]
    for x in range(width):
        line[x + 1] = above[x] | below[x]
    for x in range(width):
        around = line[x] | line[x + 2] if x & 1 else line[x + 1]
        new, agree = wanted[x] & (own[x] == 0), (around == _MET) | (around == _MISSED)
        own[x] |= around if new & agree else np.uint8(0)
        todo[x] = np.uint8(new & ~agree)


@compiled
def _columns_of(todo: Bytes, out: Ints) -> int:
    """Fill the columns of which something is set, and return how many these are."""
    eights, count = todo.view(np.uint64), 0
    for eighth in range(len(eights)):
        if eights[eighth] == np.uint64(0):
            continue  # eight at a time: few are
        for column in range(8 * eighth, 8 * eighth + 8):
            if todo[column] != 0:
                out[count] = column
                count += 1
    return count


@compiled
def direction(p: float, q: float, lattice: Floats, out: Floats) -> None:
    """Fill the direction of the line at a (row, column) of a lattice, interpolated."""
    i, j = min(int(p), lattice.shape[0] - 2), min(int(q), lattice.shape[1] - 2)
    p, q = p - i, q - j
    for axis in range(3):
        upper = (1 - q) * lattice[i, j, axis] + q * lattice[i, j + 1, axis]
        lower = (1 - q) * lattice[i + 1, j, axis] + q * lattice[i + 1, j + 1, axis]
        out[axis] = (1 - p) * upper + p * lower
