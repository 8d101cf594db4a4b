"""The errors a user can meet: each message is one line that says who, what was wanted, what came, the way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["InputError", "SolveError", "VivarigError", "nearest", "one_line"]


LONGEST = 600  # a message may quote a damaged file; nobody reads more than this of it


class VivarigError(Exception):
    """Root of all errors that Vivarig raises on purpose. The message is always one line of bounded length."""

    def __init__(self, message: str) -> None:
        line = " ".join(message.split())
        line = "".join(letter if letter.isprintable() else "?" for letter in line)
        super().__init__(line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 3 :]}")


class InputError(VivarigError, ValueError):
    """Something the user brought cannot be used as it is."""


class SolveError(VivarigError, RuntimeError):
    """A computation did not converge, or its input is degenerate; ``report`` says how far it came."""

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report


def one_line(error: VivarigError | OSError) -> str:
    """Return what to tell the user of an error; one of the operating system with the file it is about."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"
    return str(error)


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return a hint that names the valid word nearest to a mistyped one, or lists them all."""
    words = list(valid)
    close = difflib.get_close_matches(name, words, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"valid are {', '.join(words)}" if words else "none is valid here"
