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

from vivarig.version import __version__ as __version__

if TYPE_CHECKING:
    from vivarig.api import *  # noqa: F403  (the names are listed there alone)


def __getattr__(name: str) -> Any:
    """Import the API on first use, so that the command line starts quickly."""
    if name == "__all__" or not name.startswith("_"):
        api = importlib.import_module("vivarig.api")
        if name == "__all__":
            return [*api.__all__, "__version__"]
        if name in api.__all__:
            return getattr(api, name)
    raise AttributeError(f"module 'vivarig' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return what may be typed after ``vivarig.``, for editors and notebooks."""
    return sorted(__getattr__("__all__"))
