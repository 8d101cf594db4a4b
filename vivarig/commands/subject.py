"""``vivarig subject``: make a subject from a built-in body."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from calibration.errors import InputError
from skeleton.bodies import BODIES
from tracking.subject import builtin_subject, save_subject
from vivarig.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Make a subject folder (template mesh, quads, prior, virtual markers) from a built-in body scaled to the animal. "
    "Its cage_quads.toml can be edited by hand; name the folder in recording.toml or give it to `vivarig track`."
)
EXAMPLE = """  vivarig subject subjects/m7 --body mouse --length 1.05 --girth 0.95
  vivarig subject subjects/anna --body human --length 0.97 --segment left_hip=1.03 --segment right_hip=1.03"""


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


def run(args: argparse.Namespace) -> CommandReport:
    """Make the subject."""
    lengths: dict[str, float] | float = args.length
    if args.segment:
        from skeleton.bodies import load_body

        lengths = dict.fromkeys(load_body(args.body).joint_names, args.length) | dict(map(_segment, args.segment))
    subject = builtin_subject(args.body, lengths=lengths, girth=args.girth)
    save_subject(subject, args.folder)
    size = np.ptp(subject.template.vertices, axis=0)
    lines = [
        f"subject {args.body}: {args.folder}",
        f"  template of {len(subject.template.vertices)} vertices, {size[0]:.0f} x {size[1]:.0f} x {size[2]:.0f} mm, "
        f"{len(subject.cage_rig.rig)} quads, {len(subject.marker_names)} markers, "
        f"prior of {len(subject.prior.training_poses)} poses in {subject.prior.latent_dim} dimensions",
    ]
    numbers = {
        "vertices": len(subject.template.vertices),
        "quads": len(subject.cage_rig.rig),
        "markers": len(subject.marker_names),
        "latent_dim": subject.prior.latent_dim,
    }
    return CommandReport(lines, numbers)


def _segment(words: str) -> tuple[str, float]:
    name, _, value = words.partition("=")
    try:
        return name, float(value)
    except ValueError:
        raise InputError(f"--segment wants JOINT=FACTOR, e.g. left_knee=1.04, got {words!r}") from None
