"""`vivarig track --meshes`: track a sequence of meshes that have nothing in common but the subject."""

from __future__ import annotations

import argparse
from functools import lru_cache
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from capture.recordings.recording import Recording, save_recording
from tracking.adapting.scale_search import find_scale, make_solver
from tracking.sequence.mesh_views import MeshSequence
from tracking.sequence.track_file import write_track
from tracking.sequence.tracker import Tracker, TrackerSettings
from tracking.subjects.mesh_files import SUFFIXES, UPRIGHT, mesh_paths, mesh_volume, read_mesh
from tracking.subjects.subject import Subject, load_subject, scaled_subject
from vivarig.console.progress import progress_callback

__all__ = ["add_mesh_arguments", "track_meshes"]

UP = np.array([0.0, 0.0, 1.0])


def add_mesh_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `vivarig track` that are about meshes."""
    words = parser.add_argument_group("meshes instead of a recording")
    words.add_argument(
        "--meshes", type=Path, metavar="DIR",
        help=f"folder with one mesh per frame ({' '.join(SUFFIXES)}), no correspondence needed",
    )  # fmt: skip
    words.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="folder to write (default: tracked, beside DIR)"
    )
    words.add_argument("--unit-mm", type=float, default=1.0, metavar="MM", help="millimetres in one unit (default 1)")
    words.add_argument("--up", choices=tuple(UPRIGHT), default="z", help="their vertical axis (default z)")
    words.add_argument("--rate-hz", type=float, default=25.0, metavar="HZ", help="meshes per second (default 25)")
    words.add_argument("--views", type=int, default=10, metavar="N", help="virtual cameras around each (default 10)")


def track_meshes(args: argparse.Namespace) -> tuple[Path, int]:
    """Track the meshes of a folder; write ``OUT/results/track.h5``, and recording.toml; return it and their number."""
    if args.subject is None:
        raise InputError("--meshes: which subject is it? give --subject mouse|rat|human|FOLDER")
    if args.frames is not None:
        raise InputError("--frames selects frames of a recording; put the meshes to track in a folder of their own")
    paths = mesh_paths(args.meshes)
    out = Path(args.output) if args.output is not None else Path("tracked")

    @lru_cache(maxsize=8)
    def load(frame: int) -> tuple[Floats, Ints]:
        return read_mesh(paths[frame], unit_mm=args.unit_mm, up=args.up)

    meshes = MeshSequence(load, range(len(paths)), cameras=args.views)
    subject, scale = _sized(load_subject(str(args.subject), base=out), args.scale, load(0), meshes)
    solver = make_solver(subject, meshes.rig)
    tracker = Tracker(solver, meshes.rig, settings=TrackerSettings(smooth_sweeps=max(args.smooth, 0)))
    look = lru_cache(maxsize=64)(meshes.observe)
    with progress_callback("tracking") as on_progress:
        track = meshes.in_place(tracker.track(look, len(meshes), start=args.start, on_progress=on_progress))
    target = out / "results" / "track.h5"
    target.parent.mkdir(parents=True, exist_ok=True)
    save_recording(Recording(out, out.resolve().name, args.rate_hz, str(args.subject), None, (), Path(args.meshes)))
    parameters = {
        "subject": str(args.subject), "scale": scale, "smooth": args.smooth, "start": track.start, "parts": 1,
        "meshes": str(args.meshes), "unit_mm": args.unit_mm, "up": args.up, "views": args.views,
    }  # fmt: skip
    write_track(target, track, subject, solver, rate_hz=args.rate_hz, parameters=parameters)
    return target, len(meshes)


def _sized(subject: Subject, wanted: str, first: tuple[Floats, Ints], meshes: MeshSequence) -> tuple[Subject, float]:
    """Scale the subject as asked, or as the first and the middle mesh say."""
    if wanted != "auto":
        try:
            scale = float(wanted)
        except ValueError:
            raise InputError(f"--scale wants a number or auto, got {wanted!r}") from None
        return scaled_subject(subject, scale), scale
    rough = float(np.cbrt(mesh_volume(*first) / mesh_volume(subject.template.vertices, subject.template.faces)))
    if not 0.3 < rough < 3.0:
        raise InputError(
            f"the meshes have {rough:.3g} times the size of subject '{subject.name}'; is their unit the millimetre? "
            "(--unit-mm; or give --scale)"
        )
    grown = scaled_subject(subject, rough)
    scale = rough * find_scale(grown, meshes.rig, meshes.observe, sorted({0, len(meshes) // 2}), up=UP)
    return scaled_subject(subject, scale), scale
