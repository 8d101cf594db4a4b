"""Calibration from marks instead of a board: a wand, matched points, or the refinement of a rig that exists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig, rig_to_toml
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.rig_formats import read_rig
from calibration.rig_formats.known_lenses import load_lenses
from calibration.solving.wand import Marks, MarksSolution, load_marks, refine_rig, solve_marks
from vivarig.console.reporting import CommandReport

__all__ = ["MarksOptions", "calibrate_from_marks"]


@dataclass(frozen=True)
class MarksOptions:
    """Calibration without a board.

    Attributes:
        marks: CSV of marks seen in common: frame, camera, mark, x, y.
        refine: rig to refine with them, if any.
        intrinsics: file of known lenses, if nothing is refined.
        wand: places of the marks along a straight wand, mm, separated by commas.
        baseline: distance of the first two cameras, mm, without a wand.
    """

    marks: Path
    refine: Path | None = None
    intrinsics: Path | None = None
    wand: str | None = None
    baseline: float | None = None


def calibrate_from_marks(options: MarksOptions, output: Path) -> CommandReport:
    """Solve or refine a rig from marks and write rig.toml."""
    marks = load_marks(options.marks)
    if options.refine is not None:
        before = read_rig(options.refine)
        solution = refine_rig(before, _in_order(marks, before.names))
        words = f"refined {options.refine.name} with {marks.pixels.shape[1]} frames of marks"
    else:
        if options.intrinsics is None:
            raise InputError(
                "marks alone do not give lenses: give them with --intrinsics, or a whole rig with --refine"
            )
        known = read_rig(options.intrinsics)
        lenses = load_lenses(options.intrinsics, marks.cameras, [known[name].size for name in marks.cameras])
        missing = [name for name in marks.cameras if name not in lenses]
        if missing:
            raise InputError(f"{options.intrinsics}: no lens for {', '.join(missing)}")
        along = None if options.wand is None else _numbers(options.wand, "--wand")
        ordered = [lenses[name] for name in marks.cameras]
        solution = solve_marks(marks, ordered, along_mm=along, baseline_mm=options.baseline)
        words = f"solved from {marks.pixels.shape[1]} frames of marks"
    write_text(output / "rig.toml", rig_to_toml(solution.rig))
    return _report(solution, solution.rig, words, output)


def _in_order(marks: Marks, names: Sequence[str]) -> np.ndarray:
    """Return the marks (c, n, 2) in the rig's camera order, NaN for cameras that saw none."""
    out = np.full((len(names), *marks.pixels.shape[1:]), np.nan)
    for c, name in enumerate(marks.cameras):
        if name not in names:
            raise InputError(f"marks of unknown camera '{name}'; the rig has {', '.join(names)}")
        out[list(names).index(name)] = marks.pixels[c]
    return out.reshape(len(names), -1, 2)


def _numbers(text: str, option: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{option} wants numbers in mm, separated by commas, got {text!r}") from None


def _report(solution: MarksSolution, rig: Rig, words: str, output: Path) -> CommandReport:
    bundle = solution.bundle
    numbers: dict[str, object] = {
        "rms_px": bundle.rms_px(),
        "outlier_share": float(1 - bundle.inlier.mean()),
        "centres_mm": {camera.name: camera.centre for camera in rig},
    }
    lines = [f"{words}: {len(rig)} cameras, {bundle.rms_px():.3f} px RMS, {1 - bundle.inlier.mean():.1%} left out"]
    if len(solution.length_mm):
        off = solution.length_mm[np.isfinite(solution.length_mm)]
        numbers["length_mm"] = float(np.sqrt(np.median(off**2)))
        lines.append(f"wand length: median error {np.median(off):+.3f} mm, typical {np.sqrt(np.median(off**2)):.3f} mm")
    lines += [f"  {c.name}: at ({', '.join(f'{v:.1f}' for v in c.centre)}) mm" for c in rig]
    lines.append(f"wrote {output / 'rig.toml'}")
    good = bundle.converged and bundle.rms_px() < 2.0
    return CommandReport(lines, numbers, quality_ok=good, reason="more than 2 px, or not converged")
