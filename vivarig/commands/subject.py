"""``vivarig subject``: make a subject from a built-in body, a scan, a hull of a recording, or any mesh with joints."""

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
from tracking.own_bodies.joints_file import load_joints, save_joints
from tracking.own_bodies.making import PICTURE, own_subject
from tracking.own_bodies.mending import mended
from tracking.own_bodies.picture import draw_body
from tracking.own_bodies.suggestion import suggested_joints
from tracking.quads.template import thinned
from tracking.subjects.mesh_files import SUFFIXES, UPRIGHT, read_mesh, require_closed
from tracking.subjects.subject import Subject, builtin_subject, save_subject
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Make a subject folder (template mesh, quads, prior, skeleton, virtual markers) from a built-in body scaled to the "
    "animal, from a closed mesh of it (scan), or from its hull in one frame of a recording: the built-in body is "
    "fitted to the mesh and hands its quads over. Any other animal is made from its mesh and a list of its joints "
    "(--joints; --suggest-joints writes a first guess). Its cage_quads.toml can be edited by hand; name the folder in "
    "recording.toml or give it to `vivarig track`."
)
EXAMPLE = """  vivarig subject subjects/m7 --body mouse --length 1.05 --girth 0.95
  vivarig subject subjects/anna --body human --length 0.97 --segment left_hip=1.03 --segment right_hip=1.03
  vivarig subject subjects/stout --body mouse --girth-of lumbar=1.4 --girth-of thoracic=1.3
  vivarig subject subjects/anna --body human --mesh anna.obj --unit-mm 1000 --up y
  vivarig subject subjects/m7 --body mouse --recording mouse_07 --frame 120
  vivarig subject subjects/horse --mesh horse.obj --unit-mm 1000 --up y --suggest-joints
  vivarig subject subjects/horse --mesh horse.obj --unit-mm 1000 --up y --joints subjects/horse/joints.toml"""


TEMPLATE_VERTICES = 6000
"""A hull has more vertices than details: as many are kept."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("folder", type=Path, help="folder to make")
    parser.add_argument("--body", choices=BODIES, help="built-in body (any other animal: --mesh with --joints)")
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
    parser.add_argument(
        "--joints", type=Path, metavar="FILE",
        help="joints of an animal that is not built in: names, parents and places in --mesh (TOML)",
    )  # fmt: skip
    parser.add_argument(
        "--suggest-joints", action="store_true",
        help="write a first guess of the joints of --mesh, with a picture, into the folder, and stop",
    )  # fmt: skip
    parser.add_argument("--recording", type=Path, metavar="DIR", help="recording with hulls (`vivarig hull`)")
    parser.add_argument("--frame", type=int, metavar="N", help="its frame to take the hull of")


def run(args: argparse.Namespace) -> CommandReport:
    """Make the subject."""
    extra: list[str] = []
    numbers: dict[str, object] = {}
    if args.suggest_joints:
        return _suggest(args)
    if args.joints is not None:
        subject, extra, numbers = _from_joints(args)
    elif args.body is None:
        raise InputError(f"whose body is it? give --body {'|'.join(BODIES)}, or for another animal --mesh and --joints")
    elif args.mesh is not None or args.recording is not None:
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


def _own_mesh(args: argparse.Namespace, option: str) -> tuple[Floats, Ints]:
    """The mesh of an animal that is not built in."""
    if args.mesh is None:
        raise InputError(f"{option} belongs to a mesh: give --mesh FILE")
    if args.body or args.recording or args.segment or args.girth_of or args.length != 1.0 or args.girth != 1.0:
        raise InputError(f"{option} makes a body of its own: leave --body, --length, --girth and --recording out")
    return read_mesh(args.mesh, unit_mm=args.unit_mm, up=args.up)


def _from_joints(args: argparse.Namespace) -> tuple[Subject, list[str], dict[str, object]]:
    """Make a body of its own from a mesh and its joints."""
    vertices, faces = _own_mesh(args, "--joints")
    plan = load_joints(args.joints)
    plan = plan.moved(args.unit_mm * plan.places @ UPRIGHT[args.up].T)
    subject, check = own_subject(args.folder, vertices, faces, plan, str(args.mesh))
    name, share = check.smallest
    lines = [f"  {note}" for note in check.notes]
    lines += [
        f"  {100 * check.outside:.0f} % of the vertices stand out of the cage, by up to {check.outside_mm:.1f} mm, "
        f"and are carried along; quad '{name}' was drawn in most, to {100 * share:.0f} % of its size",
        f"  picture: {args.folder / PICTURE}; train a prior of its own motion once some is tracked (vivarig train)",
    ]
    numbers: dict[str, object] = {
        "outside_share": check.outside,
        "outside_mm": check.outside_mm,
        "least_quad": name,
        "least_quad_share": share,
        "notes": list(check.notes),
    }
    return subject, lines, numbers


def _suggest(args: argparse.Namespace) -> CommandReport:
    """Write a first guess of a mesh's joints."""
    if args.joints is not None:
        raise InputError("--suggest-joints writes a first guess, --joints takes one: give one of the two")
    vertices, faces = _own_mesh(args, "--suggest-joints")
    plan, title = suggested_joints(vertices, faces, str(args.mesh))
    path = args.folder / "joints.toml"
    if path.exists():
        raise InputError(f"{path}: exists; move it away, or make the subject from it with --joints {path}")
    closed = mended(vertices, faces, str(args.mesh))
    draw_body(args.folder / "joints.png", closed.vertices, closed.faces, plan=plan, title=title)
    written = plan.moved(plan.places @ UPRIGHT[args.up] / args.unit_mm)
    digits = max(1, 3 - int(np.floor(np.log10(max(float(np.ptp(written.places, axis=0).max()), 1e-9)))))
    save_joints(
        written, path, comment=f"A first guess from {args.mesh.name}: look at joints.png, then edit.", digits=digits
    )
    again = f"vivarig subject {args.folder} --mesh {args.mesh} --joints {path}"
    again += f" --unit-mm {args.unit_mm:g}" * (args.unit_mm != 1.0) + f" --up {args.up}" * (args.up != "z")
    lines = [
        f"{len(plan)} joints suggested: {path}; picture: {args.folder / 'joints.png'}",
        f"  {title}",
        f"  next: {again}",
    ]
    return CommandReport(lines, {"joints": len(plan), "names": list(plan.names)})


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
