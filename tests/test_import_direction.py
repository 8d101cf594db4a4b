"""Who may import whom (DESIGN): checked by parsing the source, with a planted violation that proves the check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
MAY_IMPORT = {
    "calibration": set(),
    "skeleton": {"calibration"},
    "capture": {"calibration", "skeleton"},
    "tracking": {"calibration", "skeleton", "capture"},
    "vivarig": {"calibration", "skeleton", "capture", "tracking"},
}


def violations(package: str, source: str, name: str) -> list[str]:
    """Return the imports of a source text that its package may not make."""
    found = []
    for node in ast.walk(ast.parse(source)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            modules = [node.module]
        for module in modules:
            top = module.split(".")[0]
            others = (set(MAY_IMPORT) | {"tests", "benchmarks", "sample_data"}) - {package} - MAY_IMPORT[package]
            if top in others:
                found.append(f"{name}:{node.lineno}: {package} may not import {module}")
    return found


def test_packages_import_downwards_only() -> None:
    found = []
    for package in MAY_IMPORT:
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            found += violations(package, file.read_text(), str(file.relative_to(REPOSITORY)))
    assert found == []


def test_the_check_can_fail() -> None:
    planted = "def f():\n    from tracking.green import deform\n"
    assert violations("capture", planted, "planted.py") == ["planted.py:2: capture may not import tracking.green"]


def test_only_one_module_imports_open3d() -> None:
    """open3d needs its USB library loaded first, which capture/raycasting.py does."""
    users = [
        str(file.relative_to(REPOSITORY))
        for package in MAY_IMPORT
        for file in (REPOSITORY / package).rglob("*.py")
        if re.search(r"^\s*import open3d|import_module\(.open3d", file.read_text(), re.MULTILINE)
    ]
    assert users == ["capture/raycasting.py"]
