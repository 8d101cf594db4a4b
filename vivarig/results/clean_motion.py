"""The clean motion of a recording in place of the raw fit, for whoever reads its skeleton."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results
from vivarig.results.findings import Findings

__all__ = ["cleaned"]


def cleaned(findings: Findings) -> Findings:
    """Return findings whose skeleton moves as in ``clean.h5``."""
    skeleton, folder = findings.skeleton, findings.recording.folder
    path = findings.recording.results / "clean.h5"
    if skeleton is None or not path.is_file():
        raise InputError(f"{folder}: no clean.h5; make it with `vivarig clean {folder}`")
    with open_results(path, stage="clean") as file:
        raw = file["raw/coordinates"][:]
        if raw.shape != skeleton.coordinates.shape or not np.array_equal(raw, skeleton.coordinates, equal_nan=True):
            raise InputError(f"{path}: cleaned from another skeleton.h5; run `vivarig clean {folder}` again")
        moved = replace(
            skeleton, positions=file["positions"][:], rotations=file["rotations"][:],
            coordinates=file["coordinates"][:], landmarks=file["landmarks"][:],
        )  # fmt: skip
    return replace(findings, skeleton=moved)
