"""How a track came out, in words and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.spans import Span
from calibration.foundation.trust import Trust
from tracking.sequence.track_file import TrackFile, open_track
from tracking.subjects.garments import Skirt
from vivarig.console.reporting import CommandReport
from vivarig.results.limb_words import share_words, usable_words
from vivarig.results.outline_words import outline_words
from vivarig.track_stage.marked_points import marked_words

__all__ = ["summary"]

MIN_TRUSTED = 0.5
"""Share of trusted frames below which the command says that quality is low."""


def _shape_words(shape: Mapping[str, Any]) -> str:
    """Say which lengths and girths the body was given, or why it was left as it is."""
    if shape["kept"]:
        words = "; ".join(
            f"{kind} of " + ", ".join(f"{part} {factor:.2f}" for part, factor in shape[f"{kind}s"].items())
            for kind in ("length", "girth")
        )
        return (
            f"body adapted: {words} of the built-in's (overlap in {len(shape['held'])} frames held out "
            f"{shape['before']:.3f} -> {shape['after']:.3f})" + _skin_words(shape) + _skirt_words(shape)
        )
    tried = "" if shape["before"] is None else f" (overlap {shape['before']:.3f} -> {shape['after']:.3f})"
    girths = shape["girths"]
    build = ""
    if max(girths.values()) > 1.001 * min(girths.values()):
        build = "a stouter build (girth of " + ", ".join(f"{part} {value:.2f}" for part, value in girths.items()) + ") "
    return f"body {build}not adapted: {shape['why']}{tried}" + _skirt_words(shape)


def _skin_words(shape: Mapping[str, Any]) -> str:
    """Say how far the skin was moved."""
    skin = shape.get("skin")
    return "" if skin is None else f"; skin {float(np.sqrt(np.mean(np.square(skin)))):.1f} mm off the body's (rms)"


def _skirt_words(shape: Mapping[str, Any]) -> str:
    """Say what the subject wears."""
    skirt = shape.get("skirt")
    return "" if skirt is None else f"; wears a {Skirt.told(skirt).describe()}: the legs below are doubtful"


def _feet_words(file: TrackFile, rows: slice) -> list[str]:
    """Say how many of the feet that silhouettes leave in doubt the images show."""
    asked = np.isfinite(file.limb_record(rows).shown) if file.limb_names else np.zeros((0, 0), bool)
    if not asked.any():
        return []
    seen = file.limb_trust(rows)[asked] == int(Trust.TRUSTED)
    return [f"  feet that the silhouettes leave in doubt: the images show {100 * float(np.mean(seen)):.0f} % of them"]


def summary(path: Path, span: Span, apart: int, seam_mm: float) -> CommandReport:
    """Say how a track came out: of the frames in ``span``, with so many seams where parts disagree."""
    with open_track(path) as file:
        rows = slice(span.first, span.stop)
        trust, agreement, residual = file.trust(rows), file.agreement(rows), file.residual(rows)
        cameras, subject, start, parameters = file.cameras, file.subject, file.start_frame, file.parameters
        points = marked_words(file.point_names, file.point_status(rows)) if file.point_names else []
        points += _feet_words(file, rows)
        limbs = list(file.limb_names)
        held = (file.limb_trust(rows) == int(Trust.TRUSTED)).mean(axis=0) if limbs else np.zeros(0)
    scale, parts = float(parameters["scale"]), int(parameters["parts"])
    shares = [float(np.mean(trust == level)) for level in range(3)]
    overlap = float(np.nanmedian(agreement))
    lines = [
        f"{len(span)} frames, {cameras} cameras, subject {subject} x {scale:.3f}: results/track.h5",
        f"  trusted {100 * shares[0]:.1f} %, doubtful {100 * shares[1]:.1f} %, lost {100 * shares[2]:.1f} %",
        f"  silhouette overlap {overlap:.3f} IoU (median), outline residual "
        f"{float(np.nanmedian(residual)):.2f} mm, start at frame {start}",
    ]
    if limbs:
        lines.append(f"  by limb: {share_words(limbs, held)}")
    shape = parameters.get("shape")
    if shape:
        lines.append(f"  {_shape_words(shape)}")
    outlines = parameters.get("outlines")
    if outlines:
        lines.append(f"  {outline_words(outlines)}")
    lines += points
    if parts > 1:
        lines.append(f"  {parts} parts, {apart} seams where they disagree; largest distance at a seam {seam_mm:.2f} mm")
    numbers = {
        "frames": len(span),
        "scale": scale,
        "trusted_share": shares[0],
        "doubtful_share": shares[1],
        "lost_share": shares[2],
        "limbs_trusted": dict(zip(limbs, held.tolist(), strict=True)),
        "agreement_iou": overlap,
        "residual_mm": float(np.nanmedian(residual)),
        "start_frame": start,
        "parts": parts,
        "seams_apart": apart,
        "seam_mm": seam_mm,
        "outlines": outlines,
        "shape": shape and {key: value for key, value in shape.items() if key != "skin"},
    }
    reason = ""
    if shares[0] < MIN_TRUSTED:
        use = f"; to be used: {usable_words(limbs, held)}" if limbs else ""
        reason = f"only {100 * shares[0]:.0f} % of the frames are trusted as a whole{use}"
    return CommandReport(lines, numbers, not reason, reason)
