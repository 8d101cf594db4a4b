"""Packages that only some formats need: imported on use, with one line on how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from calibration.foundation.errors import InputError

__all__ = ["optional_package"]


def optional_package(name: str, who: str, *, extra: str = "formats") -> Any:
    """Import a package of an extra, or say in one line what to install."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise InputError(f"{who} needs the package '{name}': in the clone, pip install -e '.[{extra}]'") from None
