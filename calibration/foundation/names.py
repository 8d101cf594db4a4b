"""Names that files may give to things: checked once at the door, so that no path made from one leaves its folder."""

from __future__ import annotations

import re
from pathlib import Path

from calibration.foundation.errors import InputError

__all__ = ["checked_label", "checked_name", "inside", "natural_key"]

LONGEST_NAME = 100
_ALSO = " _-."


def checked_name(name: str, what: str) -> str:
    """Return the name of a camera, recording, subject, bone or bead, which may become a file's name.

    Args:
        name: letters and digits of any script, space and ``_ - .``; not only dots, at most 100 characters.
        what: who is called so, for the message.
    """
    bad = next((letter for letter in name if not (letter.isalnum() or letter in _ALSO)), None)
    if bad is not None:
        raise InputError(
            f"{what} is called {_quoted(name)}: {bad!r} may not be in a name; use letters, digits, space and _ - ."
        )
    return _fitting(name, what)


def checked_label(name: str, what: str) -> str:
    """Return the name of a marker or joint, which stays inside files: anything printable but ``/`` and ``\\``.

    Motion capture systems write names like ``Anna:LASI``; those are kept as they are.
    """
    bad = next((letter for letter in name if not letter.isprintable() or letter in "/\\"), None)
    if bad is not None:
        raise InputError(f"{what} is called {_quoted(name)}: {bad!r} may not be in a name; rename it in that file")
    return _fitting(name, what)


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file in a folder; a name that would leave it is refused, wherever it came from."""
    if Path(name).name != name or name in ("", ".", "..") or "\0" in name or "\\" in name:
        raise InputError(f"{folder}: a file called {_quoted(name)} would not lie in this folder")
    return folder / name


def _fitting(name: str, what: str) -> str:
    if not name.strip(" ."):
        raise InputError(f"{what} is called {_quoted(name)}: a name needs a letter or a digit")
    if len(name) > LONGEST_NAME:
        raise InputError(f"{what} is called {_quoted(name)}: a name has at most {LONGEST_NAME} characters")
    return name


def _quoted(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:57] + "...")


def natural_key(name: str) -> list[str | int]:
    """Return a sort key that puts cam2 before cam10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
