"""Holes and bites of a silhouette that the other views close.

A bald patch, an ear before the body, a back in the shade of the subject itself look like ground, lit or in shade. Where
a line of sight passes through the inside of what the other views show, clear of the floor, the subject is in its way.
But the hull of few views is larger than the subject; so the image has its say as well: what lies in the hull is
regained where it stands out from how the ground is lit, with the narrow gaps between that and the silhouette; and the
silhouette must hold most of the rim of what is regained. A hole through which the ground shows as it is stays open.
"""

from __future__ import annotations

import cv2
import numpy as np

from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from capture.mask_runs import runs_of
from capture.silhouettes.cleanup import Cleaning, holes_of
from capture.silhouettes.doubts import Doubt, standing_out

__all__ = ["without_gaps"]

#: Gaps up to twice this share of the silhouette's size (root of its area) are narrow.
_NARROW = 0.07
#: A hole is closed if this share of it lies in the others' hull, and if it differs from the ground in more than half.
_COVERED, _DIFFERING = 0.9, 0.5
#: A part is ground if light changes towards the ground by less than this share of the change towards the silhouette.
_NEARER = 0.5
#: Light on both sides of a rim is compared so many pixels apart, px.
_ACROSS_PX = 3
#: A bite has the silhouette along this share of its rim.
_HELD = 0.55


def without_gaps(doubt: Doubt, mask: Bools, seen: Bools, inside: Bools) -> Bools:
    """Return the silhouette (h, w) with what it lacks of pixels that the other views have.

    All are of the doubt's window. ``seen`` by the others clear of the floor is given back where it stands out; what is
    ``inside`` their hull, which may differ from the ground or be enclosed, as said above.
    """
    if not (seen.any() or inside.any()):
        return mask
    x, y, w, h = cv2.boundingRect((mask | seen | inside).view(np.uint8))
    here = (slice(y, y + h), slice(x, x + w))
    found = standing_out(doubt, mask, seen | (inside & doubt.wide))
    body, found, inside = mask[here] | (found & seen)[here], found[here], inside[here]
    differs = cv2.blur(doubt.plain, (3, 3))[here] >= doubt.low
    body = _closed(body, inside, differs)
    radius = max(2.0, _NARROW * float(np.sqrt(np.count_nonzero(found))))
    between = _closing(found | body, radius) & ~_closing(body, radius)
    more = body | found | (between & inside & differs)
    out = mask.copy()
    regained = _held(more, body)
    if regained.any():
        regained = _unlike_the_ground(regained, body, doubt.lit(here))
    out[here] = _closed(body | regained, inside, differs)
    return out


def _closing(mask: Bools, radius: float) -> Bools:
    """Return a mask (h, w) grown and shrunk again by a radius, px: distances cost less than a large disc."""
    room = int(radius) + 2
    padded = cv2.copyMakeBorder((~mask).view(np.uint8), *(4 * (room,)), cv2.BORDER_CONSTANT, value=1)
    grown = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_5) <= radius
    inner = cv2.distanceTransform(grown.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(inner[room:-room, room:-room] > radius) | mask


def _held(found: Bools, mask: Bools) -> Bools:
    """Return what was found beyond a mask (h, w) in parts of which the mask holds most of the rim."""
    new = found & ~mask
    runs = runs_of(new, diagonal=False)
    rim, own = _rims(new, mask, runs.table, len(runs.areas))
    return runs.drawn(own > _HELD * rim)


def _unlike_the_ground(new: Bools, mask: Bools, lit: Singles) -> Bools:
    """Return those parts beyond a mask (h, w) that are not lit (h, w, C) much more like the ground beside them."""
    runs = runs_of(new, diagonal=False)
    sides, change = _changes(new, mask, lit, runs.table, len(runs.areas))
    # Mean changes, compared without a division: a part may be enclosed, or have no room around.
    return runs.drawn(change[0] * sides[1] >= _NEARER * change[1] * sides[0])


@compiled
def _changes(new: Bools, mask: Bools, lit: Singles, table: Ints, parts: int) -> tuple[Ints, Floats]:
    """Return (2, parts) how many sides of parts face the ground, and a mask; and how much the light changes there.

    ``table``: (4, n) the parts' runs, as `Runs` has them.
    """
    height, width, channels = lit.shape
    sides, change = np.zeros((2, parts), np.int64), np.zeros((2, parts))
    for n in range(table.shape[1]):
        y, first, last, part = table[0, n], table[1, n], table[2, n], table[3, n]
        for x in range(first, last):
            for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
                v, u = y + _ACROSS_PX * dy, x + _ACROSS_PX * dx
                if not (0 <= v < height and 0 <= u < width) or new[y + dy, x + dx] or new[v, u]:
                    continue
                which = int(mask[v, u])
                if which != int(mask[y + dy, x + dx]):
                    continue
                sides[which, part] += 1
                for c in range(channels):
                    change[which, part] += abs(lit[y, x, c] - lit[v, u, c])
    return sides, change


@compiled
def _rims(new: Bools, mask: Bools, table: Ints, parts: int) -> tuple[Ints, Ints]:
    """Return (parts,) how many sides of pixels of each part face none of it, and how many of these a mask (h, w).

    ``table``: (4, n) the parts' runs, as `Runs` has them.
    """
    height, width = new.shape
    rim, own = np.zeros(parts, np.int64), np.zeros(parts, np.int64)
    for n in range(table.shape[1]):
        y, first, last, part = table[0, n], table[1, n], table[2, n], table[3, n]
        rim[part] += 2
        own[part] += int(first > 0 and mask[y, first - 1]) + int(last < width and mask[y, min(last, width - 1)])
        for row in (y - 1, y + 1):
            if row < 0 or row >= height:
                rim[part] += last - first
                continue
            for x in range(first, last):
                rim[part] += int(not new[row, x])
                own[part] += int(mask[row, x])
    return rim, own


def _closed(mask: Bools, inside: Bools, differs: Bools) -> Bools:
    """Return a mask (h, w) without the holes that lie inside the others' hull and differ from the ground."""
    holes = holes_of(mask)
    if len(holes.part) == 0:
        return mask
    areas = holes.areas
    closed = (holes.counts(inside) > _COVERED * areas) & (holes.counts(differs) > _DIFFERING * areas)
    closed |= areas <= Cleaning.hole_share * float(np.count_nonzero(mask))
    out = mask.copy()
    holes.fill(out, closed)
    return out
