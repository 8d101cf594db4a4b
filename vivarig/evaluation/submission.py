"""HumanEva's submission file: XML with the 20 limb ends of every frame, as its support code writes and reads it."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes
from skeleton.analysis.humaneva import LIMB_ENDS, MARKERS, limb_ends_from_joints
from vivarig.evaluation.scores import JointSeries

__all__ = ["write_submission"]

_NOT_GIVEN = "N/A"


def write_submission(
    path: Path, subject: str, action: str, estimate: JointSeries, *, first_frame: int = 1, dataset: str = "HumanEvaI"
) -> None:
    """Write ``SEQUENCE/Frame/Number, Pose/Joint/Name, Enabled, X, Y, Z`` for every frame, mm.

    A joint that was not recovered has ``Enabled`` 0 and stands at the origin, as the official reader expects.

    Args:
        path: file to write.
        subject: e.g. "S1". action: with its trial, e.g. "Walking_2".
        estimate: with the 15 markers.
        first_frame: image number of the first frame.
        dataset: "HumanEvaI" or "HumanEvaII".
    """
    missing = [name for name in MARKERS if name not in estimate.names]
    if missing:
        raise InputError(f"HumanEva submission: the skeleton lacks {', '.join(missing)}; is the subject a person?")
    kind, _, trial = action.rpartition("_")
    count = len(estimate.positions)
    root = ElementTree.Element(
        "SEQUENCE",
        {
            "DatasetName": dataset,
            "DatasetBasePath": "../",
            "SubjectName": subject,
            "ActionType": kind or action,
            "Trial": trial,
            "FrameStart": str(first_frame),
            "FrameEnd": str(first_frame + count - 1),
            "Partition": "Test",
        },
    )
    ElementTree.SubElement(root, "Camera").text = _NOT_GIVEN
    ends = limb_ends_from_joints({name: estimate.positions[:, estimate.names.index(name)] for name in MARKERS})
    for index in range(count):
        frame = ElementTree.SubElement(root, "Frame")
        ElementTree.SubElement(frame, "Number").text = str(first_frame + index)
        pose = ElementTree.SubElement(frame, "Pose")
        for name in LIMB_ENDS:
            _joint(pose, name, ends[name][index])
        ElementTree.SubElement(frame, "Error").text = _NOT_GIVEN
    ElementTree.indent(root)
    write_bytes(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _joint(pose: ElementTree.Element, name: str, point: np.ndarray) -> None:
    there = bool(np.isfinite(point).all())
    joint = ElementTree.SubElement(pose, "Joint")
    ElementTree.SubElement(joint, "Name").text = name
    ElementTree.SubElement(joint, "Enabled").text = str(int(there))
    for axis, value in zip("XYZ", point if there else np.zeros(3), strict=True):
        ElementTree.SubElement(joint, axis).text = f"{value:.6f}"
