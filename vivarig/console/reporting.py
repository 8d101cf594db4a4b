"""What a command says when it is done: lines for people, numbers for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.files import write_text

__all__ = ["CommandReport", "plain_json", "write_json"]


@dataclass(frozen=True)
class CommandReport:
    """The outcome of one command.

    Attributes:
        lines: short report with units, printed as it is.
        numbers: the same numbers, for ``--json``.
        quality_ok: False makes the exit code 1.
        reason: which quality threshold was missed.
    """

    lines: list[str]
    numbers: Mapping[str, Any] = field(default_factory=dict)
    quality_ok: bool = True
    reason: str = ""


def plain_json(value: Any) -> Any:
    """Return ``value`` in types that JSON knows: arrays as lists, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain_json(value.tolist())
    if isinstance(value, list | tuple):
        return [plain_json(item) for item in value]
    if isinstance(value, np.generic):
        return plain_json(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def write_json(path: Path | str, numbers: Mapping[str, Any]) -> None:
    """Write numbers to a JSON file, atomically."""
    write_text(path, json.dumps(plain_json(numbers), indent=1, sort_keys=True) + "\n")
