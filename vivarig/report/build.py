"""Put the report of a recording together from what its results hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.once import once
from calibration.foundation.trust import Trust
from capture.recordings.recording import Recording
from skeleton.analysis.cycles import cycles_table
from skeleton.analysis.scoring import JointScores
from vivarig.report.explorer import add_explorer
from vivarig.report.gait_section import add_gait
from vivarig.report.groups import GROUPS, OUTLINES
from vivarig.report.modes_section import add_modes
from vivarig.report.page import Page
from vivarig.report.provenance import add_provenance
from vivarig.report.sections import (
    Section,
    Shown,
    angles_section,
    percent,
    quality_section,
    rig_section,
    silhouette_section,
    surface_section,
    tracking_section,
    truth_section,
)
from vivarig.report.verdict import add_stretches, add_verdict
from vivarig.results.camera_check import CameraVerdict
from vivarig.results.findings import Findings, SkeletonFindings, load_findings, load_outlines
from vivarig.results.stretches import Stretch

__all__ = ["build_ahead", "build_report"]

_LOOKED_AT = 5_000
"""Frames, at least, that the median of the joints' sigma is taken over."""


def _head(page: Page, shown: Shown) -> dict[str, object]:
    numbers = _headline(page, shown.findings, shown.scores, shown.stretches, shown.cameras)
    add_stretches(page, shown.findings, shown.stretches)
    return numbers


def _explorer(page: Page, shown: Shown) -> dict[str, object]:
    add_explorer(page, shown.findings, shown.curves, shown.stretches)
    return {}


def _modes(page: Page, shown: Shown) -> dict[str, object]:
    return {} if shown.findings.skeleton is None else {**add_modes(page, shown.findings.skeleton)}


def _gait(page: Page, shown: Shown) -> dict[str, object]:
    if shown.findings.skeleton is not None and shown.curves is not None:
        cycles = add_gait(page, shown.findings.skeleton, shown.curves, shown.findings.recording)
        if cycles:
            page.beside["gait_cycles.csv"] = cycles_table(cycles)
    return {}


def _provenance(page: Page, shown: Shown) -> dict[str, object]:
    add_provenance(page, shown.findings)
    return {}


def build_report(recording: Recording, path: Path) -> dict[str, object]:
    """Write the report of a recording and return its headline figures."""
    findings = load_findings(recording)
    if findings.frames == 0:
        raise InputError(f"{recording.folder}: no results yet; run `vivarig run {recording.folder.name}` first")
    if findings.beads is not None and findings.silhouettes is None and findings.skeleton is None:
        from vivarig.report.bead_report import build_bead_report  # X-ray, which light cameras have no use for

        return build_bead_report(findings, path)
    page = Page(f"{recording.name}: motion capture report")
    shown, numbers = Shown(findings), dict[str, object]()
    for name in _SECTIONS:
        section, told = _made(name, shown)
        page.add(section)
        numbers |= told
    for name, content in page.beside.items():
        write_text(path.with_name(name), content)
    write_text(path, page.html())
    return numbers


def build_ahead(recording: Recording, group: str) -> None:
    """Make some sections of a report, kept for `build_report` where steps are (`calibration.foundation.once`)."""
    shown = Shown(load_outlines(recording) if group == OUTLINES else load_findings(recording))
    for name in GROUPS[group]:
        _made(name, shown)


def _made(name: str, shown: Shown) -> tuple[Page, dict[str, object]]:
    """Return a section and its headline figures."""

    def make() -> tuple[Page, dict[str, object]]:
        page = Page("")
        return page, _SECTIONS[name](page, shown)

    return once(f"section {name}", make)


def _headline(
    page: Page,
    findings: Findings,
    scores: JointScores | None,
    stretches: Sequence[Stretch],
    cameras: CameraVerdict | None,
) -> dict[str, object]:
    recording = findings.recording
    seconds = findings.frames / recording.rate_hz
    page.note(
        f"{findings.frames} frames at {recording.rate_hz:g} Hz ({seconds:.2f} s), {len(recording.footage)} cameras, "
        f"subject: {recording.subject or 'none named'}. All lengths in millimetres."
        + (f" Frame 0 here is frame {findings.first} of the recording." if findings.first else "")
    )
    add_verdict(page, findings, stretches, [cameras.reason] if cameras is not None and cameras.reason else [])
    cards: list[tuple[str, str, str]] = []
    numbers: dict[str, object] = {"frames": findings.frames}
    if scores is not None:
        cards.append((f"{scores.mean:.2f} mm", "mean joint error against the truth, all frames", ""))
        numbers |= {"mean_joint_error_mm": scores.mean, "median_joint_error_mm": scores.median}
    if findings.track is not None:
        trusted = float((findings.track.trust == Trust.TRUSTED).mean())
        mood = "good" if trusted >= 0.9 else "warn" if trusted >= 0.5 else "bad"
        cards.append((percent(trusted), "of frames trusted; limb by limb above", mood))
        numbers["trusted_share"] = trusted
    if findings.hull is not None:
        share = float((findings.hull.volume > 0).mean())
        cards.append((percent(share), "of frames have a visual hull", "good" if share > 0.95 else "warn"))
        numbers["hull_share"] = share
    if findings.silhouettes is not None:
        known = findings.silhouettes.agreement[np.isfinite(findings.silhouettes.agreement)]
        if known.size:
            cards.append((f"{known.mean():.3f}", "agreement of silhouettes with images and other views", ""))
            numbers["silhouette_agreement_iou"] = float(known.mean())
    sigma = _typical_sigma(findings.skeleton)
    if np.isfinite(sigma):
        cards.append((f"{sigma:.2f} mm", "1 sigma of a joint (median), if the template fits", ""))
        numbers["joint_sigma_mm"] = sigma
    page.cards(cards)
    return numbers


def _typical_sigma(skeleton: SkeletonFindings | None) -> float:
    """Return the median standard deviation of the joints, mm, over frames spread evenly; NaN where there is none."""
    if skeleton is None:
        return float("nan")
    some = np.array(skeleton.sigma[:: max(1, len(skeleton.sigma) // _LOOKED_AT)])
    known = some[~np.isnan(some)]
    return float(np.median(known)) if np.isfinite(known).any() else float("nan")


_SECTIONS: dict[str, Section] = {
    "head": _head,
    "explorer": _explorer,
    "truth": truth_section,
    "quality": quality_section,
    "surface": surface_section,
    "tracking": tracking_section,
    "silhouettes": silhouette_section,
    "angles": angles_section,
    "modes": _modes,
    "gait": _gait,
    "cameras": rig_section,
    "provenance": _provenance,
}
