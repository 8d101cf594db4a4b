"""Plots of gait: footfalls over time, curves over the cycle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibration.foundation.arrays import Ints
from skeleton.analysis.contacts import Contacts
from skeleton.analysis.cycles import CycleCurve
from vivarig.report.plots import COOL, GREY, INK, WARM, figure_uri, plots, shade_trust

__all__ = ["MOST_SECONDS", "cycle_plot", "footfall_plot"]

MOST_SECONDS = 20.0
"""Of longer recordings the footfalls of the first seconds are drawn: more would be a grey bar."""


def footfall_plot(contacts: Mapping[str, Contacts], trust: Ints) -> str:
    """Return the stances of each foot as bars over time; pale where they are less sure."""
    figure, ((ax,),) = plots(1, 1, (10, 0.35 * len(contacts) + 0.8), layout="constrained")
    for row, (name, states) in enumerate(contacts.items()):
        assert states.spans is not None
        rate, frames = states.rate_hz, len(states.states)
        sure = states.confidence if states.confidence is not None else np.ones(len(states.spans))
        colour = INK if name.startswith("left") else WARM
        longest = min(frames / rate, MOST_SECONDS)
        for (begin, end), share in zip(states.spans, sure, strict=True):
            first, last = max(float(begin), 0.0) / rate, min(float(end), frames - 1.0) / rate
            if first < longest:  # an hour has tens of thousands
                ax.barh(row, last - first, left=first, height=0.6, color=colour, alpha=0.35 + 0.65 * float(share))
    shade_trust(ax, trust[: max(1, round(longest * rate) + 1)], 1.0 / rate)
    ax.set_yticks(range(len(contacts)), list(contacts), fontsize=8)
    ax.invert_yaxis()
    ax.set_xlim(0, longest)
    ax.set_xlabel("time (s)", fontsize=8)
    ax.tick_params(labelsize=8)
    return figure_uri(figure)


def cycle_plot(curves: Sequence[CycleCurve]) -> str:
    """Return a small plot per signal, left and right in one; faster strides are drawn paler."""
    titles = list(dict.fromkeys(_title(curve.name) for curve in curves))
    columns = 3
    rows = -(-len(titles) // columns)
    figure, axes = plots(rows, columns, (10, 1.7 * rows + 0.3), layout="constrained", sharex=True)
    for ax, title in zip(axes.ravel(), titles, strict=False):
        mine = [curve for curve in curves if _title(curve.name) == title]
        slowest = min(curve.speed_mm_s for curve in mine)
        for curve in mine:
            left = curve.name.startswith("left")
            fast = curve.speed_mm_s > 1.3 * slowest
            colour = {(True, False): INK, (False, False): WARM, (True, True): COOL, (False, True): GREY}[left, fast]
            share = np.arange(len(curve.mean))
            words = f"{'left' if left else 'right'}, {curve.strides} at {curve.speed_mm_s:.0f} mm/s"
            ax.plot(share, curve.mean, color=colour, lw=1.2, label=words)
            if curve.strides > 1:
                ax.fill_between(
                    share, curve.mean - curve.spread, curve.mean + curve.spread, color=colour, alpha=0.2, lw=0
                )
        ax.set_title(title, fontsize=8)
        ax.tick_params(labelsize=7)
        ax.legend(fontsize=5, loc="best")
    for ax in axes.ravel()[len(titles) :]:
        ax.axis("off")
    for ax in axes.ravel()[max(0, len(titles) - columns) : len(titles)]:
        ax.tick_params(labelbottom=True)
        ax.set_xlabel("cycle (%)", fontsize=8)
    return figure_uri(figure)


def _title(name: str) -> str:
    return name.split("_", 1)[1].replace("_", " ")
