"""Marker sets: which segment a marker rides on, where, and how firmly.

A built-in body's set is the readable file ``bodies/<body>_markers.toml``. The spring of a marker is given as the
standard deviation of the marker about its bone, mm: small on bone and paws, large on loose skin; its stiffness is the
inverse square.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, shaped
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text, write_text
from calibration.foundation.names import checked_label
from skeleton.bodies import BODIES
from skeleton.tree.joint_tree import Skeleton

__all__ = ["LANDMARK", "MarkerSet", "builtin_markers", "load_marker_set", "match_names", "save_marker_set"]

#: How the names of landmark joints begin that stand among markers.
LANDMARK = "joint "


@dataclass(frozen=True, eq=False)
class MarkerSet:
    """Markers attached to the segments of a body.

    Attributes:
        names: M marker names.
        segments: M names of the segments that carry them.
        offsets: (M, 3) place in the segment's frame, mm.
        sd_mm: (M,) standard deviation of the marker about its place, mm.
    """

    names: tuple[str, ...]
    segments: tuple[str, ...]
    offsets: Floats
    sd_mm: Floats

    def __post_init__(self) -> None:
        count = len(self.names)
        object.__setattr__(self, "names", tuple(self.names))
        object.__setattr__(self, "segments", tuple(self.segments))
        object.__setattr__(self, "offsets", shaped(self.offsets, (count, 3), "marker offsets"))
        object.__setattr__(self, "sd_mm", shaped(self.sd_mm, (count,), "marker sd_mm"))
        if len(self.segments) != count:
            raise InputError(f"marker set: {count} names, {len(self.segments)} segments")
        if (self.sd_mm <= 0).any():
            bad = self.names[int(np.argmin(self.sd_mm))]
            raise InputError(f"marker '{bad}': sd_mm must be above 0, got {self.sd_mm.min()}")
        double = [name for name in self.names if self.names.count(name) > 1]
        if double:
            raise InputError(f"marker set: the name '{double[0]}' occurs twice")

    def subset(self, names: Sequence[str]) -> MarkerSet:
        """Return the markers called ``names``, in that order."""
        for name in names:
            if name not in self.names:
                raise InputError(f"marker set: no marker '{name}'; {nearest(name, self.names)}")
        index = [self.names.index(name) for name in names]
        return MarkerSet(tuple(names), tuple(self.segments[i] for i in index), self.offsets[index], self.sd_mm[index])

    def with_sd(self, sd_mm: float | Floats) -> MarkerSet:
        """Return the set with other springs: one standard deviation for all, or one each."""
        return replace(self, sd_mm=np.broadcast_to(np.asarray(sd_mm, dtype=np.float64), (len(self.names),)).copy())

    def with_offsets(self, offsets: Floats) -> MarkerSet:
        """Return the set with other places (M, 3) on the segments."""
        return replace(self, offsets=offsets)

    def with_landmarks(self, skeleton: Skeleton) -> MarkerSet:
        """Return the set with the body's landmark joints as further markers, called `LANDMARK` and their name.

        For joint centres that were carried along with a tracked surface: flesh around them, they wander as a typical
        marker of the set does (the median of its springs).
        """
        segments, offsets = skeleton.points(list(skeleton.landmark_points.values()))
        return MarkerSet(
            (*self.names, *(LANDMARK + name for name in skeleton.landmark_names)),
            (*self.segments, *(skeleton.joint_names[index] for index in segments)),
            np.concatenate([self.offsets, offsets]),
            np.concatenate([self.sd_mm, np.full(len(segments), np.median(self.sd_mm))]),
        )


_KEYS = {"name", "segment", "offset", "sd_mm", "mirror", "note"}


@guarded("a marker set")
def load_marker_set(path: Path | str) -> MarkerSet:
    """Read a marker set file: tables ``[[marker]]`` with name, segment, offset (mm), sd_mm, mirror and note."""
    source = Path(path)
    try:
        data = tomllib.loads(read_text(source))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{source}: not TOML: {error}") from None
    rows: list[tuple[str, str, Floats, float]] = []
    tables = data.get("marker", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{source}: markers must be tables [[marker]]")
    for table in tables:
        rows += _rows(table, source)
    if not rows:
        raise InputError(f"{source}: no table [[marker]]")
    names, segments, offsets, sds = zip(*rows, strict=True)
    return MarkerSet(names, segments, np.array(offsets), np.array(sds))


def _rows(table: Mapping[str, Any], source: Path) -> list[tuple[str, str, Floats, float]]:
    name = str(table.get("name", "?"))
    for key in table:
        if key not in _KEYS:
            raise InputError(f"{source}: marker '{name}': unknown key '{key}'; {nearest(key, sorted(_KEYS))}")
    for key in ("name", "segment", "offset", "sd_mm"):
        if key not in table:
            raise InputError(f"{source}: marker '{name}': the key '{key}' is missing")
    offset = shaped(table["offset"], (3,), f"{source}: marker '{name}': offset")
    sd = float(shaped(table["sd_mm"], (), f"{source}: marker '{name}': sd_mm"))
    left = (checked_label(name, f"{source}: a marker"), str(table["segment"]), offset, sd)
    if not table.get("mirror", False):
        return [left]
    if not name.startswith("left_"):
        raise InputError(f"{source}: marker '{name}': mirror = true needs a name that begins with 'left_'")
    segment = left[1]
    other = "right_" + segment.removeprefix("left_") if segment.startswith("left_") else segment
    return [left, ("right_" + name.removeprefix("left_"), other, offset * np.array([1.0, -1.0, 1.0]), left[3])]


def save_marker_set(markers: MarkerSet, path: Path | str, *, comment: str = "") -> None:
    """Write a marker set file."""
    lines = [f"# {line}" for line in comment.splitlines()]
    for name, segment, offset, sd in zip(markers.names, markers.segments, markers.offsets, markers.sd_mm, strict=True):
        place = ", ".join(f"{value:.3f}" for value in offset)
        lines += ["", "[[marker]]", f'name = "{name}"', f'segment = "{segment}"', f"offset = [{place}]",
                  f"sd_mm = {sd:.4g}"]  # fmt: skip
    write_text(path, "\n".join(lines).lstrip("\n") + "\n")


#: Keypoint sets of pose networks, beside the bodies' own virtual markers: name to body.
KEYPOINTS = {"rat23": "rat", "mouse34": "mouse"}


def builtin_markers(body: str) -> MarkerSet:
    """Return the marker set of a built-in body, or one of the keypoint sets `KEYPOINTS`."""
    known = (*BODIES, *KEYPOINTS)
    if body not in known:
        raise InputError(f"no built-in markers for body '{body}'; {nearest(body, known)}")
    return load_marker_set(Path(__file__).parent / f"{body}_markers.toml")


def match_names(wanted: Sequence[str], given: Sequence[str], who: str) -> list[tuple[int, int]]:
    """Return pairs (index in wanted, index in given) of equal names; case and punctuation do not count.

    No pair at all is an error that shows, for some names that came, the nearest names that were wanted.
    """

    def plain(name: str) -> str:
        return re.sub(r"[^a-z0-9]", "", name.lower())

    places = {plain(name): index for index, name in enumerate(wanted)}
    pairs = [(places[plain(name)], index) for index, name in enumerate(given) if plain(name) in places]
    if not pairs:
        shown = "; ".join(f"'{name}': {nearest(name, wanted)}" for name in list(given)[:3])
        raise InputError(f"{who}: none of the {len(given)} marker names is known ({shown})")
    return pairs
