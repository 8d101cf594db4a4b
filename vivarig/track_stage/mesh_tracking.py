"""`vivarig track --meshes`: track a sequence of meshes that have nothing in common but the subject."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from capture.recordings.recording import Recording, save_recording
from tracking.adapting.scale_search import find_scale, make_solver
from tracking.sequence.mesh_views import MeshSequence
from tracking.sequence.settings import TrackerSettings
from tracking.sequence.track_output import write_track
from tracking.sequence.tracker import Tracker
from tracking.subjects.mesh_files import mesh_paths, mesh_volume, read_mesh
from tracking.subjects.subject import Subject, load_subject, scaled_subject
from vivarig.console.progress import progress_callback
from vivarig.stages.options import TrackOptions
from vivarig.track_stage.inputs import data_settings

__all__ = ["MeshOptions", "track_meshes"]

UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class MeshOptions:
    """A folder of meshes to be tracked.

    Attributes:
        folder: one mesh per frame, no correspondence needed.
        output: folder to write.
        unit_mm: millimetres in one of their units.
        up: their vertical axis.
        rate_hz: meshes per second.
        views: virtual cameras around each.
    """

    folder: Path
    output: Path = Path("tracked")
    unit_mm: float = 1.0
    up: str = "z"
    rate_hz: float = 25.0
    views: int = 10


def track_meshes(meshes: MeshOptions, options: TrackOptions) -> tuple[Path, int]:
    """Track the meshes of a folder; write ``OUT/results/track.h5``, and recording.toml; return it and their number."""
    if options.subject is None:
        raise InputError("--meshes: which subject is it? give --subject mouse|rat|human|FOLDER")
    if options.frames is not None:
        raise InputError("--frames selects frames of a recording; put the meshes to track in a folder of their own")
    paths = mesh_paths(meshes.folder)
    out = meshes.output

    @lru_cache(maxsize=8)
    def load(frame: int) -> tuple[Floats, Ints]:
        return read_mesh(paths[frame], unit_mm=meshes.unit_mm, up=meshes.up)

    known = load_subject(str(options.subject), base=out)
    settings = data_settings(known, options.data)
    sequence = MeshSequence(load, range(len(paths)), cameras=meshes.views, surfaces=settings.hull)
    subject, scale = _sized(known, options.scale, load(0), sequence)
    solver = make_solver(subject, sequence.rig, settings)
    tracker = Tracker(solver, sequence.rig, settings=TrackerSettings(smooth_sweeps=options.smooth))
    look = lru_cache(maxsize=64)(sequence.observe)
    with progress_callback("tracking") as on_progress:
        track = sequence.in_place(tracker.track(look, len(sequence), start=options.start, on_progress=on_progress))
    target = out / "results" / "track.h5"
    target.parent.mkdir(parents=True, exist_ok=True)
    save_recording(
        Recording(out, out.resolve().name, meshes.rate_hz, str(options.subject), None, (), Path(meshes.folder))
    )
    parameters = {
        "subject": str(options.subject), "scale": scale, "smooth": options.smooth, "start": track.start, "parts": 1,
        "meshes": str(meshes.folder), "unit_mm": meshes.unit_mm, "up": meshes.up, "views": meshes.views,
        "data": options.data,
    }  # fmt: skip
    write_track(target, track, subject, solver, rate_hz=meshes.rate_hz, parameters=parameters)
    return target, len(sequence)


def _sized(
    subject: Subject, wanted: float | None, first: tuple[Floats, Ints], sequence: MeshSequence
) -> tuple[Subject, float]:
    """Scale the subject as asked, or as the first and the middle mesh say."""
    if wanted is not None:
        return scaled_subject(subject, wanted), wanted
    rough = float(np.cbrt(mesh_volume(*first) / mesh_volume(subject.template.vertices, subject.template.faces)))
    if not 0.3 < rough < 3.0:
        raise InputError(
            f"the meshes have {rough:.3g} times the size of subject '{subject.name}'; is their unit the millimetre? "
            "(--unit-mm; or give --scale)"
        )
    grown = scaled_subject(subject, rough)
    scale = rough * find_scale(grown, sequence.rig, sequence.observe, sorted({0, len(sequence) // 2}), up=UP)
    return scaled_subject(subject, scale), scale
