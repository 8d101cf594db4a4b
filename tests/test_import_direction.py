"""Who may import whom (docs/reference/architecture.md): packages and their folders, checked by parsing the source."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent

#: Every folder (and module that lies outside one), lowest first: each imports only what stands before it.
ORDER = (
    "calibration.foundation", "calibration.geometry", "calibration.cameras", "calibration.rig_formats",
    "calibration.bundle", "calibration.boards", "calibration.solving", "calibration.accuracy", "calibration.xray",
    "skeleton.tree", "skeleton.bodies", "skeleton.actors", "skeleton.model_files", "skeleton.motion_files",
    "skeleton.motions", "skeleton.analysis", "skeleton.inverse_kinematics", "skeleton.pose_spaces",
    "capture.mask_boxes", "capture.mask_runs", "capture.discs", "capture.recordings", "capture.camera_checks",
    "capture.raycasting",
    "capture.hull", "capture.posture", "capture.rhythm", "capture.backgrounds", "capture.silhouettes.edges",
    "capture.silhouettes.views", "capture.silhouettes.subjects", "capture.silhouettes", "capture.studio.scene",
    "capture.studio.light", "capture.studio.xray", "capture.studio.films",
    "tracking.quads", "tracking.priors", "tracking.subjects", "tracking.own_bodies", "tracking.observations",
    "tracking.terms", "tracking.points", "tracking.fitting", "tracking.limbs", "tracking.appearance",
    "tracking.sequence",
    "tracking.adapting", "tracking.beads",
    "vivarig.version", "vivarig.console", "vivarig.edits", "vivarig.results", "vivarig.xray", "vivarig.evaluation",
    "vivarig.export", "vivarig.report", "vivarig.statistics", "vivarig.films", "vivarig.jobs", "vivarig.mending",
    "vivarig.redrawing",
    "vivarig.stages", "vivarig.track_stage", "vivarig.pipeline", "vivarig.calibration_stage", "vivarig.viewer",
    "vivarig.api", "vivarig.commands",
    "vivarig.cli", "vivarig.__main__",
)  # fmt: skip
PACKAGES = ("calibration", "skeleton", "capture", "tracking", "vivarig")
#: Packages that do not import each other although one stands before the other: none but these may.
MAY_IMPORT = {
    "calibration": {"calibration"},
    "skeleton": {"calibration", "skeleton"},
    "capture": {"calibration", "skeleton", "capture"},
    "tracking": {"calibration", "skeleton", "capture", "tracking"},
    "vivarig": {"calibration", "skeleton", "capture", "tracking", "vivarig"},
}
MOST_MODULES = 16


def place_of(module: str) -> str | None:
    """Return the folder of a module as `ORDER` names it, None if it names none (a package's own docstring)."""
    fits = [place for place in ORDER if module == place or module.startswith(f"{place}.")]
    return max(fits, key=len, default=None)


def modules_of(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports; ``from folder import module`` names the module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def violations(module: str, source: str) -> list[str]:
    """Return the imports of a source text that its folder may not make."""
    found = []
    package, own = module.split(".")[0], place_of(module)
    for node in ast.walk(ast.parse(source)):
        for target in modules_of(node):
            top, other = target.split(".")[0], place_of(target)
            if top in ("tests", "benchmarks", "sample_data") or (top in PACKAGES and top not in MAY_IMPORT[package]):
                found.append(f"{module}:{node.lineno}: {package} may not import {target}")  # type: ignore[attr-defined]
            elif own and other and ORDER.index(other) > ORDER.index(own):
                found.append(f"{module}:{node.lineno}: {own} may not import {target}")  # type: ignore[attr-defined]
    return found


def sources() -> dict[str, Path]:
    """Return every module of ours with its file."""
    files = [file for package in PACKAGES for file in sorted((REPOSITORY / package).rglob("*.py"))]
    return {".".join(file.relative_to(REPOSITORY).with_suffix("").parts): file for file in files}


def test_folders_import_downwards_only() -> None:
    assert [line for module, file in sources().items() for line in violations(module, file.read_text())] == []


def test_the_check_can_fail() -> None:
    upward = "def f():\n    from tracking.quads.green import deform\n"
    assert violations("capture.hull.field", upward) == [
        "capture.hull.field:2: capture may not import tracking.quads.green.deform"
    ]
    sideways = "from tracking.sequence import tracker\n"
    assert violations("tracking.terms.energy", sideways) == [
        "tracking.terms.energy:1: tracking.terms may not import tracking.sequence.tracker"
    ]
    assert violations("tracking.sequence.tracker", "from tracking.terms.energy import Energy\n") == []


def test_every_module_has_its_place() -> None:
    free = {"calibration", "skeleton", "capture", "capture.studio", "tracking", "vivarig"}
    assert [m for m in sources() if place_of(m) is None and m.removesuffix(".__init__") not in free] == []


def test_every_folder_says_what_it_holds() -> None:
    for package in PACKAGES:
        for folder in {file.parent for file in (REPOSITORY / package).rglob("*.py")}:
            assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_no_folder_is_crowded() -> None:
    """One file per verb in the commands is no crowd: each is known by its verb."""
    for package in PACKAGES:
        for folder in {file.parent for file in (REPOSITORY / package).rglob("*.py")} - {
            REPOSITORY / "vivarig/commands"
        }:
            modules = [file for file in folder.glob("*.py") if file.name != "__init__.py"]
            assert len(modules) <= MOST_MODULES, folder


def test_only_the_lazy_doors_import_by_name() -> None:
    """Libraries that may be missing, the command line's verbs, and what ``import vivarig`` gives; nothing else."""
    users = [module for module, file in sources().items() if "import_module(" in file.read_text()]
    assert users == [
        "skeleton.motion_files.optional", "capture.raycasting", "tracking.priors.gplvm_training",
        "vivarig.__init__", "vivarig.cli",
    ]  # fmt: skip


def test_only_one_module_imports_open3d() -> None:
    """open3d needs its USB library loaded first, which capture/raycasting.py does."""
    pattern = re.compile(r"^\s*import open3d|import_module\(.open3d", re.MULTILINE)
    assert [module for module, file in sources().items() if pattern.search(file.read_text())] == ["capture.raycasting"]


def test_names_in_all_exist() -> None:
    for name in ("calibration.cameras.camera", "tracking.sequence.tracker", "vivarig.api"):
        module = importlib.import_module(name)
        assert all(hasattr(module, word) for word in module.__all__), name
