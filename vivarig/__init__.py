"""Markerless 3D motion capture of rodents and people from calibrated cameras.

    import vivarig

    vivarig.run("mouse_07")                      # all stages, resumable
    vivarig.hull("mouse_07", voxel=1.5)          # one stage, options as on the command line
    results = vivarig.load_results("mouse_07")   # arrays for a notebook
    scores = vivarig.evaluate("mouse_07")        # mean joint error against truth, mm

The libraries below it are importable by themselves: `calibration`, `skeleton`, `capture`, `tracking`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vivarig.version import __version__

if TYPE_CHECKING:
    from vivarig.api import (
        evaluate,
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
    "__version__",
    "evaluate",
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
