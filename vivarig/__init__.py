"""Markerless 3D motion capture of rodents and people from calibrated cameras.

    import vivarig
    from vivarig import HullOptions

    vivarig.run("mouse_07", hull=HullOptions(voxel_mm=2))   # all stages, resumable
    vivarig.track("mouse_07")                               # one stage, options as in recording.toml
    results = vivarig.load_results("mouse_07")              # arrays with names, for a notebook
    scores = vivarig.evaluate("mouse_07")                   # mean joint error against truth, mm
    vivarig.export("mouse_07", "mouse_07.c3d")              # for another program

The libraries below it are importable by themselves: `calibration`, `skeleton`, `capture`, `tracking`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vivarig.version import __version__

if TYPE_CHECKING:
    from vivarig.api import (
        CalibrateOptions,
        CalibrationOutcome,
        CommandReport,
        ExportOptions,
        Findings,
        HullOptions,
        JointScores,
        Recording,
        ReportOptions,
        SilhouetteOptions,
        SkeletonOptions,
        StageOutcome,
        TrackOptions,
        WorldOptions,
        calibrate,
        evaluate,
        export,
        hull,
        load_results,
        open_recording,
        report,
        run,
        silhouettes,
        skeleton_fit,
        track,
    )

__all__ = [
    "CalibrateOptions",
    "CalibrationOutcome",
    "CommandReport",
    "ExportOptions",
    "Findings",
    "HullOptions",
    "JointScores",
    "Recording",
    "ReportOptions",
    "SilhouetteOptions",
    "SkeletonOptions",
    "StageOutcome",
    "TrackOptions",
    "WorldOptions",
    "__version__",
    "calibrate",
    "evaluate",
    "export",
    "hull",
    "load_results",
    "open_recording",
    "report",
    "run",
    "silhouettes",
    "skeleton_fit",
    "track",
]


def __getattr__(name: str) -> Any:
    """Import the API on first use, so that the command line starts quickly."""
    if name in __all__:
        return getattr(importlib.import_module("vivarig.api"), name)
    raise AttributeError(f"module 'vivarig' has no attribute '{name}'")
