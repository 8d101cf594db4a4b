"""What tracking left for the skeleton: markers and the joints that the cage carried, read some frames at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from skeleton.bodies.marker_sets import LANDMARK
from tracking.sequence.track_file import open_track

__all__ = ["TrackedLimbs", "TrackedPoints", "TrackedRows"]

_CHUNK = 4096
LOOSEST = 2.0
"""How far doubt about a limb loosens its points, at most, as a multiple of their own sigma: a place that another might
beat is still the likeliest, and without it a skeleton's arm hangs where no camera sees it. The doubt itself is added to
the sigma of the joints."""
CARRIED = {"human": 0.5}
"""Sigma of a joint that the cage carried, as a share of a typical marker's: people's quads lie on the skin and their
joints on captured poses (`tracking.subjects.settled_joints`), so that a joint tells as much as four markers. A rodent's
cage loses flesh in folded legs, and its joints tell no more than markers do. Chosen on four people."""


@dataclass(frozen=True, eq=False)
class TrackedRows:
    """Points of n frames: (n, M, 3) mm, their sigma (n, M) mm or None, joints as the cage carried them (n, J, 3)."""

    points: Floats
    sigma: Floats | None
    cage: Floats | None


@dataclass(frozen=True, eq=False)
class TrackedLimbs:
    """What tracking said of the limbs in n frames, and what follows for the J joints of a skeleton.

    Attributes:
        trust, reason: (n, L) codes.
        joint_trust: (n, J) the worst of the limbs that a joint depends on.
        joint_doubt: (n, J) what their doubt adds to the joint's sigma, mm.
        views: (n,) cameras that saw the subject; NaN where the file does not say.
    """

    trust: Ints
    reason: Ints
    joint_trust: Ints
    joint_doubt: Floats
    views: Floats


class TrackedPoints:
    """The points of a ``track.h5``: its markers, then the carried joints.

    The joint centres are added because depth is what the surface alone leaves open. Their uncertainty is that of the
    frame's typical marker, or a share of it (`CARRIED`); without markers there are no joints either.

    Attributes:
        names: M points, markers first.
        cage_names: J carried joints.
        trust: (T,) what tracking said of the frames.
        limb_names: (L,) limbs that it judged one by one; none in files of other makers.
        reasons: words of the reason codes.
        subject: built-in body or subject folder that was tracked, None where the file does not say.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with open_track(path) as file:
            if not file.has_markers:
                raise InputError(f"{path}: holds no markers; run `vivarig track` again")
            names = file.marker_names
            self.subject: str | None = file.parameters.get("subject")
            self.cage_names = file.cage_joint_names
            self._carried = CARRIED.get(file.body, 1.0)
            self.trust: Ints = file.trust()
            self.limb_names = file.limb_names
            self.reasons = file.reasons
        self.names = (*names, *(LANDMARK + name for name in self.cage_names))

    def __len__(self) -> int:
        """Return the number of frames T."""
        return len(self.trust)

    def rows(self, frames: slice | Sequence[int] | Ints) -> TrackedRows:
        """Return the points of some frames, in rising order."""
        with open_track(self._path) as file:
            points, sigma = file.markers(frames), file.marker_sigma(frames)
            cage = file.cage_joints(frames) if self.cage_names else None
            doubt = file.limb_sigma(frames) if self.limb_names else None
            owner, joints = (file.marker_limbs, file.cage_joint_limbs) if self.limb_names else (None, None)
        if sigma is not None and doubt is not None:
            more = doubt[:, owner]
            own = np.sqrt(np.maximum(sigma**2 - more**2, 0.0))
            sigma = np.hypot(own, np.minimum(more, LOOSEST * own))
        if cage is None:
            return TrackedRows(points, sigma, None)
        seen = np.isfinite(points[..., 0]).sum(axis=1) > 0
        if sigma is not None:
            typical = np.full(len(sigma), np.nan)
            typical[seen] = self._carried * np.nanmedian(sigma[seen], axis=1)
            typical = np.repeat(typical[:, None], cage.shape[1], axis=1)
            loose = typical if doubt is None else np.hypot(typical, np.minimum(doubt[:, joints], LOOSEST * typical))
            sigma = np.concatenate([sigma, loose], axis=1)
        carried = np.where(seen[:, None, None], cage, np.nan)
        return TrackedRows(np.concatenate([points, carried], axis=1), sigma, cage)

    def limbs(self, frames: slice, joints: Sequence[str]) -> TrackedLimbs | None:
        """Return what was said of the limbs in some frames, and of these joints; None where nothing was."""
        if not self.limb_names:
            return None
        with open_track(self._path) as file:
            trust, reason, doubt = file.limb_trust(frames), file.limb_reason(frames), file.limb_sigma(frames)
            names, rows = file.limb_joints
            overlap = file.overlap(frames)
        # A skeleton of other joints than the subject's own: those that are not known depend on all limbs.
        depends = np.array(
            [rows[names.index(name)] if name in names else np.ones(rows.shape[1], bool) for name in joints]
        )
        worst = np.where(depends[None], trust[:, None, :], 0).max(axis=2)
        doubts = np.where(depends[None], doubt[:, None, :], 0.0).max(axis=2)
        views = np.full(len(trust), np.nan) if overlap is None else np.isfinite(overlap).sum(axis=1).astype(float)
        return TrackedLimbs(trust, reason, worst, doubts, views)

    def seen(self) -> Ints:
        """Return (T,) how many points each frame has."""
        count = np.zeros(len(self), dtype=np.int64)
        with open_track(self._path) as file:
            for first in range(0, len(self), _CHUNK):
                here = slice(first, first + _CHUNK)
                points = file.markers(here)
                known = np.isfinite(points).all(axis=2).sum(axis=1)
                cage = file.cage_joints(here) if self.cage_names else None
                if cage is not None:
                    seen = np.isfinite(points[..., 0]).any(axis=1)
                    known = known + np.where(seen, np.isfinite(cage).all(axis=2).sum(axis=1), 0)
                count[here] = known
        return count
