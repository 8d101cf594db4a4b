"""HumanEva's submission file: XML with the 15 markers of every frame."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from calibration.errors import InputError
from calibration.files import write_bytes
from skeleton.humaneva import MARKERS
from vivarig.evaluation import JointSeries

__all__ = ["write_submission"]


def write_submission(path: Path, sequence: str, estimate: JointSeries, first_frame: int = 1) -> None:
    """Write ``SEQUENCE/Frame/Number, Pose/<joint>/X, Y, Z`` for every frame with a pose; a lost joint is left out."""
    missing = [name for name in MARKERS if name not in estimate.names]
    if missing:
        raise InputError(f"HumanEva submission: the skeleton lacks {', '.join(missing)}; is the subject a person?")
    root = ElementTree.Element("SEQUENCE", {"name": sequence, "frames": str(len(estimate.positions)), "units": "mm"})
    for index, joints in enumerate(estimate.positions):
        frame = ElementTree.SubElement(root, "Frame")
        ElementTree.SubElement(frame, "Number").text = str(first_frame + index)
        pose = ElementTree.SubElement(frame, "Pose")
        for name in MARKERS:
            point = joints[estimate.names.index(name)]
            if np.isfinite(point).all():
                joint = ElementTree.SubElement(pose, name)
                for axis, value in zip("XYZ", point, strict=True):
                    ElementTree.SubElement(joint, axis).text = f"{value:.4f}"
    ElementTree.indent(root)
    write_bytes(path, ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
