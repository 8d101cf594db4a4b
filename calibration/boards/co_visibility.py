"""Which cameras saw the board together, and whether that links them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.foundation.arrays import Ints
from calibration.foundation.errors import SolveError

__all__ = ["CoVisibility", "co_visibility", "require_connected"]


@dataclass(frozen=True, eq=False)
class CoVisibility:
    """How often cameras saw a board at the same time.

    Attributes:
        cameras: names.
        shared: (c, c) number of (frame, board) that both saw; the diagonal counts a camera's own.
        parts: cameras of each connected part, largest first.
    """

    cameras: tuple[str, ...]
    shared: Ints
    parts: tuple[tuple[int, ...], ...]

    @property
    def connected(self) -> bool:
        """Whether every camera is linked to every other."""
        return len(self.parts) == 1

    def named(self, cameras: Iterable[int]) -> str:
        """Return the quoted names of some cameras, for messages."""
        return ", ".join(f"'{self.cameras[c]}'" for c in cameras)


def co_visibility(sightings: Sightings) -> CoVisibility:
    """Count shared board views and find the connected parts."""
    count, targets = len(sightings.cameras), sightings.targets()
    seen = np.zeros((len(targets), count), np.int64)
    seen[targets.of_row, sightings.camera] = 1
    shared = seen.T @ seen
    left, parts = set(range(count)), []
    while left:
        part, frontier = set(), [min(left)]
        while frontier:
            c = frontier.pop()
            if c not in part:
                part.add(c)
                frontier += [d for d in left if d not in part and shared[c, d] > 0]
        left -= part
        parts.append(tuple(sorted(part)))
    parts.sort(key=lambda p: (-len(p), -int(shared[list(p), list(p)].sum()), p))
    return CoVisibility(sightings.cameras, shared, tuple(parts))


def require_connected(graph: CoVisibility, sightings: Sightings) -> None:
    """Raise an error that names the missing link if the cameras fall into parts."""
    names, own = graph.cameras, np.diag(graph.shared)
    blind = np.flatnonzero(own == 0)
    if len(blind):
        raise SolveError(
            f"camera {graph.named(blind)} never saw a board; check its footage, or leave it out with --cameras "
            f"{','.join(names[c] for c in np.flatnonzero(own))}",
            graph,
        )
    if graph.connected:
        return
    main, rest = graph.parts[0], graph.parts[1:]
    part = rest[0]
    a, b, gap = _nearest_miss(sightings, part, main)
    near = f" (nearest miss: {names[a]} and {names[b]}, {gap} frames apart)" if gap > 0 else ""
    raise SolveError(
        f"missing link between {graph.named(part)} and {graph.named(main)}: no frame shows "
        f"a board to a camera of both{near}; record the board where both see it, fix the time offset with `vivarig "
        f"sync`, or calibrate the largest part without {graph.named(chain(*rest))} with --largest-part",
        graph,
    )


def _nearest_miss(sightings: Sightings, part: tuple[int, ...], main: tuple[int, ...]) -> tuple[int, int, int]:
    best = (part[0], main[0], np.iinfo(np.int64).max)
    for a in part:
        for b in main:
            fa = np.unique(sightings.frame[sightings.camera == a])
            fb = np.unique(sightings.frame[sightings.camera == b])
            gap = int(np.abs(fa[:, None] - fb[None]).min())
            if gap < best[2]:
                best = (a, b, gap)
    return best
