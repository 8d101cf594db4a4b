"""Views and rigs that cannot be right, said with the way out before they spoil a calibration."""

from __future__ import annotations

import numpy as np

from calibration.boards.sightings import Sightings
from calibration.foundation.errors import SolveError
from calibration.solving.rig_solver import RigSolution

__all__ = ["late_clocks", "late_frames", "refuse_misfit", "without_lines"]

#: Largest misfit of a rig to its own views, as a share of the image's longer side; good ones have a thousandth.
_MISFIT = 0.01


def without_lines(sightings: Sightings) -> tuple[Sightings, list[str]]:
    """Leave out views whose corners all lie on one line of the board: they tell no pose, and end the whole solution."""
    points, index = sightings.model_points()
    keep = np.ones(len(sightings), dtype=bool)
    dropped = []
    for (camera, frame, _), rows in sightings.views().items():
        spread = np.linalg.svd(points[index[rows]] - points[index[rows]].mean(axis=0), compute_uv=False)
        if len(rows) < 4 or spread[1] < 1e-3 * spread[0]:
            keep[rows] = False
            dropped.append(f"{sightings.cameras[camera]} frame {frame}")
    if not dropped:
        return sightings, []
    some = ", ".join(dropped[:3]) + (", ..." if len(dropped) > 3 else "")
    return sightings.where(keep), [f"left out, corners on one line only: {len(dropped)} views ({some})"]


def refuse_misfit(solution: RigSolution) -> None:
    """Refuse a rig that does not explain its own views: what it was made from is not one rig at one instant."""
    rms = solution.bundle.rms_px()
    most = _MISFIT * max(max(size) for size in solution.sightings.sizes)
    if rms > most:
        raise SolveError(
            f"no rig fits these views: {rms:.1f} px RMS ({most:.1f} at most); frames of equal number must show one "
            "instant. Images that were taken one camera after the other tell lenses only: calibrate each camera alone "
            "(--cameras NAME), then the rig from synchronous views with --intrinsics; or see `vivarig sync`"
        )


def late_frames(solution: RigSolution) -> dict[str, float]:
    """Return which cameras are late by a frame or nearly so, and by how many."""
    return {
        name: float(solution.bundle.bundle.offsets[c])
        for c, name in enumerate(solution.rig.names)
        if solution.freedoms[c].clock and abs(solution.bundle.bundle.offsets[c]) >= 0.5
    }


def late_clocks(solution: RigSolution) -> list[str]:
    """Say which cameras are late by a frame or nearly so, and where that is to be written."""
    return [
        f"{name} is {frames:+.2f} frames late: recordings made like this need offset = {round(frames)} under "
        f"[cameras.{name}] in recording.toml (`vivarig calibrate --recording` writes it, `vivarig sync` tells it)"
        for name, frames in late_frames(solution).items()
    ]
