"""Surveyed scenes on disk: scene.toml says where points are, a table of clicks where each camera sees them.

    sd_mm = 2.0                        # how well the points were measured (2 mm where it is not said)

    [points.door]
    world = [0.0, 1250.0, 2010.0]      # mm, z up
    sd_mm = 5.0                        # of this one, if it differs
    pixels.cam1 = [812.0, 233.5]       # clicks may stand here as well

The Config.toml of a Pose2Sim project serves as well: its ``object_coords_3d`` (metres) are points 1, 2, 3, ...
Clicks are rows of ``camera, point, x, y`` (CSV, px; the column may also be called ``mark``, others are left aside).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import HUGE, measured
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text
from calibration.foundation.tables import read_toml
from calibration.solving.surveyed import SurveyedScene

__all__ = ["load_clicks", "load_surveyed_scene"]

_SD_MM = 2.0


@guarded("a table of clicks")
def load_clicks(path: Path | str) -> dict[tuple[str, str], tuple[float, float]]:
    """Read clicks: (camera, point) to (x, y), px."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=None))
    titles = reader.fieldnames or ()
    label = "point" if "point" in titles else "mark"
    missing = [name for name in ("camera", label, "x", "y") if name not in titles]
    if missing:
        raise InputError(f"{path}: column {', '.join(missing)} missing; wanted camera, point, x, y")
    clicks: dict[tuple[str, str], tuple[float, float]] = {}
    for line, row in enumerate(reader, 2):
        key = (str(row["camera"]), str(row[label]))
        if key in clicks:
            raise InputError(f"{path}: line {line}: point '{key[1]}' is clicked twice in camera '{key[0]}'")
        try:
            x, y = float(row["x"]), float(row["y"])
        except (TypeError, ValueError):
            raise InputError(f"{path}: line {line}: x and y must be numbers") from None
        if not (abs(x) < HUGE and abs(y) < HUGE):
            raise InputError(f"{path}: line {line}: no image has a place ({x:g}, {y:g})")
        clicks[key] = (x, y)
    return clicks


def _of_pose2sim(path: Path | str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scene of a Pose2Sim project's Config.toml as a scene of ours."""
    try:
        places = content["calibration"]["calculate"]["extrinsics"]["scene"]["object_coords_3d"]
        metres = [[float(value) for value in place] for place in places]
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"{path}: wanted object_coords_3d under [calibration.calculate.extrinsics.scene], as Pose2Sim has it"
        ) from None
    return {"points": {str(k): {"world": [1000.0 * v for v in at]} for k, at in enumerate(metres, start=1)}}


@guarded("a surveyed scene")
def load_surveyed_scene(path: Path | str, clicks: Path | str | None) -> SurveyedScene:
    """Read a scene and the clicks that belong to it."""
    root = read_toml(path)
    if "calibration" in root:
        root = replace(root, content=_of_pose2sim(path, root.content))
    root.allow(("sd_mm", "points", "distances"))
    usual = root.number("sd_mm", _SD_MM, above=0)
    table = root.table("points")
    names = tuple(table.content)
    world, sd = np.zeros((len(names), 3)), np.full(len(names), usual)
    seen: dict[tuple[str, str], tuple[float, float]] = {}
    for index, name in enumerate(names):
        point = table.table(name)
        point.allow(("world", "sd_mm", "pixels"))
        world[index] = point.array("world", (3,))
        sd[index] = point.number("sd_mm", usual, above=0)
        if "pixels" in point:
            inside = point.table("pixels")
            for camera in inside.content:
                x, y = inside.array(camera, (2,))
                seen[camera, name] = float(x), float(y)
    for (camera, name), place in (load_clicks(clicks) if clicks is not None else {}).items():
        if name not in names:
            raise InputError(f"{clicks}: point '{name}' is not in {path}; {nearest(name, names)}")
        seen[camera, name] = place
    cameras = tuple(dict.fromkeys(camera for camera, _ in seen))
    if not cameras:
        raise InputError(f"{path}: no click of any point; give them with --marks clicks.csv (camera, point, x, y)")
    pixels = np.full((len(cameras), len(names), 2), np.nan)
    for (camera, name), place in seen.items():
        pixels[cameras.index(camera), names.index(name)] = place
    return SurveyedScene(names, world, sd, cameras, measured(pixels, f"{clicks or path}: clicks"))
