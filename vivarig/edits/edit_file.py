"""``edits.toml`` of a recording: what a person who looked says against the program.

[[mask]]                     # paint (or erase) a stroke of the brush in a camera's silhouettes
camera = "cam03"
frames = [120, 120]          # first and last
paint = true                 # false: erase
radius = 6.0                 # px
path = [[311.0, 204.5], [318.0, 210.0]]   # px

[[drop]]                     # leave a camera out for a while
camera = "cam05"
frames = [200, 260]

[[lost]]                     # not to be trusted: all of it, or one limb
frames = [300, 320]
limb = "left_arm"            # optional

[[key_pose]]                 # where parts are in a frame
frame = 140
ramp = 10                    # frames in which the correction of joints sets in and ends
joints = {left_wrist = [12.0, -40.0, 310.0]}           # mm; held by the skeleton, its limb moves with it
quads = {head = [10.0, 20.0, 300.0]}                   # mm, centres; the track starts from there

[names]                      # what beads and virtual markers are called
beads = {bead_3 = "femur_distal"}

[[edit]]                     # of `vivarig clean`, see docs/reference/gait.md
point = "left_wrist"
frames = [120, 140]
place = [12.0, -40.0, 310.0]

Frames are those of the recording, counted from 0. Each kind may carry ``note``, for people.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tomli_w

from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.names import checked_name
from calibration.foundation.tables import Table, read_toml
from skeleton.inverse_kinematics.shape_constraints import MODES, Hold

__all__ = ["Drop", "Edits", "KeyPose", "Lost", "Stroke", "edits_file", "load_edits", "save_edits"]

_MOST_POINTS = 100_000
_MOST_RADIUS = 10_000.0
Place = tuple[float, float, float]


@dataclass(frozen=True)
class Stroke:
    """A stroke of the brush in the silhouettes of a camera: painted, or erased; radius and path in px."""

    camera: str
    first: int
    last: int
    paint: bool
    radius: float
    path: tuple[tuple[float, float], ...]
    note: str = ""


@dataclass(frozen=True)
class Drop:
    """A camera that is left out for some frames."""

    camera: str
    first: int
    last: int
    note: str = ""


@dataclass(frozen=True)
class Lost:
    """Frames in which the body, or a limb, is not to be trusted; limb empty: all of it."""

    first: int
    last: int
    limb: str = ""
    note: str = ""


@dataclass(frozen=True)
class KeyPose:
    """Where joints and quads are in a frame, mm; ``ramp`` frames on both sides lead to it."""

    frame: int
    joints: Mapping[str, Place] = field(default_factory=dict)
    quads: Mapping[str, Place] = field(default_factory=dict)
    ramp: int = 10
    note: str = ""


@dataclass(frozen=True)
class Edits:
    """All edits of a recording; frames are the recording's.

    Attributes:
        masks, drops, lost, key_poses: as above.
        bead_names, marker_names: name in the results -> name to be shown and exported.
        holds: point -> what it shall do in ``clean.h5``.
    """

    masks: tuple[Stroke, ...] = ()
    drops: tuple[Drop, ...] = ()
    lost: tuple[Lost, ...] = ()
    key_poses: tuple[KeyPose, ...] = ()
    bead_names: Mapping[str, str] = field(default_factory=dict)
    marker_names: Mapping[str, str] = field(default_factory=dict)
    holds: Mapping[str, tuple[Hold, ...]] = field(default_factory=dict)

    @property
    def touches_silhouettes(self) -> bool:
        """Whether silhouettes change."""
        return bool(self.masks or self.drops)

    @property
    def touches_track(self) -> bool:
        """Whether the track changes."""
        return self.touches_silhouettes or bool(self.lost) or any(one.quads for one in self.key_poses)

    def digest(self, *kinds: str) -> str:
        """Return a digest of some kinds of edits, by their attributes' names; empty where there are none of them."""
        told = {kind: _plain(getattr(self, kind)) for kind in kinds if getattr(self, kind)}
        if not told:
            return ""
        return hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=16).hexdigest()

    def described(self) -> list[tuple[str, str]]:
        """Return each edit as (what, where), for people."""
        rows = [
            (f"{'painted' if one.paint else 'erased'} in the silhouettes of {one.camera}{_said(one)}", _span(one))
            for one in self.masks
        ]
        rows += [(f"{one.camera} left out{_said(one)}", _span(one)) for one in self.drops]
        rows += [(f"{one.limb.replace('_', ' ') or 'all'} lost{_said(one)}", _span(one)) for one in self.lost]
        for pose in self.key_poses:
            what = ", ".join([*pose.joints, *(f"quad {name}" for name in pose.quads)])
            rows.append((f"key pose of {what}{_said(pose)}", f"frame {pose.frame}, ramp {pose.ramp}"))
        rows += [(f"bead {old} is called {new}", "everywhere") for old, new in self.bead_names.items()]
        rows += [(f"marker {old} is called {new}", "everywhere") for old, new in self.marker_names.items()]
        rows += [(f"{point} held, in clean.h5", _span(hold)) for point, holds in self.holds.items() for hold in holds]
        return rows


def _said(one: Stroke | Drop | Lost | KeyPose) -> str:
    return f" ({one.note})" if one.note else ""


def _span(one: Stroke | Drop | Lost | Hold) -> str:
    return f"frame {one.first}" if one.first == one.last else f"frames {one.first} to {one.last}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    # words for people change nothing
    return {key: item for key, item in asdict(value).items() if key != "note"} if hasattr(value, "__dict__") else value


def edits_file(folder: Path) -> Path:
    """Return where the edits of a recording lie."""
    return folder / "edits.toml"


def load_edits(path: Path) -> Edits:
    """Read the edits of a recording; none if there is no such file."""
    if not path.is_file():
        return Edits()
    root = read_toml(path)
    root.allow(("mask", "drop", "lost", "key_pose", "names", "edit"))
    bead_names, marker_names = _names(root)
    holds: dict[str, list[Hold]] = {}
    for row in _rows(root, "edit"):
        holds.setdefault(row.text("point"), []).append(_hold(row))
    return Edits(
        tuple(_stroke(row) for row in _rows(root, "mask")),
        tuple(Drop(_camera(row), *_frames(row, "camera"), row.text("note", "")) for row in _rows(root, "drop")),
        tuple(Lost(*_frames(row, "limb"), row.text("limb", ""), row.text("note", "")) for row in _rows(root, "lost")),
        tuple(_key_pose(row) for row in _rows(root, "key_pose")),
        bead_names,
        marker_names,
        {point: tuple(rows) for point, rows in holds.items()},
    )


def _rows(root: Table, kind: str) -> Iterable[Table]:
    if kind not in root:
        return []
    rows = root.require(kind)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{root.path}: {kind}: each is written as a table [[{kind}]]")
    return [Table(root.path, f"{kind} {number}", row) for number, row in enumerate(rows, 1)]


def _frames(row: Table, *others: str) -> tuple[int, int]:
    if others:
        row.allow(("frames", "note", *others))
    first, last = row.array("frames", (2,)).tolist()
    if first != int(first) or last != int(last) or not 0 <= first <= last:
        wanted = "[first, last] with 0 <= first <= last"
        raise InputError(f"{row.where('frames')} must be {wanted}, got [{first:g}, {last:g}]")
    return int(first), int(last)


def _camera(row: Table) -> str:
    return checked_name(row.text("camera"), f"{row.where('camera')}")


def _stroke(row: Table) -> Stroke:
    row.allow(("camera", "frames", "paint", "radius", "path", "note"))
    radius = row.number("radius", above=0.0)
    path = row.array("path", (None, 2))
    if radius > _MOST_RADIUS or not 1 <= len(path) <= _MOST_POINTS:
        wanted = f"1 to {_MOST_POINTS} points and a radius up to {_MOST_RADIUS:g} px"
        raise InputError(f"{row.where('path')}: wanted {wanted}")
    points = tuple((float(x), float(y)) for x, y in path)
    return Stroke(_camera(row), *_frames(row), row.flag("paint", True), radius, points, row.text("note", ""))


def _places(row: Table, key: str) -> dict[str, Place]:
    if key not in row:
        return {}
    table = row.table(key)
    out = {}
    for name in table.content:
        x, y, z = table.array(name, (3,)).tolist()
        out[name] = (x, y, z)
    return out


def _key_pose(row: Table) -> KeyPose:
    row.allow(("frame", "joints", "quads", "ramp", "note"))
    pose = KeyPose(
        row.whole("frame", least=0), _places(row, "joints"), _places(row, "quads"), row.whole("ramp", 10, least=0),
        row.text("note", ""),
    )  # fmt: skip
    if not pose.joints and not pose.quads:
        raise InputError(f"{row.where('joints')}: a key pose names joints or quads, with their places in mm")
    return pose


def _hold(row: Table) -> Hold:
    row.allow(("point", "frames", "place", "mode", "priority", "ramp", "note"))
    x, y, z = row.array("place", (3,)).tolist()
    mode = row.text("mode", "absolute", choices=MODES)
    return Hold(*_frames(row), (x, y, z), mode, row.whole("priority", 2), row.whole("ramp", 10, least=0))


def _names(root: Table) -> tuple[dict[str, str], dict[str, str]]:
    if "names" not in root:
        return {}, {}
    table = root.table("names")
    table.allow(("beads", "markers"))
    found = []
    for kind in ("beads", "markers"):
        words = table.table(kind) if kind in table else Table(root.path, f"names.{kind}", {})
        found.append({old: checked_name(words.text(old), f"{words.where(old)}") for old in words.content})
    return found[0], found[1]


def save_edits(path: Path, edits: Edits) -> None:
    """Write the edits, atomically; a file without any is removed. Comments of a file written by hand are lost."""
    content: dict[str, Any] = {}
    if edits.masks:
        content["mask"] = [
            {"camera": one.camera, "frames": [one.first, one.last], "paint": one.paint, "radius": one.radius,
             "path": [list(point) for point in one.path], **_noted(one)}
            for one in edits.masks
        ]  # fmt: skip
    if edits.drops:
        content["drop"] = [
            {"camera": one.camera, "frames": [one.first, one.last], **_noted(one)} for one in edits.drops
        ]
    if edits.lost:
        content["lost"] = [
            {"frames": [one.first, one.last], **({"limb": one.limb} if one.limb else {}), **_noted(one)}
            for one in edits.lost
        ]
    if edits.key_poses:
        content["key_pose"] = [
            {"frame": one.frame, "ramp": one.ramp,
             **{kind: {name: list(place) for name, place in places.items()}
                for kind, places in (("joints", one.joints), ("quads", one.quads)) if places}, **_noted(one)}
            for one in edits.key_poses
        ]  # fmt: skip
    names = {
        kind: dict(words) for kind, words in (("beads", edits.bead_names), ("markers", edits.marker_names)) if words
    }
    if names:
        content["names"] = names
    if edits.holds:
        content["edit"] = [
            {"point": point, "frames": [hold.first, hold.last], "place": list(hold.place), "mode": hold.mode,
             "priority": hold.priority, "ramp": hold.ramp}
            for point, holds in edits.holds.items() for hold in holds
        ]  # fmt: skip
    if content:
        write_text(path, "# made by hand; docs/reference/mending.md says what each means\n" + tomli_w.dumps(content))
    else:
        path.unlink(missing_ok=True)


def _noted(one: Stroke | Drop | Lost | KeyPose) -> dict[str, str]:
    return {"note": one.note} if one.note else {}
