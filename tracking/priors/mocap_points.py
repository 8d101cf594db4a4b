"""Point sets of published rodent mocap, as places on our bodies: which joint or site each named point follows.

Such points (labels or network predictions) lie on the skin over a joint or near it; their places on the segments
and the segments' lengths are refined on the recording itself (`skeleton.inverse_kinematics.scaling.scale_body`), so
that a table need only be roughly right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibration.foundation.errors import InputError
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.tree.joint_tree import Skeleton

__all__ = ["MOUSE34", "RAT23", "known_points", "points_on_body"]

#: 23 points of a rat (the "rat23" skeleton): point to joint or site of the body, and its 1 sigma in mm for a rat.
RAT23: dict[str, tuple[str, float]] = {
    "Snout": ("nose", 3.0),
    "EarL": ("left_ear_tip", 4.0),
    "EarR": ("right_ear_tip", 4.0),
    "SpineF": ("thoracic_3", 8.0),
    "SpineM": ("lumbar_3", 8.0),
    "SpineL": ("lumbar_1", 8.0),
    "TailBase": ("tail_1", 5.0),
    **{
        f"{point}{letter}": (f"{side}_{place}", sd)
        for side, letter in (("left", "L"), ("right", "R"))
        for point, place, sd in [
            ("Shoulder", "shoulder", 6.0),
            ("Elbow", "elbow", 5.0),
            ("Wrist", "wrist", 4.0),
            ("Hand", "finger_tip", 4.0),
            ("Hip", "hip", 8.0),
            ("Knee", "knee", 7.0),
            ("Ankle", "ankle", 4.0),
            ("Foot", "toe_tip", 4.0),
        ]
    },
}

#: 34 points of a mouse; 1 sigma in mm for a mouse.
MOUSE34: dict[str, tuple[str, float]] = {
    "Nose": ("nose", 1.5),
    "Ear_L": ("left_ear_tip", 2.0),
    "Ear_R": ("right_ear_tip", 2.0),
    "Eye_L": ("left_eye", 1.5),
    "Eye_R": ("right_eye", 1.5),
    "Neck": ("cervical_1", 3.0),
    "Spine": ("thoracic_1", 4.0),
    "TTI": ("tail_1", 2.5),
    "TailTip": ("tail_tip", 6.0),
    **{f"Tail_{k}": (f"tail_{joint}", 5.0) for k, joint in enumerate((2, 3, 5, 6, 8))},
    **{
        f"{point}_{letter}": (f"{side}_{place}", sd)
        for side, letter in (("left", "L"), ("right", "R"))
        for point, place, sd in [
            ("Shoulder", "shoulder", 3.0),
            ("Elbow", "elbow", 2.5),
            ("Wrist", "wrist", 2.0),
            ("Forepaw", "palm", 2.0),
            ("Hip", "hip", 3.5),
            ("Knee", "knee", 3.0),
            ("Heel", "heel", 2.0),
            ("MTP", "toes", 2.0),
        ]
    },
}


def points_on_body(body: Skeleton, table: Mapping[str, tuple[str, float]]) -> MarkerSet:
    """Return the marker set of a table of points on a body."""
    names = tuple(table)
    segments, offsets = body.points([place for place, _ in table.values()])
    sd = np.array([deviation for _, deviation in table.values()])
    return MarkerSet(names, tuple(body.joint_names[i] for i in segments), offsets, sd)


def known_points(body: Skeleton, names: Sequence[str]) -> MarkerSet:
    """Return the published point set whose names a series has, on a body."""
    for table in (RAT23, MOUSE34):
        if len(set(names) & set(table)) >= 0.6 * len(table):
            return points_on_body(body, {name: table[name] for name in names if name in table})
    raise InputError(
        f"points {', '.join(list(names)[:6])}, ...: not a point set known here; name the body's own markers, or "
        "give a marker set file (a table [[marker]] with name, segment, offset and sd_mm per point)"
    )
