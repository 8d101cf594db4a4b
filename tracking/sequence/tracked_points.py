"""What tracking left for the skeleton: markers and the joints that the cage carried, read some frames at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results, read_parameters
from skeleton.bodies.marker_sets import LANDMARK

__all__ = ["TrackedLimbs", "TrackedPoints", "TrackedRows"]

_BLOCK = 4096


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
    """

    trust: Ints
    reason: Ints
    joint_trust: Ints
    joint_doubt: Floats


class TrackedPoints:
    """The points of a ``track.h5``: its markers, then the carried joints.

    The joint centres are added because depth is what the surface alone leaves open. Their uncertainty is that of the
    frame's typical marker; without markers there are no joints either.

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
        with open_results(path, stage="track") as file:
            if "markers" not in file or "marker_names" not in file:
                raise InputError(f"{path}: holds no markers; run `vivarig track` again")
            names = _words(file["marker_names"])
            self.subject: str | None = read_parameters(file).get("subject")
            self.cage_names = _words(file["cage_joint_names"]) if "cage_joints" in file else ()
            frames = len(file["markers"])
            self.trust: Ints = (
                np.asarray(file["trust"][:], dtype=np.int64) if "trust" in file else np.zeros(frames, dtype=np.int64)
            )
            self.limb_names = _words(file["limb_names"]) if "limb_names" in file else ()
            self.reasons = _words(file["reasons"]) if "reasons" in file else ()
        self.names = (*names, *(LANDMARK + name for name in self.cage_names))

    def __len__(self) -> int:
        """Return the number of frames T."""
        return len(self.trust)

    def rows(self, frames: slice | Sequence[int] | Ints) -> TrackedRows:
        """Return the points of some frames, in rising order."""
        with open_results(self._path, stage="track") as file:
            points = _values(file, frames, "markers")
            assert points is not None
            sigma = _values(file, frames, "marker_sigma", "sigma")
            cage = _values(file, frames, "cage_joints") if self.cage_names else None
            doubt = None
            if self.limb_names:
                doubt = np.asarray(file["limb_sigma"][frames], np.float64)[:, file["cage_joint_limbs"][:]]
        if cage is None:
            return TrackedRows(points, sigma, None)
        seen = np.isfinite(points[..., 0]).sum(axis=1) > 0
        if sigma is not None:
            typical = np.full(len(sigma), np.nan)
            typical[seen] = np.nanmedian(sigma[seen], axis=1)
            typical = np.repeat(typical[:, None], cage.shape[1], axis=1)
            sigma = np.concatenate([sigma, typical if doubt is None else np.hypot(typical, doubt)], axis=1)
        carried = np.where(seen[:, None, None], cage, np.nan)
        return TrackedRows(np.concatenate([points, carried], axis=1), sigma, cage)

    def limbs(self, frames: slice, joints: Sequence[str]) -> TrackedLimbs | None:
        """Return what was said of the limbs in some frames, and of these joints; None where nothing was."""
        if not self.limb_names:
            return None
        with open_results(self._path, stage="track") as file:
            trust, reason = (np.asarray(file[f"limb_{key}"][frames], np.int64) for key in ("trust", "reason"))
            doubt = np.asarray(file["limb_sigma"][frames], np.float64)
            names, rows = _words(file["limb_joint_names"]), np.asarray(file["limb_joints"][:], bool)
        # A skeleton of other joints than the subject's own: those that are not known depend on all limbs.
        depends = np.array(
            [rows[names.index(name)] if name in names else np.ones(rows.shape[1], bool) for name in joints]
        )
        worst = np.where(depends[None], trust[:, None, :], 0).max(axis=2)
        return TrackedLimbs(trust, reason, worst, np.where(depends[None], doubt[:, None, :], 0.0).max(axis=2))

    def seen(self) -> Ints:
        """Return (T,) how many points each frame has."""
        count = np.zeros(len(self), dtype=np.int64)
        for first in range(0, len(self), _BLOCK):
            here = slice(first, first + _BLOCK)
            count[here] = np.isfinite(self.rows(here).points).all(axis=2).sum(axis=1)
        return count


def _words(values: h5py.Dataset) -> tuple[str, ...]:
    return tuple(value.decode() if isinstance(value, bytes) else str(value) for value in values[:])


def _values(file: h5py.File, frames: slice | Sequence[int] | Ints, *names: str) -> Floats | None:
    for name in names:
        if name in file:
            return np.asarray(file[name][frames], dtype=np.float64)
    return None
