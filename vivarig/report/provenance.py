"""Where the report comes from: the program's version, options, calibration and the inputs' digests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calibration.foundation.digests import digest_of_path
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.tables import read_toml
from vivarig.edits.edit_file import edits_file, load_edits
from vivarig.report.page import Page
from vivarig.results.findings import Findings
from vivarig.version import __version__

__all__ = ["add_provenance"]

_LONG = 300


def add_provenance(page: Page, findings: Findings) -> None:
    """Say what made this, with which options, from which files."""
    recording = findings.recording
    page.heading("How this was made")
    settings = {
        f"[{stage}] {name}": value for stage, table in recording.settings.items() for name, value in table.items()
    }
    rows = [("Vivarig", __version__)]
    rows += [(f"recording.toml {name}", str(value)) for name, value in settings.items()]
    for stage in ("silhouettes", "hull", "track", "skeleton"):
        path = recording.results / f"{stage}.h5"
        if path.is_file():
            with open_results(path, stage=stage) as file:
                rows.append((f"{stage}: made with", _short(read_parameters(file))))
    page.table(("what", "value"), rows, words=True)
    edits = load_edits(edits_file(recording.folder)).described()
    if edits:
        page.note("Mended by hand (edits.toml); frames are the recording's:")
        page.table(("what", "where"), edits, words=True)
    page.note("Calibration, as the rig's file tells it:")
    page.table(("figure", "value"), _calibration(recording.rig_file) or [("none told", "-")], words=True)
    page.note("Inputs; digests are BLAKE2b, 128 bit: `b2sum -l 128 FILE` gives the same for a file.")
    page.table(("file", "digest"), _inputs(findings), words=True)


def _short(parameters: dict[str, Any]) -> str:
    """Return plain options as words; long lists and tables are left to the file."""
    told = []
    for name, value in parameters.items():
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if isinstance(value, float):
            text = f"{value:.4g}"
        if text not in ("", "null") and len(text) < 60:
            told.append(f"{name} {text}")
    return ", ".join(told)[:_LONG] or "nothing but defaults"


def _calibration(path: Path | None) -> list[tuple[str, str]]:
    """Return the plain entries of a rig's [metadata]: residuals, date, board."""
    if path is None:
        return []
    root = read_toml(path)
    if "metadata" not in root:
        return []
    content = root.table("metadata").content
    return [(name, str(value)[:_LONG]) for name, value in content.items() if not isinstance(value, dict)]


def _inputs(findings: Findings) -> list[tuple[str, str]]:
    recording = findings.recording
    paths: dict[str, Path] = {"recording.toml": recording.folder / "recording.toml"}
    if recording.rig_file is not None:
        paths[recording.rig_file.name] = recording.rig_file
    for footage in recording.footage:
        more = [(f"background {number}", path) for number, path in enumerate(footage.more_backgrounds, 2)]
        given = (("images", footage.source), ("background", footage.background), *more, ("masks", footage.masks))
        paths |= {f"{footage.name}: {what}": path for what, path in given if path is not None}
    for name in ("edits.toml", "truth.h5"):
        if (recording.folder / name).is_file():
            paths[name] = recording.folder / name
    return [
        (f"{what} ({path.name})" if path.name != what else what, digest_of_path(path))
        for what, path in paths.items()
        if path.exists()
    ]
