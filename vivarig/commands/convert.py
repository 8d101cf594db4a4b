"""``vivarig convert``: rig files and motion files between formats."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np

from calibration.cameras.camera import Camera
from calibration.cameras.image_changes import cropped, padded, rotated, scaled
from calibration.cameras.rig import UNITS_MM, Rig, duplicate_cameras
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import quaternion_from_rotation
from calibration.rig_formats import FORMATS, ReadOptions, read_rig, recognise, rig_format, write_rig
from capture.recordings.humaneva_folder import open_sequence
from skeleton.motion_files import READERS, SUFFIXES, WRITERS, JointMotion, MarkerSeries, read_motion, write_motion
from skeleton.pose_spaces.coding.motion_coding import decode_motion
from skeleton.pose_spaces.coding.vpg_files import read_vpg
from vivarig.console.reporting import CommandReport
from vivarig.evaluation.humaneva_recording import make_recording

HELP = (
    "Convert a rig (cameras) or a motion (markers, joints) from one file format to another. The input's format is "
    "recognised from its content, the output's from its suffix; --from and --to name them. What the target cannot hold "
    "is said, and refused unless --lossy."
)
EXAMPLE = """  vivarig convert calibration.toml mayacams/ --to mayacam2
  vivarig convert walk.c3d walk.trc
  vivarig convert mouse_07.vpg mouse_07.bvh
  vivarig convert rig.toml rig_half.toml --crop 1280x720+0+40 --scale 0.5
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
    _add_image_changes(parser)
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


class _InOrder(argparse.Action):
    """Collects changes of the images in the order in which they are given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        namespace.image_changes = [*(namespace.image_changes or []), (self.dest, values)]


def _add_image_changes(parser: argparse.ArgumentParser) -> None:
    """Declare what may have been done to the images since the calibration; several are done in the order given."""
    group = parser.add_argument_group(
        "a rig for videos that were changed after the calibration (done in the order given)"
    )
    group.set_defaults(image_changes=None)
    group.add_argument("--crop", action=_InOrder, metavar="WxH+X+Y", help="the part of W x H px from (X, Y) on")
    group.add_argument("--scale", action=_InOrder, metavar="F", help="scaled by a factor, or to a size WxH")
    group.add_argument("--pad", action=_InOrder, metavar="L,T,R,B", help="px added on each side (letterbox)")
    group.add_argument("--rotate", action=_InOrder, choices=("90", "180", "270"), help="turned clockwise, degrees")
    group.add_argument(
        "--camera", dest="cameras", action="append", metavar="NAME", help="only this camera's videos were (repeatable)"
    )


def run(args: argparse.Namespace) -> CommandReport:
    """Convert, rig or motion, whichever the input is."""
    if not args.source.exists():
        raise InputError(f"{args.source}: no such file or folder")
    if args.humaneva is not None:
        return _describe_sequence(args)
    if args.source.suffix.lower() == ".vpg" and args.source_format is None:
        return _decode_motion(args)
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


def _decode_motion(args: argparse.Namespace) -> CommandReport:
    """Decode a .vpg file of `vivarig export` into any format that holds joints or points."""
    coded = read_vpg(args.source)
    rotations, root = decode_motion(coded)
    shifts = np.zeros((coded.frames, len(coded.names), 3))
    shifts[:, 0] = root
    offsets = coded.offsets.copy()
    offsets[0] = 0.0
    motion = JointMotion(
        coded.names, tuple(int(p) for p in coded.parents), offsets, np.full(offsets.shape, np.nan), shifts,
        quaternion_from_rotation(rotations), coded.rate_hz, up=coded.up,
    )  # fmt: skip
    joints = args.target.suffix.lower() in (".bvh", ".amc")
    write_motion(motion if joints else motion.as_markers(tips=False), args.target, args.target_format)
    line = f"wrote {args.target} from {args.source} ({coded.frames} frames, {coded.modes} numbers each)"
    return CommandReport([line], {"source": str(args.source), "target": str(args.target), "frames": coded.frames})


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
    rig = _for_changed_images(read_rig(args.source, source.name, options), args.image_changes or [], args.cameras)
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


def _for_changed_images(rig: Rig, changes: list[tuple[str, str]], only: list[str] | None) -> Rig:
    """Return the rig for images to which something was done."""
    if only and not changes:
        raise InputError("--camera says whose images were changed: give --crop, --scale, --pad or --rotate, too")
    for name in only or []:
        rig[name]  # an unknown name is said
    cameras = list(rig)
    for index, camera in enumerate(cameras):
        if only and camera.name not in only:
            continue
        for what, text in changes:
            cameras[index] = camera = _changed(camera, what, text)
    return Rig(tuple(cameras))


def _changed(camera: Camera, what: str, text: str) -> Camera:
    if what == "rotate":
        return rotated(camera, int(text))
    if what == "crop":
        match = re.fullmatch(r"(\d{1,6})[xX](\d{1,6})\+(\d{1,6})\+(\d{1,6})", text)
        if match is None:
            raise InputError(f"--crop must be WxH+X+Y in pixels, e.g. 640x480+100+50, got {text!r}")
        width, height, x, y = (int(number) for number in match.groups())
        return cropped(camera, (x, y), (width, height))
    if what == "pad":
        match = re.fullmatch(r"(\d{1,6}),(\d{1,6}),(\d{1,6}),(\d{1,6})", text)
        if match is None:
            raise InputError(f"--pad must be LEFT,TOP,RIGHT,BOTTOM in pixels, e.g. 0,60,0,60, got {text!r}")
        left, top, right, bottom = (int(number) for number in match.groups())
        return padded(camera, left, top, right, bottom)
    if re.fullmatch(r"\d{1,6}[xX]\d{1,6}", text):
        width, height = (int(number) for number in re.split("[xX]", text))
        return scaled(camera, (width, height))
    try:
        factor = float(text)
    except ValueError:
        raise InputError(f"--scale must be a factor or WxH in pixels, e.g. 0.5 or 640x480, got {text!r}") from None
    if not 0.001 < factor < 1000:
        raise InputError(f"--scale must lie between 0.001 and 1000, got {text}")
    return scaled(camera, (round(factor * camera.size[0]), round(factor * camera.size[1])))


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
