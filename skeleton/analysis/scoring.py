"""Scores of estimated joints against truth: mean 3D joint error in millimetres, and what is reported beside it.

The error of a frame is the mean Euclidean distance over the joints that both sides have; that of a sequence is the
mean over frames, with median and standard deviation. No alignment unless asked for, and then it is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError, nearest
from calibration.geometry.transforms import fit_rigid, fit_similarity

__all__ = ["Alignment", "JointScores", "match_joints", "score_joints"]

Alignment: TypeAlias = Literal["none", "rigid", "similarity"]


@dataclass(frozen=True, eq=False)
class JointScores:
    """Errors of one sequence, mm; NaN where estimate or truth is missing.

    Attributes:
        names: (J,) joints.
        errors: (T, J) distance of each joint.
        valid: (T,) frames that count: the truth has every joint (HumanEva's rule), or at least one where the mask
            of the data set is not wanted.
        alignment: how the estimate was moved onto the truth before measuring.
        relative_to: the joint subtracted from both sides, or None for absolute positions.
    """

    names: tuple[str, ...]
    errors: Floats
    valid: Bools
    alignment: Alignment = "none"
    relative_to: str | None = None

    @property
    def per_frame(self) -> Floats:
        """(T,) mean over the joints recovered, NaN for frames that do not count or have none."""
        return _mean_over(np.where(self.valid[:, None], self.errors, np.nan), axis=1)

    @property
    def per_joint(self) -> Floats:
        """(J,) mean over the frames that count."""
        return _mean_over(self.errors[self.valid], axis=0)

    @property
    def mean(self) -> float:
        """Mean over frames of the frame error."""
        return _finite(np.mean, self.per_frame)

    @property
    def median(self) -> float:
        """Median over frames of the frame error."""
        return _finite(np.median, self.per_frame)

    @property
    def sd(self) -> float:
        """Standard deviation over frames of the frame error."""
        return _finite(np.std, self.per_frame)

    @property
    def mpjpe(self) -> float:
        """Mean per-joint position error: the mean over all joints and frames at once."""
        return _finite(np.mean, self.errors[self.valid])

    @property
    def missing_share(self) -> float:
        """Share of joint positions that count but were not estimated."""
        counted = self.errors[self.valid]
        return float(np.isnan(counted).mean()) if counted.size else float("nan")

    def pck(self, threshold_mm: float) -> float:
        """Return the share of correct keypoints: joints within ``threshold_mm``; a missing one is not correct."""
        counted = self.errors[self.valid]
        return float((counted <= threshold_mm).mean()) if counted.size else float("nan")

    def numbers(self) -> dict[str, object]:
        """Return the scores for machines."""
        return {
            "mean_mm": self.mean,
            "median_mm": self.median,
            "sd_mm": self.sd,
            "mpjpe_mm": self.mpjpe,
            "per_joint_mm": dict(zip(self.names, self.per_joint.tolist(), strict=True)),
            "frames_valid": int(self.valid.sum()),
            "frames": len(self.valid),
            "missing_share": self.missing_share,
            "alignment": self.alignment,
            "relative_to": self.relative_to,
        }


def _finite(statistic: object, values: Floats) -> float:
    finite = values[np.isfinite(values)]
    return float(statistic(finite)) if finite.size and callable(statistic) else float("nan")


def _mean_over(values: Floats, axis: int) -> Floats:
    """Return the mean over what is there, NaN where nothing is."""
    there = np.isfinite(values)
    count = there.sum(axis)
    total = np.where(there, values, 0).sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def match_joints(
    estimated: Sequence[str], wanted: Sequence[str], joint_map: Mapping[str, str] | None = None
) -> list[int]:
    """Return the index in ``estimated`` of each wanted joint, through ``joint_map`` (wanted to estimated name)."""
    lookup = {name: index for index, name in enumerate(estimated)}
    indices = []
    for name in wanted:
        other = (joint_map or {}).get(name, name)
        if other not in lookup:
            raise InputError(f"joint '{other}' is not among the estimates; {nearest(other, estimated)}")
        indices.append(lookup[other])
    return indices


def score_joints(
    names: Sequence[str],
    estimate: ArrayLike,
    truth: ArrayLike,
    *,
    relative_to: str | None = None,
    alignment: Alignment = "none",
    whole_frames: bool = True,
) -> JointScores:
    """Score joints (T, J, 3) mm against truth of the same shape; NaN means not observed.

    Args:
        names: (J,) the joints of both.
        estimate: (T, J, 3).
        truth: (T, J, 3).
        relative_to: subtract this joint from both sides first; its own error is then left out, being 0 by force.
        alignment: move each frame's estimate onto the truth by a rigid motion or a similarity first.
        whole_frames: count only frames whose truth is complete, as HumanEva does.
    """
    e, t = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if e.shape != t.shape or e.ndim != 3 or e.shape[1:] != (len(names), 3):
        raise InputError(f"scoring: estimate {e.shape} and truth {t.shape} must both be (T, {len(names)}, 3)")
    known: Bools = np.asarray(np.isfinite(t).all(2))
    valid: Bools = np.asarray(known.all(1) if whole_frames else known.any(1))
    if relative_to is not None:
        root = match_joints(names, [relative_to])[0]
        e, t = e - e[:, root : root + 1], t - t[:, root : root + 1]
        e[:, root] = np.nan
    if alignment != "none":
        e = _aligned(e, t, alignment)
    errors = np.linalg.norm(e - t, axis=2)
    if relative_to is not None:
        keep = [index for index, name in enumerate(names) if name != relative_to]
        return JointScores(tuple(names[i] for i in keep), errors[:, keep], valid, alignment, relative_to)
    return JointScores(tuple(names), errors, valid, alignment, None)


def _aligned(estimate: Floats, truth: Floats, alignment: Alignment) -> Floats:
    fit = fit_similarity if alignment == "similarity" else fit_rigid
    moved = np.full_like(estimate, np.nan)
    for frame, (e, t) in enumerate(zip(estimate, truth, strict=True)):
        if (np.isfinite(e).all(1) & np.isfinite(t).all(1)).sum() >= 3:
            moved[frame] = fit(e, t).apply(e)
    return moved
