"""Typed reading of TOML tables: every complaint names file, table and key, what was wanted and what came."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import HUGE, Floats
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text

__all__ = ["Table", "read_toml"]


def read_toml(path: Path | str) -> Table:
    """Read a TOML file as its root table."""
    source = Path(path)
    try:
        content = tomllib.loads(read_text(source))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source}: not valid TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{source}: not valid TOML: nested too deeply") from None
    return Table(source, "", content)


@dataclass(frozen=True)
class Table:
    """One table of a TOML (or like) file, with where it stands."""

    path: Path
    name: str
    content: dict[str, Any]

    def __contains__(self, key: str) -> bool:
        return key in self.content

    def where(self, key: str) -> str:
        """Return the place of a key for a message: file, table and key."""
        return f"{self.path}: {f'[{self.name}] ' if self.name else ''}{key}"

    def _fail(self, key: str, wanted: str) -> InputError:
        value = self.content[key]
        text = repr(value)
        return InputError(f"{self.where(key)} must be {wanted}, got {text if len(text) <= 60 else text[:57] + '...'}")

    def require(self, key: str) -> Any:
        """Return the value of ``key``; its absence names the nearest key that is there."""
        if key not in self.content:
            there = [name for name in self.content if isinstance(name, str)]
            close = nearest(key, there)
            hint = f" (there is '{close[14:-2]}')" if close.startswith("did you mean") else ""
            raise InputError(f"{self.where(key)} is missing{hint}")
        return self.content[key]

    def allow(self, keys: Iterable[str]) -> None:
        """Refuse keys outside ``keys``, naming the nearest valid one."""
        valid = list(keys)
        for key in self.content:
            if key not in valid:
                raise InputError(f"{self.where(key)} is not a known key; {nearest(key, valid)}")

    def table(self, key: str) -> Table:
        """Return the table under ``key``."""
        value = self.require(key)
        if not isinstance(value, dict):
            raise self._fail(key, "a table")
        return Table(self.path, f"{self.name}.{key}" if self.name else key, value)

    def text(self, key: str, default: str | None = None, choices: Sequence[str] | None = None) -> str:
        """Return a string, optionally one of ``choices``."""
        if key not in self.content and default is not None:
            return default
        value = self.require(key)
        if not isinstance(value, str):
            raise self._fail(key, "text in quotes")
        if choices is not None and value not in choices:
            raise self._fail(key, f"one of {', '.join(choices)}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a true/false value."""
        value = self.content.get(key, default)
        if not isinstance(value, bool):
            raise self._fail(key, "true or false")
        return value

    def number(self, key: str, default: float | None = None, *, above: float | None = None) -> float:
        """Return a finite number, optionally above a bound."""
        if key not in self.content and default is not None:
            return default
        value = self.require(key)
        wanted = "a number" if above is None else f"a number above {above:g}"
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._fail(key, wanted)
        try:
            number = float(value)
        except OverflowError:
            raise self._fail(key, wanted) from None
        if not abs(number) < HUGE or (above is not None and number <= above):
            raise self._fail(key, wanted)
        return number

    def whole(self, key: str, default: int | None = None, *, least: int | None = None) -> int:
        """Return a whole number, optionally of at least ``least``."""
        if key not in self.content and default is not None:
            return default
        value = self.require(key)
        wanted = "a whole number" if least is None else f"a whole number of at least {least}"
        if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
            raise self._fail(key, wanted)
        if abs(value) > 2**53:
            raise self._fail(key, wanted)
        return value

    def array(self, key: str, *shapes: tuple[int | None, ...]) -> Floats:
        """Return finite numbers in one of the given shapes (None: any length)."""
        value = self.require(key)
        wanted = " or ".join("x".join("n" if n is None else str(n) for n in shape) for shape in shapes) + " numbers"
        if not _all_numbers(value):
            raise self._fail(key, wanted)
        try:
            array = np.array(value, dtype=np.float64)
        except (ValueError, OverflowError):
            raise self._fail(key, wanted) from None
        for shape in shapes:
            same = array.ndim == len(shape)
            if same and all(n is None or n == m for n, m in zip(shape, array.shape, strict=True)):
                if not np.isfinite(array).all() or np.abs(array).max(initial=0) > HUGE:
                    raise self._fail(key, f"finite {wanted} of a size that a rig can have")
                return array
        raise self._fail(key, wanted)

    def size(self, key: str) -> tuple[int, int]:
        """Return an image size [width, height] in whole pixels."""
        pair = self.array(key, (2,))
        if (pair != np.round(pair)).any() or pair.min() < 1 or pair.max() > 1_000_000:
            raise self._fail(key, "[width, height] in whole pixels")
        return int(pair[0]), int(pair[1])


def _all_numbers(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < 4 and all(_all_numbers(item, depth + 1) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
