"""``vivarig simulate``: film a synthetic recording with known truth, to plan a rig or to test the pipeline."""

from __future__ import annotations

import argparse
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from calibration.foundation.errors import InputError
from capture.studio.films.simulation import Plan, load_plan, simulate
from capture.studio.scene.options import StudioOptions
from skeleton.bodies import BODIES
from vivarig.commands.stage_arguments import whole
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Film a synthetic animal or person with a rig you describe, by flags or by a few lines in a file given with "
    "--plan, and get a recording folder with exact truth beside it. Sizes left out follow from the space the "
    "subject moves in."
)
EXAMPLE = """  vivarig simulate mouse_test --body mouse --motion turn --cameras 8 --radius 260 --height 150 230
  vivarig run mouse_test && vivarig evaluate mouse_test

  vivarig simulate planned --plan my_rig.toml --option noise=3 --option motion_blur=0.5

plan file (TOML; all of it optional):
  body = "mouse"           # or rat, human
  motion = "turn"          # walk, trot, turn, rear, groom, sniff, explore; a person: walk, jog, reach, ...
  frames = 100
  rate_hz = 120.0
  [rig]                    # a ring of cameras around the subject, all looking at it
  cameras = 8
  radius = 260.0           # mm
  heights = [150.0, 230.0] # mm, taken in turn
  field = 215.0            # mm seen across; or focal = 1100.0 (px)
  size = [640, 480]
  distortion = [-0.18, 0.06, 0.0006, -0.0004, 0.0]
  [options]                # difficulties, all off unless given
  shadows = 0.6
  texture = 0.4
  noise = 2.0"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("recording", type=Path, help="folder to make; it must not hold a recording yet")
    parser.add_argument("--plan", type=Path, metavar="FILE", help="TOML file as shown above; flags overrule it")
    parser.add_argument("--body", choices=BODIES, help="who moves (default: mouse)")
    parser.add_argument("--motion", help="what it does (default: walk), or a BVH or AMC file with CMU's joint names")
    parser.add_argument(
        "--motion-unit", type=float, metavar="MM", help="millimetres in one unit of the file (default: CMU's 56.444)"
    )
    parser.add_argument("--frames", type=int, help="number of frames (default: 100)")
    parser.add_argument("--rate", type=float, metavar="HZ", help="frames per second (default: 120)")
    parser.add_argument("--seed", type=int, help="of body, motion, rig and pictures (default: 0)")
    parser.add_argument("--exact-body", action="store_true", help="the built-in body itself, no individual of it")
    parser.add_argument("--rig", type=Path, metavar="FILE", help="film with this rig.toml instead of a ring")
    ring = parser.add_argument_group("ring of cameras")
    ring.add_argument("--cameras", type=int, metavar="N", help="how many (default: 8)")
    ring.add_argument("--radius", type=float, metavar="MM", help="of the ring")
    ring.add_argument("--height", type=float, nargs="+", metavar="MM", help="above the floor; several in turn")
    ring.add_argument("--target", type=float, nargs=3, metavar=("X", "Y", "Z"), help="point looked at, mm")
    ring.add_argument("--field", type=float, metavar="MM", help="width seen at the target")
    ring.add_argument("--focal", type=float, metavar="PX", help="focal length, instead of --field")
    ring.add_argument("--size", type=int, nargs=2, metavar=("W", "H"), help="image, px (default: 640 480)")
    ring.add_argument("--distortion", type=float, nargs="*", metavar="K", help="OpenCV coefficients k1 k2 p1 p2 k3")
    ring.add_argument("--arc", type=float, metavar="DEG", help="part of the circle used (default: 360)")
    known = ", ".join(item.name for item in fields(StudioOptions) if item.name != "seed")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help=f"a difficulty; one of {known}"
    )
    parser.add_argument(
        "--workers", type=whole(1), default=1, metavar="N", help="processes, one camera each (default: 1)"
    )
    parser.add_argument("--quality", type=int, help="H.264 quality, 0 lossless to 51 (default: 16)")


def run(args: argparse.Namespace) -> CommandReport:
    """Simulate."""
    plan = _plan(args)
    if (args.recording / "recording.toml").exists():
        raise InputError(f"{args.recording}: holds a recording already; name another folder, or delete that one")
    with progress_callback("filming") as on_progress:
        result = simulate(
            replace(plan, name=args.recording.name or plan.name),
            args.recording,
            workers=args.workers,
            on_progress=on_progress,
        )
    blind = [name for name, share in result.seen_share.items() if share == 0.0]
    cameras = len(result.seen_share)
    lines = [
        f"{args.recording}: {plan.frames} frames at {plan.rate_hz:g} Hz, {cameras} cameras, {plan.body} {plan.motion}",
        f"  the subject is seen by {cameras - len(blind)} of {cameras} cameras",
        "  truth.h5 holds joints, skin, markers, beads and contacts; rig.toml the true calibration",
    ]
    reason = f"never in view of {', '.join(blind)}" if blind else ""
    numbers: dict[str, Any] = {
        "frames": plan.frames,
        "rate_hz": plan.rate_hz,
        "cameras": cameras,
        "seen_share": result.seen_share,
    }
    return CommandReport(lines, numbers, not blind, reason)


def _plan(args: argparse.Namespace) -> Plan:
    plan = Plan() if args.plan is None else load_plan(args.plan)
    ring: dict[str, Any] = {
        key: value
        for key, value in {
            "cameras": args.cameras,
            "radius": args.radius,
            "heights": None if args.height is None else tuple(args.height),
            "target": None if args.target is None else tuple(args.target),
            "field": args.field,
            "focal": args.focal,
            "size": None if args.size is None else tuple(args.size),
            "distortion": None if args.distortion is None else tuple(args.distortion),
            "arc": args.arc,
        }.items()
        if value is not None
    }
    if ring and args.rig is not None:
        raise InputError(f"give --rig or a ring (--{next(iter(ring))}), not both")
    changes: dict[str, Any] = {
        key: value
        for key, value in {
            "body": args.body,
            "motion": args.motion,
            "motion_unit_mm": args.motion_unit,
            "frames": args.frames,
            "rate_hz": args.rate,
            "seed": args.seed,
            "rig_file": args.rig,
            "quality": args.quality,
        }.items()
        if value is not None
    }
    if args.exact_body:
        changes["variation"] = False
    if ring:
        changes["rig_file"] = None
    options = _options(args.option, plan.options)
    if args.seed is not None:
        options = replace(options, seed=args.seed)
    return replace(plan, ring=replace(plan.ring, **ring) if ring else plan.ring, options=options, **changes)


def _options(words: list[str], options: StudioOptions) -> StudioOptions:
    values: dict[str, Any] = {}
    known = {item.name: type(getattr(StudioOptions(), item.name)) for item in fields(StudioOptions)}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise InputError(f"--option {word}: wanted NAME=VALUE with a name of {', '.join(known)}")
        if known[name] is bool:
            if text.lower() not in ("true", "false", "1", "0"):
                raise InputError(f"--option {word}: wanted true or false")
            values[name] = text.lower() in ("true", "1")
            continue
        try:
            values[name] = known[name](text)
        except ValueError:
            raise InputError(f"--option {word}: '{text}' is not a {known[name].__name__}") from None
    return replace(options, **values)
