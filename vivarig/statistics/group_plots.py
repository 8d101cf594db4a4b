"""Pictures of compared groups: curves over the cycle with their spread, or animals as dots beside their mean."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from calibration.foundation.errors import InputError
from calibration.foundation.files import written_by_library
from vivarig.statistics.comparing import Comparison

__all__ = ["PICTURES", "comparison_lines", "draw_comparison"]

PICTURES = (".png", ".svg", ".pdf")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's, told apart by the colour-blind."""


def draw_comparison(found: Comparison, target: Path) -> None:
    """Draw a comparison into a picture file."""
    suffix = target.suffix.lower()
    if suffix not in PICTURES:
        raise InputError(f"{target}: a picture is {', '.join(PICTURES)}, by the file's suffix; got '{suffix}'")
    figure, axes = plt.subplots(figsize=(5.0, 3.6), layout="constrained")
    for at, (name, rows) in enumerate(found.groups.items()):
        colour = _COLOURS[at % len(_COLOURS)]
        label = f"{name} ({len(rows)} animal{'s' if len(rows) != 1 else ''})"
        mean = rows.mean(axis=0)
        spread = rows.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros_like(mean)
        if rows.shape[1] > 1:
            share = np.linspace(0, 100, rows.shape[1])
            axes.fill_between(share, mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
            axes.plot(share, mean, color=colour, label=label)
        else:
            beside = np.linspace(-0.12, 0.12, len(rows)) if len(rows) > 1 else np.zeros(1)
            axes.plot(at + beside, rows[:, 0], "o", color=colour, alpha=0.6, label=label)
            axes.errorbar(at + 0.25, mean, yerr=spread, fmt="_", color=colour, capsize=4, markersize=12)
    axes.set_ylabel(found.what)
    if next(iter(found.groups.values())).shape[1] > 1:
        axes.set_xlabel("gait cycle, % from touch-down")
    else:
        axes.set_xticks(range(len(found.groups)), list(found.groups))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    with written_by_library(target) as temporary:
        # No date in the file: same table, same bytes.
        words = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}[suffix]
        with matplotlib.rc_context({"svg.hashsalt": "vivarig"}):
            figure.savefig(temporary, format=suffix[1:], dpi=150, metadata=words)
    plt.close(figure)


def comparison_lines(found: Comparison) -> list[str]:
    """Return what was found in words."""
    lines = []
    for name, rows in found.groups.items():
        if rows.shape[1] == 1:
            spread = f" +- {rows.std(ddof=1):.4g}" if len(rows) > 1 else ""
            lines.append(f"  {name}: {rows.mean():.4g}{spread} ({len(rows)} animals, mean and standard deviation)")
        else:
            mean = rows.mean(axis=0)
            lines.append(
                f"  {name}: {mean.min():.4g} at {int(mean.argmin())} % to {mean.max():.4g} at {int(mean.argmax())} % "
                f"of the cycle ({len(rows)} animals)"
            )
    if np.isfinite(found.p):
        lines.append(f"  difference of the means: p = {found.p:.3g} (permutation of animals, two-sided)")
    elif len(found.groups) == 2 and next(iter(found.groups.values())).shape[1] == 1:
        lines.append("  no test: a group has fewer than 2 animals")
    return lines
