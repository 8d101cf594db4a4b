"""HumanEva's 15 virtual markers, its official error, and its truth from Plug-in-Gait points.

The data set's truth is 20 limb ends. The error of a frame is the mean of 15 distances: an elbow or a knee is the mean
of the *errors* of the two limb ends that meet there, and so is the neck (torso's and head's near ends).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from skeleton.analysis.scoring import JointScores

__all__ = ["LIMB_ENDS", "MARKERS", "limb_ends_from_joints", "official_scores", "truth_from_points"]

#: The 20 limb ends, in the data set's words.
LIMB_ENDS = (
    "torsoDistal", "torsoProximal", "headProximal", "headDistal",
    "upperLArmProximal", "upperLArmDistal", "lowerLArmProximal", "lowerLArmDistal",
    "upperRArmProximal", "upperRArmDistal", "lowerRArmProximal", "lowerRArmDistal",
    "upperLLegProximal", "upperLLegDistal", "lowerLLegProximal", "lowerLLegDistal",
    "upperRLegProximal", "upperRLegDistal", "lowerRLegProximal", "lowerRLegDistal",
)  # fmt: skip

#: The 15 markers and the limb ends whose errors are averaged for each.
MARKERS: dict[str, tuple[str, ...]] = {
    "pelvis": ("torsoDistal",),
    "thorax": ("torsoProximal", "headProximal"),
    "left_shoulder": ("upperLArmProximal",),
    "left_elbow": ("upperLArmDistal", "lowerLArmProximal"),
    "left_wrist": ("lowerLArmDistal",),
    "right_shoulder": ("upperRArmProximal",),
    "right_elbow": ("upperRArmDistal", "lowerRArmProximal"),
    "right_wrist": ("lowerRArmDistal",),
    "left_hip": ("upperLLegProximal",),
    "left_knee": ("upperLLegDistal", "lowerLLegProximal"),
    "left_ankle": ("lowerLLegDistal",),
    "right_hip": ("upperRLegProximal",),
    "right_knee": ("upperRLegDistal", "lowerRLegProximal"),
    "right_ankle": ("lowerRLegDistal",),
    "head": ("headDistal",),
}


def limb_ends_from_joints(joints: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the limb ends (T, 3) of a skeleton whose limbs meet at their joints: both ends there are one point."""
    ends: dict[str, Floats] = {}
    for marker, names in MARKERS.items():
        if marker not in joints:
            raise InputError(f"HumanEva scoring: no joint '{marker}' among {', '.join(joints)}")
        for name in names:
            ends[name] = np.asarray(joints[marker], dtype=np.float64)
    return ends


def official_scores(
    estimate: Mapping[str, Floats],
    truth: Mapping[str, Floats],
    *,
    mode: Literal["absolute", "relative", "relative_as_coded"] = "absolute",
) -> JointScores:
    """Return the official error of limb ends (T, 3) mm, by name (`LIMB_ENDS`).

    A frame with any missing truth is not valid. ``relative`` subtracts torsoDistal on both sides and averages the
    other 14 markers. ``relative_as_coded`` does what the published error_rel.m does: besides leaving the pelvis out
    it exchanges headDistal and headProximal, so its neck and head terms differ; use it only to compare with figures
    made by that code.
    """
    for side, given in (("estimate", estimate), ("truth", truth)):
        missing = [name for name in LIMB_ENDS if name not in given]
        if missing:
            raise InputError(f"HumanEva scoring: the {side} lacks {', '.join(missing)}")
    e = np.stack([np.asarray(estimate[name], dtype=np.float64) for name in LIMB_ENDS], axis=1)
    t = np.stack([np.asarray(truth[name], dtype=np.float64) for name in LIMB_ENDS], axis=1)
    if e.shape != t.shape:
        raise InputError(f"HumanEva scoring: estimate has {len(e)} frames, truth {len(t)}")
    if mode != "absolute":
        e, t = e - e[:, :1], t - t[:, :1]
    distance = dict(zip(LIMB_ENDS, np.linalg.norm(e - t, axis=2).T, strict=True))
    markers = dict(MARKERS)
    if mode != "absolute":
        del markers["pelvis"]
    if mode == "relative_as_coded":
        markers["thorax"], markers["head"] = ("torsoProximal", "headDistal"), ("headProximal",)
    errors = np.stack([np.mean([distance[end] for end in ends], axis=0) for ends in markers.values()], axis=1)
    valid = np.asarray(np.isfinite(t).all((1, 2)))
    return JointScores(tuple(markers), errors, valid, "none", None if mode == "absolute" else "pelvis")


#: Plug-in-Gait output points at the joint centres: marker -> point.
_POINTS = {
    "left_shoulder": "LCLO", "left_elbow": "LHUO", "left_wrist": "LRAO",
    "right_shoulder": "RCLO", "right_elbow": "RHUO", "right_wrist": "RRAO",
    "left_hip": "LFEP", "left_knee": "LFEO", "left_ankle": "LTIO",
    "right_hip": "RFEP", "right_knee": "RFEO", "right_ankle": "RTIO",
    "thorax": "TRXO",
}  # fmt: skip

PELVIS_BACK_MM = 50.0
HEAD_LENGTH_MM = 316.103


def truth_from_points(points: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the 15 markers (T, 3) from Plug-in-Gait output points (PELO, PELA, TRXO, HEDO, HEDP, LFEP ...).

    Joint centres are the segment origins as the laboratory's software computed them. Two adjustments of the official
    code are applied: the pelvis lies 50 mm behind PELO along its local x axis (PELO to PELA), and the head top
    316.103 mm along the head's proximal axis (HEDO to HEDP). The official code also tilts the torso and turns the
    elbows by widths of the .mp file; these are not applied here, so a score against this truth differs from the
    official server's by a few millimetres at neck and elbows.
    """
    needed = [*_POINTS.values(), "PELO", "PELA", "HEDO", "HEDP"]
    missing = [name for name in needed if name not in points]
    if missing:
        raise InputError(f"HumanEva truth: the C3D file lacks the Plug-in-Gait points {', '.join(missing)}")
    truth = {marker: np.asarray(points[name], dtype=np.float64) for marker, name in _POINTS.items()}
    truth["pelvis"] = points["PELO"] - PELVIS_BACK_MM * _unit(points["PELA"] - points["PELO"])
    truth["head"] = points["HEDO"] + HEAD_LENGTH_MM * _unit(points["HEDP"] - points["HEDO"])
    return {marker: truth[marker] for marker in MARKERS}


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, np.nan))
