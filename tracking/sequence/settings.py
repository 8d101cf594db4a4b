"""How a sequence is tracked: what counts as a bad frame, and how often is tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

__all__ = ["TrackerSettings"]


@dataclass(frozen=True)
class TrackerSettings:
    """How a sequence is tracked.

    Attributes:
        velocity: share of the last motion that is assumed to go on.
        retry: fall of the overlap below the usual that makes the tracker try again.
        restart: fall that makes it try training poses.
        search: fall that makes it look for the subject anew, with any heading.
        repair_sweeps: passes over badly fitted frames from both neighbours.
        smooth_sweeps: passes that pull all frames to the middle of their neighbours.
        smooth_shift, smooth_turn: how far a frame lies from that middle, thousandths of the size and rad, where the
            sequence is too short to tell (`tracking.sequence.steadiness`).
        mark_gate: a mark of the texture that lies further from its spot in one frame is of something else there,
            thousandths.
        mark_hold, mark_lift: how far a mark's spot may lie from where the fits saw it along the template's skin, and
            above or below it, thousandths.
        believed: a given pose that overlaps less than this is doubted, and the subject looked for.
        sure: a start that beats its rivals by less is looked at again elsewhere.
        again: where in the sequence that is done.
        restarts: False switches all second attempts off (for ablation).
    """

    velocity: float = 0.5
    retry: float = 0.012
    restart: float = 0.02
    search: float = 0.10
    repair_sweeps: int = 2
    smooth_sweeps: int = 1
    smooth_shift: float = 8.0
    smooth_turn: float = 0.07
    mark_gate: float = 40.0
    mark_hold: float = 200.0
    mark_lift: float = 15.0
    believed: float = 0.85
    sure: float = 0.02
    again: tuple[float, ...] = (0.15, 0.85, 0.5)
    restarts: bool = True

    def as_found(self, agreement: Sequence[float]) -> TrackerSettings:
        """Return settings for a recording in some frames of which the subject was looked for and overlaps so much.

        A start that overlaps as much as these convinces, though silhouettes that err keep it below what is believed
        of any recording.
        """
        if not len(agreement):
            return self
        return replace(self, believed=min(self.believed, float(np.median(agreement)) - self.restart))
