"""An XMALab project as that program leaves it on disk."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

__all__ = ["write_xmalab_project"]


def write_xmalab_project(
    path: Path,
    films: Mapping[str, str],
    cube_mm: np.ndarray,
    cube_pictures: Mapping[str, Sequence[Path]],
    *,
    grids: Mapping[str, Path] | None = None,
    markers: Mapping[str, np.ndarray] | None = None,
    bones: Mapping[str, Sequence[int]] | None = None,
    trials: Sequence[str] = ("trial",),
    also: str = "",
) -> Path:
    """Write a project with the separators of Windows, where it is mostly used, and a cube in centimetres.

    Args:
        path: of the project.
        films: camera -> path of its film on the machine that saved the project.
        cube_mm: (n, 3) beads of the cube.
        cube_pictures: camera -> pictures of the cube.
        grids: camera -> picture of the undistortion grid.
        markers: name -> (T, cameras, 2) pixels, NaN where not marked.
        bones: rigid bodies with the numbers of their markers, from 1.
        trials: names of the trials, all alike.
        also: further attributes of the Project tag.
    """
    cameras, marked = [], []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for camera in films:
            tags = ""
            if grids:
                archive.write(grids[camera], f"{camera}/grid.png")
                tags = f'<UndistortionGrid Filename="{camera}\\grid.png" isComputed="0"/>'
            for picture in cube_pictures[camera]:
                archive.write(picture, f"{camera}/{picture.name}")
                tags += f'<CalibrationImage Filename="{camera}\\{picture.name}" isCalibrated="0"/>'
            cameras.append(f'<Camera Name="{camera}" isLightCamera="0" isCalibrated="0">{tags}</Camera>')
        rows = "".join(f"{x:.12g} , {y:.12g} , {z:.12g}\n" for x, y, z in cube_mm / 10)
        archive.writestr("CalibrationObject/cube.csv", "x y z\n" + rows)
        for trial in trials:
            for camera, film in films.items():
                archive.writestr(f"{trial}/{camera}_filenames_absolute.txt", f"{film}\n")
            lines = [f"{bone}[{' , '.join(map(str, beads))}]\n" for bone, beads in (bones or {}).items()]
            archive.writestr(f"{trial}/data/RigidBodies.txt", "".join(lines))
            for k, pixels in enumerate((markers or {}).values()):
                seen = np.isfinite(pixels[..., 0])
                places = np.where(seen[..., None], pixels, 0.0).reshape(len(pixels), -1)
                stem = f"{trial}/data/Marker{k:03d}"
                archive.writestr(f"{stem}points2d.csv", _rows(places))
                archive.writestr(f"{stem}status2d.csv", _rows(np.where(seen, 5, 0)))
            tags = "".join(
                f'<Marker Description="{name}" ID="{k}" FilenamePoints2D="{trial}\\data\\Marker{k:03d}points2d.csv" '
                f'FilenameStatus2D="{trial}\\data\\Marker{k:03d}status2d.csv"/>'
                for k, name in enumerate(markers or {})
            )
            marked.append(f'<Trial Name="{trial}" Default="0" startFrame="1" recordingSpeed="200">{tags}</Trial>')
        archive.writestr(
            "project.xml",
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Project Version="0.3" ActiveTrial="0" {also}>{"".join(cameras)}'
            '<CalibrationObject isPLanar="0" FrameSpecifications="CalibrationObject\\cube.csv" References=""/>'
            f'<Trial Name="Default" Default="1"/>{"".join(marked)}</Project>\n',
        )
    return path


def _rows(values: np.ndarray) -> str:
    return "".join(" , ".join(f"{value:.12g}" for value in row) + "\n" for row in values)
