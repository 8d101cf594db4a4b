"""``vivarig convert``: rig files and motion files between formats."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from calibration.cameras.rig import UNITS_MM, duplicate_cameras
from calibration.foundation.errors import InputError
from calibration.rig_formats import FORMATS, ReadOptions, read_rig, recognise, rig_format, write_rig
from capture.recordings.humaneva_folder import open_sequence
from skeleton.motion_files import READERS, SUFFIXES, WRITERS, JointMotion, MarkerSeries, read_motion, write_motion
from vivarig.console.reporting import CommandReport
from vivarig.evaluation.humaneva_recording import make_recording

HELP = (
    "Convert a rig (cameras) or a motion (markers, joints) from one file format to another. The input's format is "
    "recognised from its content, the output's from its suffix; --from and --to name them. What the target cannot hold "
    "is said, and refused unless --lossy."
)
EXAMPLE = """  vivarig convert calibration.toml mayacams/ --to mayacam2
  vivarig convert walk.c3d walk.trc
  vivarig convert HumanEva_I s1_walking --humaneva S1 Walking_1"""

#: What a suffix of the output means for rigs, where it means one thing.
_BY_SUFFIX = {".toml": "anipose", ".yml": "opencv", ".yaml": "opencv", ".mat": "dannce", ".csv": "dlt"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("source", type=Path, metavar="IN", help="file or folder to read")
    parser.add_argument("target", type=Path, metavar="OUT", help="file or folder to write")
    parser.add_argument(
        "--from",
        dest="source_format",
        metavar="FORMAT",
        help=f"rig: {', '.join(FORMATS)}; motion: {', '.join(READERS)}",
    )
    parser.add_argument(
        "--to", dest="target_format", metavar="FORMAT", help=f"rig: as for --from; motion: {', '.join(WRITERS)}"
    )
    parser.add_argument("--size", metavar="WxH", help="image size, for formats that hold none, e.g. 656x490")
    parser.add_argument("--units", choices=sorted(UNITS_MM), help="unit of the input's lengths, where it states none")
    parser.add_argument("--unit-mm", type=float, metavar="MM", help="motion: millimetres in one unit of the input")
    parser.add_argument("--rate", type=float, metavar="HZ", help="motion: frames per second, where the input has none")
    parser.add_argument("--up", choices=("x", "y", "z"), help="motion: the input's upward axis")
    parser.add_argument("--individual", metavar="NAME", help="motion: whose points, if the input holds several animals")
    parser.add_argument(
        "--least-likelihood", type=float, metavar="P", help="DeepLabCut: points below this likelihood are missing"
    )
    parser.add_argument("--drop-first", action="store_true", help="BVH: leave out the first frame (CMU's added T-pose)")
    parser.add_argument("--y-up", action="store_true", help="DLT: the image's y grows upwards")
    parser.add_argument("--lossy", action="store_true", help="drop what the target format cannot hold")
    parser.add_argument(
        "--humaneva", nargs=2, metavar=("SUBJECT", "ACTION"),
        help="IN is the root of HumanEva: describe this sequence as a recording folder OUT; nothing is copied",
    )  # fmt: skip


def run(args: argparse.Namespace) -> CommandReport:
    """Convert, rig or motion, whichever the input is."""
    if not args.source.exists():
        raise InputError(f"{args.source}: no such file or folder")
    if args.humaneva is not None:
        return _describe_sequence(args)
    if _is_motion(args):
        return _convert_motion(args)
    return _convert_rig(args)


def _describe_sequence(args: argparse.Namespace) -> CommandReport:
    subject, action = args.humaneva
    recording = make_recording(open_sequence(args.source, subject, action), args.target)
    offsets = ", ".join(f"{one.name} {one.offset_frames:g}" for one in recording.footage)
    lines = [f"wrote {args.target}: {len(recording.footage)} cameras; offsets in frames: {offsets}"]
    plates = sum(one.background is not None for one in recording.footage)
    lines.append(f"  background plates: {plates}; now: vivarig run {args.target}")
    return CommandReport(lines, {"target": str(args.target), "cameras": [one.name for one in recording.footage]})


def _is_motion(args: argparse.Namespace) -> bool:
    """Rig or motion: by the named format, else by content, else by suffix ('anipose' names one of each)."""
    if args.source_format in READERS and args.source_format not in FORMATS:
        return True
    if args.source_format in FORMATS and args.source_format not in READERS:
        return False
    return recognise(args.source) is None and args.source.suffix.lower() in SUFFIXES


def _convert_motion(args: argparse.Namespace) -> CommandReport:
    unit = args.unit_mm if args.unit_mm is not None else UNITS_MM.get(args.units or "")
    motion = read_motion(
        args.source, args.source_format, rate_hz=args.rate, unit_mm=unit, up=args.up, individual=args.individual,
        least_likelihood=args.least_likelihood, drop_first=args.drop_first or None,
    )  # fmt: skip
    write_motion(motion, args.target, args.target_format)
    what = "coordinates"
    if isinstance(motion, MarkerSeries):
        what = f"{len(motion.names)} points"
    elif isinstance(motion, JointMotion):
        what = "a joint tree"
    line = f"wrote {args.target} from {args.source} ({what})"
    return CommandReport([line], {"source": str(args.source), "target": str(args.target), "holds": what})


def _convert_rig(args: argparse.Namespace) -> CommandReport:
    source = rig_format(args.source_format) if args.source_format else recognise(args.source)
    if source is None:
        known = ", ".join([*FORMATS, *READERS])
        raise InputError(f"{args.source}: format not recognised; name it with --from ({known})")
    options = ReadOptions(_size(args.size), UNITS_MM[args.units] if args.units else None, args.y_up)
    rig = read_rig(args.source, source.name, options)
    target = args.target_format or _target_format(args.target)
    lost = write_rig(rig, args.target, target, lossy=args.lossy)
    unit = args.units or source.unit
    lines = [f"read {len(rig)} cameras from {args.source} ({source.title}, lengths in {unit})"]
    lines += [
        f"  {c.name}: {c.size[0]}x{c.size[1]} px, centre ({', '.join(f'{n:.1f}' for n in c.centre)}) mm" for c in rig
    ]
    copies = duplicate_cameras(rig)
    lines += [
        f"note: cameras '{a}' and '{b}' have the same pose: one is a copy of the other, or the file holds no poses"
        for a, b in copies
    ]
    lines += [f"lost: {text}" for text in lost]
    lines.append(f"wrote {args.target} ({rig_format(target).title}, lengths in {rig_format(target).unit})")
    numbers = {"cameras": list(rig.names), "from": source.name, "to": target, "lost": lost, "same_pose": copies}
    return CommandReport(lines, numbers)


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})[xX](\d{1,6})", text)
    if match is None:
        raise InputError(f"--size must be WIDTHxHEIGHT in pixels, e.g. 640x480, got {text!r}")
    return int(match[1]), int(match[2])


def _target_format(target: Path) -> str:
    if target.name.lower().endswith(".qca.txt"):
        return "qualisys"
    name = _BY_SUFFIX.get(target.suffix.lower())
    if name is None:
        raise InputError(f"{target}: cannot tell the format from this name; give it with --to ({', '.join(FORMATS)})")
    return name
