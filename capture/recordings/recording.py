"""A recording on disk: ``recording.toml`` and what it names.

    name = "mouse_07"
    rate_hz = 120.0
    subject = "mouse"          # built-in, or a folder made by `vivarig subject`
    subjects = 1               # optional: how many are in the scene
    rig = "rig.toml"           # optional: a recording may wait for its calibration
    belt = [-250.0, 0.0]       # optional: a treadmill's belt, mm/s over the floor (else found from the feet)
    wheel = {centre = [0.0, 0.0, 75.0], axis = [0.0, 1.0, 0.0], radius = 62.5} # optional: a running wheel (else found)
    point_names = "names.toml" # optional: what the names in files of 2D points mean (else told from the names)

    [cameras.cam01]            # one table per camera, in the rig's order
    video = "videos/cam01.mp4" # or images = "frames/cam01", or masks = "masks/cam01" alone
    background = "videos/cam01_background.png"   # optional: plate, clip or folder without the subject, or a list
    background_frames = [0, 250]   # optional: its frames (from, up to) in which the subject is not there
    points = "dlc/cam01.h5"    # optional: 2D points of another program (DeepLabCut, SLEAP, COCO keypoints)
    kind = "light"             # or "xray"
    offset = 0.0               # frames by which this camera's clock is late

    [track]                    # optional: options of a stage, by the names of its verb
    texture = false

    [session]                  # optional: what NWB files say of animal and day
    start = 2026-03-02T10:15:00+01:00
    subject_id = "m7"          # and species, sex, age (ISO 8601: "P90D"), weight, description, experimenter, lab,
                               # institution

A folder that `vivarig track --meshes` made has ``meshes = "DIR"`` in place of cameras.
Everything the program makes goes to ``results/``; nothing that the user brought is changed.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from calibration.cameras.camera import KINDS, Kind
from calibration.cameras.rig import Rig, load_rig
from calibration.foundation.damaged_files import require_ordinary
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.names import checked_name
from calibration.foundation.tables import Table, read_toml

__all__ = ["STAGES", "Footage", "Recording", "WheelPlace", "load_recording", "save_recording"]

#: Tables of settings, one per stage.
STAGES = ("silhouettes", "hull", "track", "skeleton", "clean", "report")
_KEYS = (
    "name",
    "rate_hz",
    "subject",
    "subjects",
    "rig",
    "belt",
    "wheel",
    "cameras",
    "meshes",
    "lengths",
    "notes",
    "session",
    "point_names",
    *STAGES,
)
_SESSION_KEYS = (
    "start", "subject_id", "species", "sex", "age", "weight", "description", "experimenter", "lab", "institution",
)  # fmt: skip
_CAMERA_KEYS = ("video", "images", "background", "background_frames", "masks", "points", "kind", "offset")


@dataclass(frozen=True)
class Footage:
    """One camera's images.

    Attributes:
        name: the camera's name, as in the rig.
        source: video file or folder of images; where there are none, the masks.
        background: plate, clip or folder without the subject, if there is one.
        masks: silhouettes the user brings (folder of PNG, video or COCO JSON), if any; or those of one subject out of
            several, an HDF5 file like ``silhouettes.h5`` whose rows are the recording's frames.
        points: file of 2D points of the subject that another program marked in these images, if any.
        kind: "light" or "xray".
        offset_frames: frames by which this camera's clock is late: recording frame i is its frame i + offset.
        more_backgrounds: further plates or clips of the empty scene.
        background_frames: frames of the backgrounds (from, up to) that show the empty scene; None: all.
    """

    name: str
    source: Path
    background: Path | None = None
    masks: Path | None = None
    points: Path | None = None
    kind: Kind = "light"
    offset_frames: float = 0.0
    more_backgrounds: tuple[Path, ...] = ()
    background_frames: tuple[int, int] | None = None

    @property
    def backgrounds(self) -> tuple[Path, ...]:
        """All plates and clips of the empty scene."""
        return () if self.background is None else (self.background, *self.more_backgrounds)

    @property
    def has_images(self) -> bool:
        """Whether there are images, not masks alone."""
        return self.source != self.masks


@dataclass(frozen=True)
class WheelPlace:
    """Where a running wheel is: a point of its axis, the direction of that, the radius that is run on; mm."""

    centre: tuple[float, float, float]
    axis: tuple[float, float, float]
    radius: float


@dataclass(frozen=True, eq=False)
class Recording:
    """A recording folder, checked.

    Attributes:
        folder: where it lies.
        name: for people.
        rate_hz: frames per second.
        subject: built-in body or path of a subject folder; None where the file names none.
        rig: its cameras in the order of ``footage``, None before calibration.
        footage: one per camera.
        meshes: folder of meshes that were tracked instead of images, if any.
        subjects: how many are in the scene.
        rig_file: where the rig was read, if it was.
        settings: options of the stages that the file sets, by stage and name.
        belt: velocity of a treadmill's belt over the floor, x and y in mm/s, where the file names it.
        wheel: where the running wheel is, where the file names one.
        session: what the file says of animal and day, for NWB; ``start`` is a datetime with its time zone.
        point_names: file that says what the names of 2D points mean, if there is one.
    """

    folder: Path
    name: str
    rate_hz: float
    subject: str | None
    rig: Rig | None
    footage: tuple[Footage, ...]
    meshes: Path | None = None
    subjects: int = 1
    rig_file: Path | None = None
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    belt: tuple[float, float] | None = None
    wheel: WheelPlace | None = None
    session: Mapping[str, Any] = field(default_factory=dict)
    point_names: Path | None = None

    @property
    def results(self) -> Path:
        """The folder of everything produced."""
        return self.folder / "results"

    def need_rig(self) -> Rig:
        """Return the rig, or say how to get one."""
        if self.rig is None:
            raise InputError(f"{self.folder}: no rig.toml; make one with `vivarig calibrate SESSION`, or convert yours")
        return self.rig

    def from_frame(self, frame: int) -> Recording:
        """Return the recording that begins at one of its frames: results of a part of it count from there."""
        moved = (replace(one, offset_frames=one.offset_frames + frame) for one in self.footage)
        return replace(self, footage=tuple(moved))

    def of_kind(self, kind: Kind) -> tuple[int, ...]:
        """Return the indices of the cameras of one kind."""
        return tuple(index for index, footage in enumerate(self.footage) if footage.kind == kind)


def load_recording(folder: Path | str) -> Recording:
    """Read and check ``recording.toml`` in ``folder`` (or given itself), with its rig if it names one."""
    place = Path(folder)
    file = place if place.suffix == ".toml" else place / "recording.toml"
    place = file.parent
    if not file.is_file():
        raise InputError(
            f"{file}: no such file; a recording is a folder with recording.toml (see docs/reference/recording.md)"
        )
    root = read_toml(file)
    root.allow(_KEYS)
    meshes = _existing(root, "meshes", place) if "meshes" in root else None
    footage: tuple[Footage, ...] = ()
    if meshes is None or "cameras" in root:
        cameras = root.table("cameras")
        footage = tuple(_footage(cameras.table(key), key, place) for key in cameras.content)
    if not footage and meshes is None:
        raise InputError(f"{file}: [cameras] is empty; wanted one table per camera")
    rig_file = place / root.text("rig", "rig.toml")
    rig: Rig | None = None
    if rig_file.is_file():
        rig = _matching(load_rig(rig_file), footage, file, rig_file)
    elif "rig" in root:
        raise InputError(f"{root.where('rig')}: no such file: {rig_file}")
    return Recording(
        folder=place,
        name=checked_name(root.text("name"), f"{file}: the recording") if "name" in root else place.resolve().name,
        rate_hz=root.number("rate_hz", above=0),
        subject=root.text("subject") if "subject" in root else None,
        rig=rig,
        footage=footage,
        meshes=meshes,
        subjects=root.whole("subjects", 1, least=1),
        rig_file=None if rig is None else rig_file,
        settings={stage: dict(root.table(stage).content) for stage in STAGES if stage in root},
        belt=_belt(root),
        wheel=_wheel(root),
        session=_session(root),
        point_names=_existing(root, "point_names", place) if "point_names" in root else None,
    )


def _belt(root: Table) -> tuple[float, float] | None:
    if "belt" not in root:
        return None
    vx, vy = root.array("belt", (2,))
    return float(vx), float(vy)


def _wheel(root: Table) -> WheelPlace | None:
    if "wheel" not in root:
        return None
    if "belt" in root:
        raise InputError(f"{root.path}: belt and wheel: the ground is one of them, take the other out")
    table = root.table("wheel")
    table.allow(("centre", "axis", "radius"))
    centre, axis = (table.array(key, (3,)) for key in ("centre", "axis"))
    across = float(np.hypot(axis[0], axis[1]))
    if across <= abs(float(axis[2])):
        raise InputError(
            f"{table.where('axis')}: wanted the way a wheel's axis goes, more level than upright, got {axis.tolist()}"
        )
    (x, y, z), (a, b, c) = centre.tolist(), axis.tolist()
    return WheelPlace((x, y, z), (a, b, c), table.number("radius", above=0))


def _session(root: Table) -> dict[str, Any]:
    if "session" not in root:
        return {}
    table = root.table("session")
    table.allow(_SESSION_KEYS)
    content: dict[str, Any] = {key: table.text(key) for key in table.content if key != "start"}
    if "start" in table:
        start = table.require("start")
        if not isinstance(start, datetime.datetime) or start.tzinfo is None:
            raise InputError(
                f"{table.where('start')} must be date, time and time zone, e.g. 2026-03-02T10:15:00+01:00, got {start}"
            )
        content["start"] = start
    return content


def _footage(table: Table, name: str, place: Path) -> Footage:
    table.allow(_CAMERA_KEYS)
    checked_name(name, f"{table.path}: a camera")
    given = [key for key in ("video", "images") if key in table] or (["masks"] if "masks" in table else [])
    if len(given) != 1:
        raise InputError(f"{table.path}: [{table.name}] must have either video or images, or masks alone")
    source = _existing(table, given[0], place)
    backgrounds = _backgrounds(table, place)
    return Footage(
        name=name,
        source=source,
        background=backgrounds[0] if backgrounds else None,
        masks=_existing(table, "masks", place) if "masks" in table else None,
        points=_existing(table, "points", place) if "points" in table else None,
        kind="xray" if table.text("kind", "light", choices=KINDS) == "xray" else "light",
        offset_frames=table.number("offset", 0.0),
        more_backgrounds=backgrounds[1:],
        background_frames=_background_frames(table),
    )


def _backgrounds(table: Table, place: Path) -> tuple[Path, ...]:
    """Return the plates and clips of the empty scene, one or a list."""
    if "background" not in table:
        return ()
    given = table.require("background")
    if not isinstance(given, list):
        return (_existing(table, "background", place),)
    if not given or not all(isinstance(one, str) for one in given):
        raise InputError(f"{table.where('background')} must be a path, or a list of paths, got {given!r}")
    return tuple(_there(place / one, one, table.where("background")) for one in given)


def _background_frames(table: Table) -> tuple[int, int] | None:
    if "background_frames" not in table:
        return None
    given = table.require("background_frames")
    whole = isinstance(given, list) and len(given) == 2 and all(type(one) is int for one in given)
    if not whole or not 0 <= given[0] < given[1] or "background" not in table:
        raise InputError(
            f"{table.where('background_frames')} must be frames of the background (from, up to) that show the empty "
            f"scene, e.g. [0, 250], beside a background; got {given!r}"
        )
    return given[0], given[1]


def _existing(table: Table, key: str, place: Path) -> Path:
    text = table.text(key)
    return _there(place / text, text, table.where(key))


def _there(path: Path, text: str, where: str) -> Path:
    if "\0" in text or len(text) > 4000:
        raise InputError(f"{where} must be a path")
    try:
        there = path.exists()
    except OSError:
        there = False
    if not there:
        raise InputError(f"{where}: no such file or folder: {path}")
    require_ordinary(path)
    return path


def _matching(rig: Rig, footage: tuple[Footage, ...], file: Path, rig_file: Path) -> Rig:
    wanted = [f.name for f in footage]
    missing = [name for name in wanted if name not in rig.names]
    if missing:
        raise InputError(f"{file}: camera '{missing[0]}' is not in {rig_file.name}; the rig has {', '.join(rig.names)}")
    return rig.subset(wanted)


def save_recording(recording: Recording, *, rig_file: str = "rig.toml", within: Path | None = None) -> Path:
    """Write ``recording.toml`` into the recording's folder and return its path.

    Paths in the folder, or in the folder ``within`` that holds it, are written relative to it.
    """

    def relative(path: Path) -> str:
        if path.is_relative_to(recording.folder):
            return path.relative_to(recording.folder).as_posix()
        if within is not None and path.is_relative_to(within):
            return Path(os.path.relpath(path, recording.folder)).as_posix()
        return str(path)

    content: dict[str, Any] = {"name": recording.name, "rate_hz": recording.rate_hz}
    if recording.subject is not None:
        content["subject"] = recording.subject
    if recording.subjects != 1:
        content["subjects"] = recording.subjects
    if recording.rig is not None:
        content["rig"] = rig_file
    if recording.belt is not None:
        content["belt"] = list(recording.belt)
    if recording.wheel is not None:
        content["wheel"] = asdict(recording.wheel)
    if recording.point_names is not None:
        content["point_names"] = relative(recording.point_names)
    if recording.meshes is not None:
        content["meshes"] = relative(recording.meshes.resolve())
    if recording.session:
        content["session"] = dict(recording.session)
    content.update({stage: dict(table) for stage, table in recording.settings.items()})
    if recording.footage:
        content["cameras"] = {}
    for footage in recording.footage:
        key = "images" if footage.source.is_dir() else "video"
        table: dict[str, Any] = {key: relative(footage.source)} if footage.has_images else {}
        if footage.background is not None:
            paths = [relative(path) for path in footage.backgrounds]
            table["background"] = paths if len(paths) > 1 else paths[0]
        if footage.background_frames is not None:
            table["background_frames"] = list(footage.background_frames)
        if footage.masks is not None:
            table["masks"] = relative(footage.masks)
        if footage.points is not None:
            table["points"] = relative(footage.points)
        if footage.kind != "light":
            table["kind"] = footage.kind
        if footage.offset_frames:
            table["offset"] = footage.offset_frames
        content["cameras"][footage.name] = table
    target = recording.folder / "recording.toml"
    write_text(target, tomli_w.dumps(content))
    return target
