"""Which point of the body a name of another program means: built-in tables, or a TOML of the user's.

[points]                # in the file that `point_names` of recording.toml names
LWrist = "left_wrist"   # a joint or a virtual marker of the subject
tailbase = "tail_root"
cable = ""              # not of the body
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from calibration.foundation.errors import InputError, nearest
from calibration.foundation.tables import read_toml

__all__ = ["body_names", "load_point_names"]

#: Words for a part, and what to try for it among the subject's own names, best first. Sides are put before.
_PARTS: dict[str, tuple[str, ...]] = {
    "nose": ("nose_tip", "nose"),
    "snout": ("nose_tip",),
    "ear": ("ear", "temple"),
    "eye": ("eye",),
    "head": ("head",),
    "topofhead": ("head_crown",),
    "chin": ("chin",),
    "neck": ("neck", "c7", "nape"),
    "nape": ("nape",),
    "thorax": ("thorax",),
    "pelvis": ("pelvis", "sacrum"),
    "hips": ("pelvis",),
    "sternum": ("sternum",),
    "shoulder": ("shoulder",),
    "elbow": ("elbow",),
    "wrist": ("wrist",),
    "hand": ("knuckle",),
    "forepaw": ("forepaw", "wrist"),
    "frontpaw": ("forepaw", "wrist"),
    "paw": ("wrist",),
    "hip": ("hip",),
    "knee": ("knee",),
    "ankle": ("ankle",),
    "heel": ("heel_skin", "heel"),
    "foot": ("ankle",),
    "toe": ("toe",),
    "bigtoe": ("toe",),
    "hindpaw": ("hindpaw", "ankle"),
    "tailbase": ("tail_root", "tail_base"),
    "tailroot": ("tail_root", "tail_base"),
    "tti": ("tail_root", "tail_base"),
    "tailtip": ("tail_end", "tail_tip"),
    "tailend": ("tail_end", "tail_tip"),
}


def body_names(names: Sequence[str], own: Sequence[str], chosen: Mapping[str, str] | None = None) -> dict[str, str]:
    """Map names of a file to joints and markers of a subject; those that mean nothing known are left out.

    Args:
        names: of the file.
        own: joints and markers that the subject has.
        chosen: by the user; "" leaves a point out.
    """
    chosen = chosen or {}
    found: dict[str, str] = {}
    for name in names:
        if name in chosen:
            if chosen[name]:
                found[name] = chosen[name]
            continue
        match = _match(name, own)
        if match is not None:
            found[name] = match
    return found


def _match(name: str, own: Sequence[str]) -> str | None:
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower()
    if plain in own:
        return plain
    words = [word for word in re.split(r"[^a-z]+", plain) if word]
    side = ""
    for word in list(words):
        if word in ("left", "right", "l", "r"):
            side = "left_" if word[0] == "l" else "right_"
            words.remove(word)
    joined = "".join(words)
    if not side and joined[:4] == "left" and joined[4:] in _PARTS:
        side, joined = "left_", joined[4:]
    elif not side and joined[:5] == "right" and joined[5:] in _PARTS:
        side, joined = "right_", joined[5:]
    elif not side and joined[:1] in ("l", "r") and joined not in _PARTS and joined[1:] in _PARTS:
        side, joined = ("left_" if joined[0] == "l" else "right_"), joined[1:]
    for part in _PARTS.get(joined, ()):
        if side + part in own:
            return side + part
    return None


def load_point_names(path: Path | str, own: Sequence[str]) -> dict[str, str]:
    """Read the user's table of names; every name on the right must be one of the subject's own."""
    table = read_toml(Path(path)).table("points")
    chosen: dict[str, str] = {}
    for key in table.content:
        value = table.text(key)
        if value and value not in own:
            raise InputError(f"{table.where(key)}: the subject has no point '{value}'; {nearest(value, own)}")
        chosen[key] = value
    return chosen
