"""``vivarig init``: describe a folder of videos as a recording."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from calibration.boards.session import VIDEOS
from calibration.cameras.rig import UNITS_MM, Rig, duplicate_cameras, rig_to_toml
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.rig_formats import ReadOptions, read_rig
from calibration.solving.world_frame import moved_rig
from capture.recordings.image_stacks import open_stack
from capture.recordings.survey import Survey, camera_of, survey_folder
from capture.recordings.video import VideoInfo, probe
from capture.recordings.xmalab_project import read_xmalab_project
from skeleton.bodies import BODIES
from vivarig.calibration_stage.board_calibration import calibrate_session
from vivarig.calibration_stage.board_guess import described_session
from vivarig.calibration_stage.clock_offsets import offsets_of
from vivarig.calibration_stage.options import CalibrateOptions
from vivarig.calibration_stage.uprightness import AXES, turned_up, upward
from vivarig.commands.stage_arguments import real
from vivarig.console.reporting import CommandReport
from vivarig.xray.xmalab_folder import LaidOut, lay_out_project

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Look at a folder of videos (or images), plates, masks and a calibration of any program, or an XMALab project, and "
    "write recording.toml and rig.toml, with comments. Says what it took for what, and what is missing. Nothing that "
    "is there is changed."
)
EXAMPLE = """  vivarig init mouse_07 --subject mouse
  vivarig init room_3 --subject human --rig Calib.toml --up y
  vivarig init rat_xray --units mm          # an XMALab project (.xma) with its films
  vivarig run mouse_07"""


_XRAY = re.compile(r"x-?ray|fluoro", re.IGNORECASE)
_LIGHT = re.compile(r"light|video|visible", re.IGNORECASE)


@dataclass(frozen=True)
class _Camera:
    """One camera as it will be described: its name, its footage, plate and masks; why it is one of X-ray,
    if it is; and by how many frames the board showed it to be late.
    """

    name: str
    source: Path
    plate: Path | None = None
    masks: Path | None = None
    xray: str = ""
    offset: int = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("folder", type=Path, help="folder to look at")
    parser.add_argument("--subject", metavar="NAME", help=f"{', '.join(BODIES)} or a subject folder (default: asked)")
    parser.add_argument("--rig", type=Path, metavar="FILE", help="calibration to take, if there are several")
    parser.add_argument("--units", choices=sorted(UNITS_MM), help="unit of its lengths, where it states none")
    parser.add_argument("--trial", metavar="NAME", help="XMALab: which trial of the project, if there are several")
    parser.add_argument(
        "--square", type=real(above=0), metavar="MM",
        help="ChArUco videos without a board.toml: side of a square; the rest of the board is told from the pictures",
    )  # fmt: skip
    parser.add_argument("--up", choices=tuple(AXES), help="its upward axis (default: as its cameras stand)")
    parser.add_argument("--rate", type=real(above=0), metavar="HZ", help="frames per second (default: the videos')")
    parser.add_argument(
        "--by-order", action="store_true", help="videos and cameras in the same order, where names do not tell"
    )


def run(args: argparse.Namespace) -> CommandReport:
    """Survey, decide, write."""
    folder: Path = args.folder
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    if (folder / "recording.toml").exists():
        raise InputError(f"{folder / 'recording.toml'} is there already; edit it, or move it away to begin anew")
    found = survey_folder(folder)
    rig: Rig | None = None
    named_rate: float | None = args.rate
    if found.projects and args.rig is None:
        laid = _project(found, args)
        said, named_rate = list(laid.said), args.rate or laid.rate_hz
        cameras = [
            _Camera(name, film, xray="" if name in laid.light else "by the project")
            for name, film in laid.films.items()
        ]
    else:
        if not found.footage:
            raise InputError(f"{folder}: no video and no folder of images found, three levels deep")
        rig, said = _rig(found, args)
        late: dict[str, int] = {}
        if rig is None and found.boards:
            rig, said, late = _calibrated(found, args.square)
        cameras = [
            replace(camera, offset=late.get(camera.name, 0)) for camera in _cameras(found, rig, by_order=args.by_order)
        ]
    infos = {camera.name: _info(camera) for camera in cameras}
    rate = _rate(infos, named_rate)
    xray_alone = all(camera.xray for camera in cameras)
    subject = args.subject or (None if xray_alone else _asked())
    lines = [f"{folder}: {len(cameras)} cameras, {rate:g} frames per second", *(f"  {text}" for text in said)]
    lines += [f"  {_words(camera, infos[camera.name], folder)}" for camera in cameras]
    missing = [] if xray_alone and rig is None else _missing(found, rig, cameras, infos, subject)
    if rig is not None and not (folder / "rig.toml").exists():
        write_text(folder / "rig.toml", rig_to_toml(rig))
    write_text(folder / "recording.toml", _described(folder, cameras, rate, subject, rig))
    lines += [
        "wrote recording.toml" + ("" if rig is None else " and rig.toml"),
        *(f"  note: {text}" for text in missing),
    ]
    if not missing:
        lines.append(f"next: vivarig run {folder}")
    numbers = {"cameras": [camera.name for camera in cameras], "rate_hz": rate, "subject": subject, "missing": missing}
    return CommandReport(lines, numbers, not missing, "; ".join(missing))


def _project(found: Survey, args: argparse.Namespace) -> LaidOut:
    """Lay out the one XMALab project of the folder."""
    if len(found.projects) > 1:
        names = ", ".join(path.name for path in found.projects)
        raise InputError(f"{found.folder}: several XMALab projects ({names}); keep the one that is meant in the folder")
    return lay_out_project(read_xmalab_project(found.projects[0]), found.folder, args.trial, args.units)


def _info(camera: _Camera) -> VideoInfo:
    """Return length, rate and size; X-ray films come as TIFF and DICOM too."""
    if camera.xray and camera.source.suffix.lower() not in VIDEOS:
        stack = open_stack(camera.source)
        return VideoInfo(len(stack), None, stack.size, colour=False)
    return probe(camera.source)


def _rig(found: Survey, args: argparse.Namespace) -> tuple[Rig | None, list[str]]:
    """Return the calibration in mm with z up, and what to say of it; None where there is none."""
    path = args.rig
    if path is None and found.rigs:
        own = [place for place, _ in found.rigs if place.name == "rig.toml"]
        if not own and len(found.rigs) > 1:
            names = ", ".join(str(place.relative_to(found.folder)) for place, _ in found.rigs)
            raise InputError(f"{found.folder}: several calibrations ({names}); say which with --rig FILE")
        path = own[0] if own else found.rigs[0][0]
    if path is None:
        return None, []
    options = ReadOptions(unit_mm=None if args.units is None else UNITS_MM[args.units])
    rig = read_rig(path, options=options)
    up = args.up or upward(rig)
    said = [f"calibration: {path} ({len(rig)} cameras)"]
    if path == found.folder / "rig.toml":
        return rig, said  # the recording's own, kept as it is
    if up is not None and up != "z":
        rig = moved_rig(rig, turned_up(up))
        said.append(f"  its {up} axis points up{'' if args.up else ' (as the cameras stand)'}: turned to z")
    return rig, said


def _calibrated(found: Survey, square_mm: float | None) -> tuple[Rig | None, list[str], dict[str, int]]:
    """Calibrate from board footage that lies in the folder; None where nothing tells which board it is.

    Returns the rig, what to say, and by how many frames cameras are late.
    """
    try:
        session = described_session(found.folder, found.boards, square_mm)
    except InputError as error:
        return None, [f"board footage, but no calibration from it: {error}"], {}
    outcome, output = calibrate_session(session.folder, CalibrateOptions())
    said = [f"calibrated from {session.folder} ({len(outcome.rig)} cameras): {output / 'calibration.html'}"]
    said += [f"  world: {outcome.world}", *(f"  not all is well: {text}" for text in outcome.shortcomings())]
    late = offsets_of(outcome)
    said += [f"  {name} is {frames:+d} frames late: offset in recording.toml" for name, frames in late.items()]
    return outcome.rig, said, late


def _cameras(found: Survey, rig: Rig | None, *, by_order: bool) -> list[_Camera]:
    """Pair footage, plates and masks with cameras by their names."""
    names = list(rig.names) if rig is not None else [path.stem for path in found.footage]
    if len(set(names)) < len(names):
        names = [path.parent.name for path in found.footage]
    taken: dict[str, Path] = {}
    for path in found.footage:
        name = camera_of(path, found.folder, names)
        if name is not None and name in taken:
            raise InputError(f"{found.folder}: both {taken[name].name} and {path.name} look like camera '{name}'")
        if name is not None:
            taken[name] = path
    if len(taken) < len(found.footage):
        if not (by_order and len(found.footage) == len(names)):
            unknown = ", ".join(path.name for path in found.footage if path not in taken.values())
            raise InputError(
                f"{found.folder}: cannot tell which camera {unknown} is of; the calibration has {', '.join(names)}. "
                "Put the camera's name in the file's name, or give --by-order"
            )
        taken = dict(zip(names, found.footage, strict=True))
    plates = {camera_of(path, found.folder, names): path for path in found.plates}
    masks = {camera_of(path, found.folder, names): path for path in found.masks}
    of_xmalab = found.rigs and found.rigs[0][1].name.startswith("mayacam")
    kinds = {name: _xray(name, of_xmalab=bool(of_xmalab)) for name in taken}
    return [
        _Camera(name, taken[name], plates.get(name), masks.get(name), kinds[name]) for name in names if name in taken
    ]


def _xray(name: str, *, of_xmalab: bool) -> str:
    """Say why a camera is one of X-ray, empty if it is not: its name, or a calibration that XMALab wrote."""
    if _XRAY.search(name):
        return "by its name"
    return 'calibrated by XMALab; write "light" if it is not' if of_xmalab and not _LIGHT.search(name) else ""


def _rate(infos: dict[str, VideoInfo], given: float | None) -> float:
    """Return the frames per second that the videos name, or that was given."""
    rates = {name: info.rate_hz for name, info in infos.items() if info.rate_hz}
    if given is not None:
        return given
    if not rates:
        raise InputError("images name no frame rate; give it with --rate HZ")
    if max(rates.values()) > 1.01 * min(rates.values()):
        words = ", ".join(f"{name} {rate:g}" for name, rate in rates.items())
        raise InputError(f"the videos name different frame rates (Hz: {words}); give the true one with --rate HZ")
    return round(min(rates.values()), 3)


def _asked() -> str | None:
    """Ask for the subject where somebody can answer."""
    if not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    sys.stderr.write(f"what was filmed ({', '.join(BODIES)}, or a subject folder)? ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or None


def _missing(
    found: Survey, rig: Rig | None, cameras: list[_Camera], infos: dict[str, VideoInfo], subject: str | None
) -> list[str]:
    """Say what keeps `vivarig run` from a good result."""
    said = []
    if rig is None:
        boards = f" ({found.boards[0].parent} looks like board footage)" if found.boards else ""
        said.append(f"no calibration found; make rig.toml with `vivarig calibrate SESSION`{boards}, or convert yours")
    else:
        unseen = [name for name in rig.names if name not in infos]
        if unseen:
            said.append(f"the calibration has cameras without footage: {', '.join(unseen)}")
        for camera in cameras:
            size = rig[camera.name].size
            if tuple(size) != infos[camera.name].size:
                wide, high = infos[camera.name].size
                said.append(
                    f"{camera.name}: images of {wide}x{high} px, calibrated at {size[0]}x{size[1]}; "
                    "if they were cut or scaled, see `vivarig convert --crop --scale --pad`"
                )
        said += [
            f"cameras '{one}' and '{other}' have one and the same pose in the calibration: one of them is wrong"
            for one, other in duplicate_cameras(rig)
        ]
        stands = "z" if all(camera.xray for camera in cameras) else upward(rig)
        if stands is None:
            said.append("the cameras do not tell which way is up; z is taken for up: say otherwise with --up")
        elif stands != "z":
            said.append(f"as the cameras stand, {stands} points up in rig.toml and not z: floor and gait will be wrong")
    if subject is None and not all(camera.xray for camera in cameras):
        said.append(f'no subject; add a line like subject = "mouse" ({", ".join(BODIES)}) to recording.toml')
    return said


def _words(camera: _Camera, info: VideoInfo, folder: Path) -> str:
    """Say what was taken for what."""
    more = [
        f"{what} {path.relative_to(folder)}"
        for what, path in (("plate", camera.plate), ("masks", camera.masks))
        if path
    ]
    size = f"{info.size[0]}x{info.size[1]}"
    return f"{camera.name}: {camera.source.relative_to(folder)}, {info.frames} frames of {size}" + "".join(
        f", {text}" for text in more
    )


def _described(folder: Path, cameras: list[_Camera], rate: float, subject: str | None, rig: Rig | None) -> str:
    """Return recording.toml with comments."""
    name = _quoted(folder.resolve().name)
    lines = [
        "# What was filmed; see docs/reference/recording.md. Written by `vivarig init`; edit it as you like.",
        f"name = {name}",
        f"rate_hz = {rate:g}",
        f"subject = {_quoted(subject)}"
        if subject
        else '# subject = "mouse"        # mouse, rat, human or a subject folder; X-ray alone needs none',
    ]
    if rig is not None:
        lines.append('rig = "rig.toml"')
    elif all(camera.xray for camera in cameras):
        lines.append("# `vivarig run` calibrates from calibration/xray; its rig goes to results/xray/rig.toml")
    else:
        lines.append("# rig.toml is missing: make it with `vivarig calibrate`")
    if not all(camera.xray for camera in cameras) and not any(camera.plate for camera in cameras):
        lines.append("# No picture of the empty scene was found; it is learnt from the recording itself.")
    for camera in cameras:
        key = "images" if camera.source.is_dir() else "video"
        lines += [
            "",
            f"[cameras.{_quoted(camera.name)}]",
            f"{key} = {_quoted(camera.source.relative_to(folder).as_posix())}",
        ]
        if camera.xray:
            lines.append(f'kind = "xray"   # {camera.xray}')
        if camera.offset:
            lines.append(f"offset = {camera.offset}   # frames late, by the board")
        for what, path in (("background", camera.plate), ("masks", camera.masks)):
            if path is not None:
                lines.append(f"{what} = {_quoted(path.relative_to(folder).as_posix())}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return text as TOML writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
