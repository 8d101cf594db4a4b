"""``vivarig subject``: make a subject from a built-in body, a scan, or a hull of a recording."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import trimesh

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError, nearest
from capture.hull.store import read_hull
from capture.recordings.recording import load_recording
from skeleton.bodies import BODIES, load_body
from tracking.adapting.scan_subject import fit_body, scan_subject
from tracking.quads.template import thinned
from tracking.subjects.mesh_files import SUFFIXES, UPRIGHT, read_mesh, require_closed
from tracking.subjects.subject import Subject, builtin_subject, save_subject
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Make a subject folder (template mesh, quads, prior, skeleton, virtual markers) from a built-in body scaled to the "
    "animal, from a closed mesh of it (scan), or from its hull in one frame of a recording: the built-in body is "
    "fitted to the mesh and hands its quads over. Its cage_quads.toml can be edited by hand; name the folder in "
    "recording.toml or give it to `vivarig track`."
)
EXAMPLE = """  vivarig subject subjects/m7 --body mouse --length 1.05 --girth 0.95
  vivarig subject subjects/anna --body human --length 0.97 --segment left_hip=1.03 --segment right_hip=1.03
  vivarig subject subjects/stout --body mouse --girth-of lumbar=1.4 --girth-of thoracic=1.3
  vivarig subject subjects/anna --body human --mesh anna.obj --unit-mm 1000 --up y
  vivarig subject subjects/m7 --body mouse --recording mouse_07 --frame 120"""


TEMPLATE_VERTICES = 6000
"""A hull has more vertices than details: as many are kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("folder", type=Path, help="folder to make")
    parser.add_argument("--body", required=True, choices=BODIES, help="built-in body")
    parser.add_argument(
        "--length", type=float, default=1.0, metavar="FACTOR", help="length of all segments (default 1)"
    )
    parser.add_argument("--girth", type=float, default=1.0, metavar="FACTOR", help="thickness of the body (default 1)")
    parser.add_argument(
        "--segment",
        action="append",
        default=[],
        metavar="JOINT=FACTOR",
        help="length of one segment, instead of --length",
    )
    parser.add_argument(
        "--girth-of",
        action="append",
        default=[],
        metavar="PART=FACTOR",
        help="thickness of one part, instead of --girth: a joint, or the start of several without their side (lumbar)",
    )
    parser.add_argument("--mesh", type=Path, metavar="FILE", help=f"closed mesh of the subject ({' '.join(SUFFIXES)})")
    parser.add_argument(
        "--unit-mm", type=float, default=1.0, metavar="MM", help="millimetres in one unit of --mesh (default 1)"
    )
    parser.add_argument("--up", choices=tuple(UPRIGHT), default="z", help="vertical axis of --mesh (default z)")
    parser.add_argument("--recording", type=Path, metavar="DIR", help="recording with hulls (`vivarig hull`)")
    parser.add_argument("--frame", type=int, metavar="N", help="its frame to take the hull of")


def run(args: argparse.Namespace) -> CommandReport:
    """Make the subject."""
    extra: list[str] = []
    numbers: dict[str, object] = {}
    if args.mesh is not None or args.recording is not None:
        subject, extra, numbers = _from_mesh(args)
    else:
        lengths: dict[str, float] | float = args.length
        if args.segment:
            lengths = dict.fromkeys(load_body(args.body).joint_names, args.length) | dict(map(_segment, args.segment))
        subject = builtin_subject(args.body, lengths=lengths, girth=_girths(args))
    save_subject(subject, args.folder)
    size = np.ptp(subject.template.vertices, axis=0)
    lines = [
        f"subject {subject.name}: {args.folder}",
        f"  template of {len(subject.template.vertices)} vertices, {size[0]:.0f} x {size[1]:.0f} x {size[2]:.0f} mm, "
        f"{len(subject.cage_rig.quads)} quads, {len(subject.marker_names)} markers, "
        f"prior of {len(subject.prior.training_poses)} poses in {subject.prior.latent_dim} dimensions",
        *extra,
    ]
    numbers |= {
        "vertices": len(subject.template.vertices),
        "quads": len(subject.cage_rig.quads),
        "markers": len(subject.marker_names),
        "latent_dim": subject.prior.latent_dim,
    }
    return CommandReport(lines, numbers)


def _from_mesh(args: argparse.Namespace) -> tuple[Subject, list[str], dict[str, object]]:
    """Fit the built-in body to a scan or hull and take its quads over."""
    if args.segment or args.girth_of or args.length != 1.0 or args.girth != 1.0:
        raise InputError("--length, --girth and --segment are found from the mesh: leave them out")
    if args.mesh is not None and args.recording is not None:
        raise InputError("give either --mesh or --recording, not both")
    if args.mesh is not None:
        vertices, faces = read_mesh(args.mesh, unit_mm=args.unit_mm, up=args.up)
        require_closed(vertices, faces, str(args.mesh))
    else:
        vertices, faces = _hull_mesh(args.recording, args.frame)
    fitted = fit_body(vertices, faces, args.body)
    subject, check = scan_subject(args.folder.resolve().name, vertices, faces, fitted)
    lines = [
        f"  built-in {args.body} x {fitted.scale:.3f} fitted: silhouettes overlap {fitted.overlap:.3f} IoU; "
        f"its quads give the mesh again within {check.again_mm:.1f} mm (mean)",
        f"  quads enlarged by up to {check.grown_mm:.1f} mm; {check.drawn_in} vertices drawn into the cage, by up to "
        f"{check.drawn_in_mm:.1f} mm",
    ]
    numbers: dict[str, object] = {
        "scale": fitted.scale,
        "overlap_iou": fitted.overlap,
        "again_mm": check.again_mm,
        "grown_mm": check.grown_mm,
        "drawn_in": check.drawn_in,
        "drawn_in_mm": check.drawn_in_mm,
        "lengths": subject.bones.lengths,
    }
    return subject, lines, numbers


def _hull_mesh(folder: Path, frame: int | None) -> tuple[Floats, Ints]:
    """The largest part of a frame's hull, thinned out to what a template needs."""
    if frame is None:
        raise InputError("--recording needs --frame: which frame's hull shall the subject be made of?")
    path = load_recording(folder).results / "hull.h5"
    hull = read_hull(path, frame)
    if not len(hull.faces):
        raise InputError(f"{path}: the hull of frame {frame} is empty; choose a frame that most cameras see whole")
    parts = trimesh.Trimesh(hull.vertices, hull.faces, process=True).split(only_watertight=False)
    best = max(parts, key=lambda part: abs(part.volume))
    return thinned(np.asarray(best.vertices, np.float64), np.asarray(best.faces, np.int64), TEMPLATE_VERTICES)


def _segment(words: str) -> tuple[str, float]:
    return _factor("--segment", words)


def _factor(option: str, words: str) -> tuple[str, float]:
    name, _, value = words.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise InputError(f"{option} wants JOINT=FACTOR, e.g. left_knee=1.04, got {words!r}") from None


def _girths(args: argparse.Namespace) -> dict[str, float]:
    """Thickness of every segment; a later part overrides an earlier one."""
    joints = load_body(args.body).joint_names
    girths = dict.fromkeys(joints, args.girth)
    for words in args.girth_of:
        part, factor = _factor("--girth-of", words)
        meant = [
            name for name in joints
            if name.startswith(part) or name.removeprefix("left_").removeprefix("right_").startswith(part)
        ]  # fmt: skip
        if not meant:
            raise InputError(f"--girth-of {words}: the {args.body} has no such joint; {nearest(part, joints)}")
        girths |= dict.fromkeys(meant, factor)
    return girths
