"""An XMALab project laid out as a recording: its pictures, cube, markers and bones as files, its films found again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.boards.session import VIDEOS
from calibration.cameras.rig import UNITS_MM
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_bytes, write_text
from calibration.foundation.names import inside
from calibration.xray.cube import BeadCube, save_cube
from capture.recordings.xmalab_project import XmalabProject, XmalabTrial
from tracking.beads.xmalab_files import write_points_2d
from vivarig.xray.recording import BONES, LABELS

__all__ = ["LaidOut", "lay_out_project"]


@dataclass(frozen=True)
class LaidOut:
    """A project's trial as a recording: each camera's film, which are light cameras, the rate, and what to say."""

    films: dict[str, Path]
    light: frozenset[str]
    rate_hz: float | None
    said: tuple[str, ...]


def lay_out_project(project: XmalabProject, folder: Path, trial_name: str | None, unit: str | None) -> LaidOut:
    """Write calibration/xray from a project and find the films of one of its trials in the folder.

    Args:
        project: as read.
        folder: of the recording to be; nothing that lies there is changed.
        trial_name: of the trial (None: the only one).
        unit: of the cube (None: centimetres, as is the habit of XMALab's users, and said).
    """
    trial = _chosen(project, trial_name)
    films = {camera.name: _found(project, trial, folder, camera.name) for camera in project.cameras}
    session = folder / "calibration" / "xray"
    if session.exists():
        raise InputError(f"{session} is there already; move it away, and it is made anew from {project.path.name}")
    said = [f"XMALab project: {project.path.name}, trial '{trial.name}'"]
    for camera in project.cameras:
        if camera.grid is not None and not camera.is_light:
            ending, data = camera.grid
            write_bytes(inside(session / "grid", f"{camera.name}{ending}"), data)
        for number, (ending, data) in enumerate(camera.cube, start=1):
            write_bytes(inside(inside(session / "cube", camera.name), f"{number:02d}{ending}"), data)
    said += _write_cube(project, session, unit)
    views = [index for index, camera in enumerate(project.cameras) if not camera.is_light]
    if np.isfinite(trial.pixels[:, views]).any():
        write_points_2d(session / LABELS, trial.markers, trial.pixels[:, views])
        said.append(f"  {len(trial.markers)} markers start where they were marked: {session / LABELS}")
    owners: dict[str, str] = {}
    for bone, markers in trial.bones.items():
        owners |= {marker: bone for marker in markers if marker not in owners}
    if owners:
        write_text(session / BONES, "".join(f"{marker},{bone}\n" for marker, bone in owners.items()))
        said.append(f"  bones: {', '.join(trial.bones)}")
    light = frozenset(camera.name for camera in project.cameras if camera.is_light)
    return LaidOut(films, light, trial.rate_hz, tuple(said))


def _chosen(project: XmalabProject, name: str | None) -> XmalabTrial:
    names = ", ".join(trial.name for trial in project.trials)
    if not project.trials:
        raise InputError(f"{project.path}: no trial in the project; add the films in XMALab, or name them by hand")
    if name is None and len(project.trials) > 1:
        raise InputError(f"{project.path}: several trials ({names}); say which with --trial NAME")
    for trial in project.trials:
        if name in (None, trial.name):
            return trial
    raise InputError(f"{project.path}: no trial '{name}'; there are {names}")


def _found(project: XmalabProject, trial: XmalabTrial, folder: Path, camera: str) -> Path:
    """Return where a camera's film lies now: the file (or folder of images) whose path ends most alike."""
    paths = trial.films[camera]
    if not paths:
        raise InputError(f"{project.path}: trial '{trial.name}' names no film of camera '{camera}'")
    wanted = [part for part in paths[0].replace("\\", "/").split("/") if part]
    here = [path for path in folder.rglob("*") if path.is_file() and path.name.lower() == wanted[-1].lower()]
    if not here:
        raise InputError(
            f"{folder}: {wanted[-1]}, the film of camera '{camera}', is not there; copy it into the folder"
        )
    alike = {path: _common_end([part.lower() for part in wanted], [p.lower() for p in path.parts]) for path in here}
    best = [path for path, count in alike.items() if count == max(alike.values())]
    if len(best) > 1:
        places = ", ".join(str(path.relative_to(folder)) for path in sorted(best))
        raise InputError(f"{folder}: which is the film of camera '{camera}': {places}? Keep one in the folder")
    if best[0].suffix.lower() == ".cine":
        raise InputError(f"{best[0]}: .cine films cannot be read; save them as AVI or TIFF, and in the project too")
    single = len(paths) == 1 and best[0].suffix.lower() in (*VIDEOS, ".tif", ".tiff", ".dcm")
    return best[0] if single else best[0].parent


def _common_end(one: list[str], other: list[str]) -> int:
    """Return how many parts two paths share at their ends."""
    count = 0
    while count < min(len(one), len(other)) and one[-1 - count] == other[-1 - count]:
        count += 1
    return count


def _write_cube(project: XmalabProject, session: Path, unit: str | None) -> list[str]:
    if project.cube is None:
        return ["  no bead cube in the project (a checkerboard): calibrate it in XMALab and export the MayaCams"]
    names = tuple(str(number) for number in range(1, len(project.cube) + 1))
    save_cube(BeadCube(names, project.cube * UNITS_MM[unit or "cm"]), session / "cube.csv")
    taken = f"in {unit}" if unit else "taken as centimetres, as XMALab's usually are; else give --units"
    extent = np.ptp(project.cube, axis=0) * UNITS_MM[unit or "cm"]
    size = " x ".join(f"{value:.0f}" for value in extent)
    return [f"  cube of {len(names)} beads, {size} mm ({taken})"]
