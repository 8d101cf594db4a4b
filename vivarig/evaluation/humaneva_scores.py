"""The official HumanEva error of a recording's skeleton against the C3D truth of a sequence."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibration.foundation.errors import InputError
from capture.recordings.humaneva_folder import HumanEvaSequence
from skeleton.analysis.humaneva import limb_ends_from_joints, official_scores, truth_from_points
from skeleton.analysis.scoring import JointScores
from skeleton.motion_files import read_motion
from vivarig.evaluation.scores import JointSeries, common_joints

__all__ = ["humaneva_scores"]


def humaneva_scores(
    sequence: HumanEvaSequence,
    estimate: JointSeries,
    *,
    mode: Literal["absolute", "relative", "relative_as_coded"] = "absolute",
    first_image: int = 1,
) -> JointScores:
    """Score an estimate whose recording's frame 0 is image ``first_image`` of the sequence."""
    if sequence.truth is None:
        raise InputError(
            f"{sequence.subject}/{sequence.action} has no C3D truth (HumanEva withholds that of its test parts)"
        )
    motion = read_motion(sequence.truth)
    points = {name: motion.positions[:, index] for index, name in enumerate(motion.names)}  # type: ignore[union-attr]
    truth = truth_from_points(points)
    sync = next(iter(sequence.sync.values()))
    # image and mocap frames are numbered from 1; between two mocap frames the truth is interpolated
    first = first_image + estimate.first
    start = sync.mocap_frame(first) - 1
    series = JointSeries(tuple(truth), np.stack(list(truth.values()), axis=1), sync.scale, np.zeros(0, np.int64))
    ours = JointSeries(estimate.names, estimate.positions, 1.0, estimate.trust)
    names, e, t = common_joints(ours, series, {name: name for name in truth}, offset_frames=float(start))
    ends_e = limb_ends_from_joints({name: e[:, i] for i, name in enumerate(names)})
    ends_t = limb_ends_from_joints({name: t[:, i] for i, name in enumerate(names)})
    return official_scores(ends_e, ends_t, mode=mode)
