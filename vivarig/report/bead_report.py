"""The report of X-ray beads: which were seen where, how precise they are, and the film with the beads drawn in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from calibration.cameras.rig import load_rig
from calibration.foundation.arrays import Bools, Bytes, Floats
from calibration.foundation.errors import InputError, SolveError
from calibration.foundation.files import write_text
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from calibration.foundation.trust import Trust
from calibration.xray.cube import draw_cube
from capture.recordings.recording import Recording
from skeleton.analysis.joint_types import joint_motion
from tracking.beads.bones import PairDistance, pair_distances
from vivarig.report.explorer import explorer_plot, explorer_points, show_explorer
from vivarig.report.page import Page
from vivarig.report.pictures import data_uri
from vivarig.report.plots import rig_picture
from vivarig.report.provenance import add_provenance
from vivarig.results.findings import Findings
from vivarig.xray.recording import XrayFolder, open_clip

__all__ = ["build_bead_report"]

GOOD_SPREAD_MM = 0.1
"""Spread of a distance within a bone up to which X-ray laboratories call their beads precise."""
_SEEN = 0.5
_STRIP, _WIDTH = 12, 420


@dataclass(frozen=True, eq=False)
class _Motion:
    """Of beads.h5: names, cameras, positions (T, B, 3) with sigma (T, B) mm, residual (T, B) px, pixels, bones."""

    names: tuple[str, ...]
    cameras: tuple[str, ...]
    positions: Floats
    sigma: Floats
    residual: Floats
    pixels: Floats
    bridged: Bools
    bones: dict[str, tuple[str, ...]]

    @property
    def seen(self) -> Bools:
        """(T, B) whether the bead has a place."""
        return np.asarray(np.isfinite(self.positions[..., 0]))

    @property
    def direct(self) -> Bools:
        """(T, B) whether two views or more saw it."""
        return np.asarray(self.seen & ~self.bridged)

    def pairs(self) -> list[PairDistance]:
        """Return the distances of beads of one bone."""
        groups = [[self.names.index(bead) for bead in beads] for beads in self.bones.values()]
        return [pair for group in groups for pair in pair_distances(self.positions, self.names, group)]


def build_bead_report(findings: Findings, path: Path) -> dict[str, object]:
    """Write the report of a recording that holds beads alone, and return its headline figures."""
    recording = findings.recording
    assert findings.beads is not None
    motion = _motion(recording.results / "beads.h5", findings.beads.names)
    frames, pairs = len(motion.positions), motion.pairs()
    page = Page(f"{recording.name}: X-ray bead report")
    page.note(
        f"{frames} frames at {recording.rate_hz:g} Hz ({frames / recording.rate_hz:.2f} s), "
        f"{len(motion.names)} beads in {', '.join(motion.cameras)}. All lengths in millimetres."
    )
    numbers = _headline(page, motion, pairs)
    _explorer(page, recording, motion, pairs)
    _bead_table(page, motion)
    _bone_tables(page, motion, pairs)
    _joint_table(page, _bone_poses(recording.results / "beads.h5"))
    _rig(page, XrayFolder.of(recording), motion)
    add_provenance(page, findings)
    write_text(path, page.html())
    return numbers


def _motion(path: Path, names: tuple[str, ...]) -> _Motion:
    """Read beads.h5; ``names`` are the beads' as somebody may have renamed them."""
    with open_results(path, stage="beads") as file:
        old = words_of(file["names"])
        called = dict(zip(old, names, strict=True))
        bones = {bone: tuple(called[b] for b in words_of(file["bones"][bone]["beads"])) for bone in file["bones"]}
        variance = np.trace(file["covariance"][:], axis1=-2, axis2=-1) / 3
        return _Motion(
            names,
            words_of(file["cameras"]),
            file["positions"][:],
            np.sqrt(variance),
            file["residual_px"][:],
            file["pixels"][:],
            file["bridged"][:],
            bones,
        )


def _headline(page: Page, motion: _Motion, pairs: Sequence[PairDistance]) -> dict[str, object]:
    direct = float(motion.direct.mean()) if motion.direct.size else 0.0
    known = motion.sigma[motion.direct & np.isfinite(motion.sigma)]
    sigma = float(np.median(known)) if known.size else float("nan")
    spread = float(np.median([pair.sd_mm for pair in pairs])) if pairs else float("nan")
    rare = [name for name, share in zip(motion.names, motion.direct.mean(axis=0), strict=True) if share < _SEEN]
    loose = [pair for pair in pairs if pair.sd_mm > 3 * GOOD_SPREAD_MM]
    lines = [f"{100 * direct:.0f} % of all bead positions were seen by two views, {_bridged(motion)} bridged."]
    advice = []
    if rare:
        lines.append(f"Seen in less than half of the frames: {', '.join(rare)}.")
        advice.append("name and start rare beads by hand: vivarig xray track --start labels.csv")
    if loose:
        said = ", ".join(f"{pair.first} - {pair.second} ({pair.sd_mm:.2f} mm)" for pair in loose[:6])
        lines.append(
            f"Beads of one bone that do not keep their distance: {said}: one of each is another bead, or loose."
        )
        advice.append("look at these beads in the strip; correct them with vivarig xray track --corrections fixed.csv")
    if not pairs:
        lines.append("No two beads keep their distance, so nothing here tells the precision: name bones (bones.csv).")
    if not direct:
        answer, mood = "No: no bead was seen by two views.", "bad"
    elif spread <= GOOD_SPREAD_MM and direct >= _SEEN and not loose:
        answer, mood = ("Yes, but for the beads named below." if rare else "Yes."), "good"
    elif loose and len(loose) > len(pairs) / 2:
        answer, mood = "Not to be trusted as it is.", "bad"
    else:
        answer, mood = "In part: see the beads and bones below.", "warn"
    page.verdict(answer, mood, lines, advice)
    cards = [(f"{100 * direct:.1f} %", "of bead positions triangulated", "good" if direct >= 0.9 else "warn")]
    if np.isfinite(sigma):
        cards.append((f"{1000 * sigma:.0f} um", "1 sigma of a coordinate (median)", ""))
    if np.isfinite(spread):
        mood = "good" if spread <= GOOD_SPREAD_MM else "warn"
        cards.append((f"{1000 * spread:.0f} um", "spread of distances within bones (median SD)", mood))
    page.cards(cards)
    return {
        "frames": len(motion.positions), "beads": len(motion.names), "triangulated_share": direct, "sigma_mm": sigma,
        "interbead_sd_mm": spread,
    }  # fmt: skip


def _bridged(motion: _Motion) -> str:
    return f"{100 * float(motion.bridged.mean()) if motion.bridged.size else 0.0:.0f} %"


def _explorer(page: Page, recording: Recording, motion: _Motion, pairs: Sequence[PairDistance]) -> None:
    trust = np.where(motion.direct, Trust.TRUSTED, np.where(motion.seen, Trust.DOUBTFUL, Trust.LOST))
    plots = [explorer_plot("Beads with a place", "share", {"share": motion.seen.mean(axis=1)})]
    by_bead = {name: motion.sigma[:, b] for b, name in enumerate(motion.names)}
    plots.append(explorer_plot("1 sigma of a coordinate", "mm", by_bead, one_at_a_time=True))
    by_bead = {name: motion.residual[:, b] for b, name in enumerate(motion.names)}
    plots.append(explorer_plot("Reprojection error", "px", by_bead, one_at_a_time=True))
    if pairs:
        apart = {}
        for pair in pairs:
            a, b = motion.names.index(pair.first), motion.names.index(pair.second)
            distance = np.linalg.norm(motion.positions[:, a] - motion.positions[:, b], axis=1)
            apart[f"{pair.first} - {pair.second}"] = distance - pair.mean_mm
        plots.append(explorer_plot("Distance within a bone, less its mean", "mm", apart, one_at_a_time=True))
    body = explorer_points(motion.positions, motion.names, np.full(len(motion.names), -1), trust)
    show_explorer(page, recording, len(motion.positions), _strip(recording, motion), plots, body)
    page.note(
        "Dots are beads: dark where two views saw them, yellow where bridged; hold the mouse over one for its name."
    )


def _strip(recording: Recording, motion: _Motion) -> list[tuple[int, str]]:
    """Return frames all over the film, the views side by side, with the beads that were followed and their names."""
    clip = open_clip(recording, motion.cameras)
    frames = np.unique(np.linspace(0, len(clip) - 1, min(_STRIP, len(clip))).astype(int)).tolist()
    strip = []
    for frame in frames:
        tiles: list[Bytes] = []
        for c, image in enumerate(clip.chunk(frame, frame + 1)[0]):
            at = motion.pixels[frame, c]
            drawn = draw_cube(image, at[np.isfinite(at[:, 0])], at, motion.names)
            height = round(drawn.shape[0] * _WIDTH / drawn.shape[1])
            tiles.append(np.asarray(cv2.resize(drawn, (_WIDTH, height), interpolation=cv2.INTER_AREA), dtype=np.uint8))
        tall = max(tile.shape[0] for tile in tiles)
        padded = [np.pad(tile, ((0, tall - tile.shape[0]), (0, 0), (0, 0))) for tile in tiles]
        strip.append((int(frame), data_uri(np.hstack(padded), 76)))
    return strip


def _bead_table(page: Page, motion: _Motion) -> None:
    page.heading("Beads")
    found = np.isfinite(motion.pixels[..., 0]).mean(axis=0)
    rows = []
    for b, name in enumerate(motion.names):
        sigma, residual = (
            values[motion.direct[:, b] & np.isfinite(values[:, b]), b] for values in (motion.sigma, motion.residual)
        )
        rows.append(
            (
                name,
                *(f"{100 * found[c, b]:.0f} %" for c in range(len(motion.cameras))),
                f"{100 * motion.direct[:, b].mean():.0f} %",
                f"{100 * motion.bridged[:, b].mean():.0f} %",
                f"{1000 * np.median(sigma):.0f}" if sigma.size else "-",
                f"{np.median(residual):.2f}" if residual.size else "-",
            )
        )
    views = tuple(f"in {camera}" for camera in motion.cameras)
    page.table(("bead", *views, "triangulated", "bridged", "sigma um", "residual px"), rows)


def _bone_tables(page: Page, motion: _Motion, pairs: Sequence[PairDistance]) -> None:
    if not motion.bones:
        return
    page.heading("Bones")
    page.table(("bone", "beads"), [(bone, ", ".join(beads)) for bone, beads in motion.bones.items()], words=True)
    page.note("Distances within a bone do not change: their spread is the precision of the set-up.")
    rows = [
        (f"{pair.first} - {pair.second}", f"{pair.mean_mm:.3f}", f"{1000 * pair.sd_mm:.0f}", str(pair.frames))
        for pair in pairs
    ]
    page.table(("beads", "mean mm", "SD um", "frames"), rows)


def _joint_table(page: Page, poses: Mapping[str, Floats]) -> None:
    """Say what kind of joint each two bones form that turn against each other; ``poses`` (T, 4, 4) by name."""
    rows = []
    for first, second in combinations(poses.items(), 2):
        try:
            joint = joint_motion(first[1], second[1])
        except (InputError, SolveError):  # too few frames with both, or they do not turn
            continue
        rows.append(
            (
                f"{second[0]} against {first[0]}", joint.kind + (" that slides" if joint.slides else ""),
                f"{joint.range_deg:.1f}", f"{100 * joint.about_axis:.0f} %",
                ", ".join(f"{value:.2f}" for value in joint.axis), f"{joint.slide_mm:.2f}",
            )
        )  # fmt: skip
    if rows:
        page.note("How bones move against each other: all of the recording together, in the first bone's frame.")
        page.table(("bones", "joint", "turns by degrees", "about one axis", "that axis", "slides by mm"), rows)


def _bone_poses(path: Path) -> dict[str, Floats]:
    """Return the poses (T, 4, 4) of the bones in beads.h5, NaN where not known."""
    out: dict[str, Floats] = {}
    with open_results(path, stage="beads") as file:
        for name, bone in file["bones"].items():
            poses = np.full((len(bone["translation"]), 4, 4), np.nan)
            poses[:, :3, :3], poses[:, :3, 3] = bone["rotation"][:], bone["translation"][:]
            poses[np.isfinite(poses[:, 0, 3]), 3] = [0.0, 0.0, 0.0, 1.0]
            out[str(name)] = poses
    return out


def _rig(page: Page, folder: XrayFolder, motion: _Motion) -> None:
    rig = load_rig(folder.rig_file) if folder.rig_file.is_file() else folder.recording.rig
    if rig is None:
        return
    page.heading("Cameras")
    middle = np.nanmean(motion.positions, axis=1) if motion.seen.any(axis=1).all() else None
    page.picture(rig_picture(rig, middle), "camera layout")
    page.table(
        ("camera", "pixels", "centre x, y, z (mm)"),
        [
            (c.name, f"{c.size[0]} x {c.size[1]}", ", ".join(str(round(n)) for n in c.centre))
            for c in rig
            if c.name in motion.cameras
        ],
    )
