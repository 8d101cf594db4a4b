"""``vivarig xray undistort``: a distortion map of each X-ray camera from its images of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError, SolveError
from calibration.xray.cube import draw_cube
from calibration.xray.grid import draw_grid, find_grid
from calibration.xray.undistortion import AnyMap, DistortionMap, MovingMap, fit_undistortion
from capture.recordings.video import read_image
from tracking.beads.store import save_maps
from vivarig.console.progress import progress
from vivarig.console.reporting import CommandReport
from vivarig.xray.recording import XrayFolder, write_picture

__all__ = ["undistort"]

#: Held-out error of an undistortion above which the command says so, px.
GOOD_GRID_PX = 0.1


def undistort(folder: XrayFolder, *, model: str | None) -> CommandReport:
    """Fit a map to each grid image and write them all; ``model`` is chosen by cross-validation unless named."""
    maps: dict[str, AnyMap] = {}
    lines: list[str] = []
    numbers: dict[str, object] = {}
    worst = 0.0
    for name in progress(folder.cameras, "undistort", total=len(folder.cameras)):
        files = folder.grid_images(name)
        stills: dict[int, DistortionMap] = {}
        for k, path in enumerate(files):
            picture = folder.results / f"grid_{name}{'' if len(files) == 1 else f'_{k + 1:02d}'}.png"
            grid = _fit_grid(name, path, picture, model)
            stills[_frame(path) if len(files) > 1 else 0] = grid.map
            worst = max(worst, grid.error_px)
            lines.append(grid.line)
            numbers[picture.stem] = grid.numbers
        frames = tuple(sorted(stills))
        maps[name] = MovingMap(frames, tuple(stills[f] for f in frames)) if len(stills) > 1 else stills[frames[0]]
    save_maps(folder.maps, maps, {"model": model})
    lines.append(f"maps: {folder.maps}; pictures with residuals (100 times) beside them")
    good = worst <= GOOD_GRID_PX
    numbers["worst_heldout_px"] = worst
    return CommandReport(lines, numbers, good, "" if good else f"held-out error {worst:.3f} px above {GOOD_GRID_PX} px")


@dataclass(frozen=True, eq=False)
class _FittedGrid:
    """The map of one grid image, its held-out error, px, and what the report says of it."""

    map: DistortionMap
    error_px: float
    line: str
    numbers: dict[str, object]


def _fit_grid(camera: str, path: Path, picture: Path, model: str | None) -> _FittedGrid:
    """Find the grid of one image, fit the map to it and draw both; a grid that is not found is drawn too."""
    image = read_image(path)
    try:
        sighting = find_grid(image, who=f"camera '{camera}'")
    except SolveError as error:
        spots = error.report if isinstance(error.report, np.ndarray) else np.empty((0, 2))
        write_picture(picture, draw_cube(image, spots[:400]))
        raise SolveError(f"{error}; what was found: {picture}", error.report) from None
    fitted, report = fit_undistortion(sighting, model=model)
    write_picture(picture, draw_grid(image, sighting, report.heldout))
    error_px = report.heldout_rms_px[report.model]
    return _FittedGrid(
        fitted,
        error_px,
        f"{camera}: {len(sighting)} nodes of a {sighting.kind} grid ({sighting.polarity}), {report.model}:"
        f" held-out error {error_px:.3f} px RMS, distortion up to {report.largest_shift_px:.1f} px,"
        f" {report.rejected} nodes rejected",
        {
            "nodes": len(sighting),
            "used": int(np.isfinite(report.heldout).all(axis=1).sum()),
            "model": report.model,
            "heldout_rms_px": report.heldout_rms_px,
            "largest_shift_px": report.largest_shift_px,
            "round_trip_px": report.round_trip_px,
        },
    )


def _frame(path: Path) -> int:
    """Return the frame of the film that one of several grid images is of."""
    if not path.stem.isdigit():
        raise InputError(
            f"{path}: several grid images are of a moving C-arm; name each after its frame in the film, such as"
            " 000250.png"
        )
    return int(path.stem)
