"""Clock offsets put into recording.toml as text: comments, order and everything else stay as the user wrote them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text, write_text

__all__ = ["write_offsets"]

_HEADER = re.compile(r"^\s*\[\s*cameras\s*\.\s*(?P<name>\"[^\"]*\"|'[^']*'|[A-Za-z0-9_-]+)\s*\]\s*(#.*)?$")
_OFFSET = re.compile(r"^(\s*offset\s*=\s*)([^#\s]+)(.*)$")


def write_offsets(folder: Path, offsets: Mapping[str, float]) -> Path:
    """Set ``offset`` of cameras in a recording's file, frames, and return the file.

    What comes out is read again before it is written: it must say what it said, and these offsets. A file written in a
    way that does not allow it (inline tables) is left alone, with a line that says what to write by hand.
    """
    file = folder if folder.suffix == ".toml" else folder / "recording.toml"
    text = read_text(file)
    before = tomllib.loads(text)
    lines = text.split("\n")
    for name, frames in offsets.items():
        lines = _with_offset(lines, name, frames)
    after = "\n".join(lines)
    wanted = tomllib.loads(text)
    for name, frames in offsets.items():
        wanted.get("cameras", {}).get(name, {})["offset"] = _rounded(frames)
    try:
        same = tomllib.loads(after) == wanted and set(offsets) <= set(before.get("cameras", {}))
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        words = ", ".join(f"{name}: offset = {_rounded(frames):g}" for name, frames in offsets.items())
        raise InputError(f"{file}: not written in tables [cameras.NAME], so left as it is; write by hand: {words}")
    write_text(file, after)
    return file


def _rounded(frames: float) -> float | int:
    value = round(float(frames), 2)
    return int(value) if value == int(value) else value


def _with_offset(lines: list[str], name: str, frames: float) -> list[str]:
    """Return the lines with one camera's offset changed, or added after its last key."""
    inside, last = False, -1
    for at, line in enumerate(lines):
        header = _HEADER.match(line)
        if header is not None:
            inside = header["name"].strip("\"'") == name
            last = at if inside else last
        elif re.match(r"^\s*\[", line):
            inside = False
        elif inside and (found := _OFFSET.match(line)):
            return [*lines[:at], f"{found[1]}{_rounded(frames):g}{found[3]}", *lines[at + 1 :]]
        elif inside and line.strip() and not line.lstrip().startswith("#"):
            last = at
    if last < 0:
        return lines
    return [*lines[: last + 1], f"offset = {_rounded(frames):g}", *lines[last + 1 :]]
