"""Plots of the report as PNG inside the page: quality over time, the rig, joint angles."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.trust import Trust
from skeleton.analysis.scoring import JointScores
from vivarig.results.findings import Findings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["angle_plot", "figure_uri", "plots", "quality_plot", "rig_picture", "score_plot", "shade_trust"]

_COLUMNS = 2000
"""Stretches that a curve of many frames is drawn in: more than its pixels."""
_PATH_POINTS = 20_000

INK, WARM, COOL, GREY = "#1f6f8b", "#c0392b", "#2e8b57", "#888888"


def plots(
    rows: int, columns: int, size: tuple[float, float], *, layout: str | None = None, **kinds: Any
) -> tuple[Figure, Any]:
    """Return a figure of ``size`` inches and its plots (rows, columns).

    Imported here, and without pyplot: who makes sections of images alone has no use for half a second of imports.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout=layout)  # type: ignore[arg-type]
    return figure, figure.subplots(rows, columns, squeeze=False, **kinds)


def figure_uri(figure: Figure) -> str:
    """Return a figure as PNG inside a page."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _margins(figure: Figure, edges: tuple[float, float, float, float], gaps: tuple[float, float]) -> None:
    """Leave room at left, right, bottom, top, inches, and between plots, as shares of one: to find them costs more."""
    (width, height), (left, right, bottom, top) = figure.get_size_inches(), edges
    figure.subplots_adjust(
        left / width, bottom / height, 1 - right / width, 1 - top / height, wspace=gaps[0], hspace=gaps[1]
    )


def _curve(ax: Any, values: Floats, step: float = 1.0, **style: Any) -> None:
    """Draw values over ``step`` times their index; of very many, the least and the greatest of each short stretch."""
    count = len(values)
    if count <= 2 * _COLUMNS:
        ax.plot(np.arange(count) * step, values, **style)
        return
    edges = np.linspace(0, count, _COLUMNS + 1).astype(int)[:-1]
    known = np.where(np.isfinite(values), values, np.nan)
    least, most = np.fmin.reduceat(known, edges), np.fmax.reduceat(known, edges)
    ax.plot(np.repeat(edges, 2) * step, np.stack([least, most], axis=1).ravel(), **style)


def shade_trust(axes: Any, trust: Ints, step: float = 1.0) -> None:
    """Mark doubtful and lost frames behind a plot over ``step`` times their index; of very many, stretches with any."""
    starts = np.linspace(0, len(trust), min(len(trust), _COLUMNS) + 1).astype(int)
    for level, colour in ((1, "#f6d55c"), (2, "#ed553b")):
        held = np.maximum.reduceat(trust, starts[:-1]) == level
        edges = np.flatnonzero(np.diff(np.concatenate([[0], held, [0]]).astype(int)))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            axes.axvspan((starts[start] - 0.5) * step, (starts[stop] - 0.5) * step, color=colour, alpha=0.35, lw=0)


def quality_plot(findings: Findings, sigma: Floats | None) -> str:
    """Return the quality of every stage over time; ``sigma`` (T,) is that of the skeleton's joints, mm."""
    rows: list[tuple[str, Any]] = []
    if findings.silhouettes is not None and np.isfinite(findings.silhouettes.agreement).any():
        rows.append(("silhouettes: agreement\nwith images and views", _agreement))
    if findings.hull is not None:
        rows.append(("hull volume (ml)", _hull))
    if findings.track is not None:
        rows.append(("tracking: view\nagreement (IoU)", _track))
    if sigma is not None:
        rows.append(("skeleton: median joint\n1 sigma (mm)", lambda ax, _: _sigma(ax, sigma)))
    count = max(len(rows), 1)
    figure, axes = plots(count, 1, (10, 1.9 * count + 0.4), sharex=True)
    _margins(figure, (0.85, 0.6, 0.45, 0.12), (0.2, 0.12))
    for ax, (label, draw) in zip(axes[:, 0], rows, strict=False):
        draw(ax, findings)
        ax.set_ylabel(label, fontsize=8)
        ax.tick_params(labelsize=8)
        if findings.track is not None:
            shade_trust(ax, findings.track.trust)
    axes[-1, 0].set_xlabel("frame (yellow: doubtful, red: lost)", fontsize=8)
    return figure_uri(figure)


def _agreement(ax: Any, findings: Findings) -> None:
    assert findings.silhouettes is not None
    for name, column in zip(findings.silhouettes.names, findings.silhouettes.agreement.T, strict=True):
        _curve(ax, column, lw=0.8, label=name)
    ax.legend(fontsize=6, ncols=8, loc="lower left")
    _up_to_one(ax)


def _hull(ax: Any, findings: Findings) -> None:
    assert findings.hull is not None
    _curve(ax, findings.hull.volume / 1000, color=INK, lw=1)
    other = ax.twinx()
    _curve(other, findings.hull.views_used.sum(1), color=GREY, lw=0.8, drawstyle="steps-mid")
    other.set_ylim(0, findings.hull.views_used.shape[1] + 0.5)
    other.tick_params(labelsize=8)
    from matplotlib.ticker import MaxNLocator

    other.yaxis.set_major_locator(MaxNLocator(integer=True))
    other.set_ylabel("views used (grey)", fontsize=8)


def _track(ax: Any, findings: Findings) -> None:
    assert findings.track is not None
    agreement = findings.track.agreement
    _curve(ax, agreement if agreement.ndim == 1 else np.nanmean(agreement, axis=1), color=INK, lw=1)
    _up_to_one(ax)


def _up_to_one(ax: Any) -> None:
    """End the scale a little above 1, where a perfect curve would lie under the frame."""
    low = ax.get_ylim()[0]
    ax.set_ylim(low, 1 + 0.04 * (1 - low))


def _sigma(ax: Any, sigma: Floats) -> None:
    _curve(ax, sigma, color=COOL, lw=1)
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])


def rig_picture(rig: Rig, path_of_subject: Floats | None) -> str:
    """Return the cameras from above and from the side, with where the subject went."""
    figure, ((above, beside),) = plots(1, 2, (10, 4.4), layout="constrained")
    centres = rig.centres
    looks = np.stack([_looking(camera) for camera in rig])
    reach = 0.25 * max(rig.size_mm(), 1.0)
    for ax, (first, second), words in ((above, (0, 1), ("x", "y")), (beside, (0, 2), ("x", "z"))):
        for name, centre, look in zip(rig.names, centres, looks, strict=True):
            ax.plot(centre[first], centre[second], "o", color=INK, ms=5)
            ax.annotate(name, (centre[first], centre[second]), fontsize=7, xytext=(4, 4), textcoords="offset points")
            tip = centre + reach * look
            ax.plot([centre[first], tip[first]], [centre[second], tip[second]], color=INK, lw=0.8)
        if path_of_subject is not None:
            some = path_of_subject[:: max(1, len(path_of_subject) // _PATH_POINTS)]
            ax.plot(some[:, first], some[:, second], color=WARM, lw=1.2)
        ax.set(xlabel=f"{words[0]} (mm)", ylabel=f"{words[1]} (mm)")
        ax.set_aspect("equal", adjustable="datalim")
        ax.grid(alpha=0.3)
    above.set_title("from above", fontsize=9)
    beside.set_title("from the side", fontsize=9)
    return figure_uri(figure)


def _looking(camera: Any) -> Floats:
    if isinstance(camera, LensCamera):
        return np.asarray(camera.camera_from_world.rotation[2])
    width, height = camera.size
    return np.asarray(camera.rays([[width / 2, height / 2]])[1][0])


def angle_plot(names: Sequence[str], degrees: Floats, rate_hz: float, trust: Ints) -> str:
    """Return joint angles (T, K) over time, a small plot each."""
    columns = 3
    rows = -(-len(names) // columns)
    figure, axes = plots(rows, columns, (10, 1.5 * rows + 0.3), sharex=True)
    _margins(figure, (0.4, 0.1, 0.4, 0.25), (0.15, 0.35))
    for ax, name, values in zip(axes.ravel(), names, degrees.T, strict=False):
        _curve(ax, np.where(trust < Trust.LOST, values, np.nan), 1.0 / rate_hz, color=GREY, lw=0.6)
        _curve(ax, np.where(trust == Trust.TRUSTED, values, np.nan), 1.0 / rate_hz, color=INK, lw=1)
        shade_trust(ax, trust, 1.0 / rate_hz)
        ax.set_title(name, fontsize=8)
        ax.tick_params(labelsize=7)
    for ax in axes.ravel()[len(names) :]:
        ax.axis("off")
    for ax in axes.ravel()[max(0, len(names) - columns) : len(names)]:  # the lowest of each column
        ax.tick_params(labelbottom=True)
        ax.set_xlabel("time (s)", fontsize=8)
    return figure_uri(figure)


def score_plot(scores: JointScores, trust: Ints) -> str:
    """Return the error against truth over time and per joint."""
    figure, ((over_time, by_joint),) = plots(1, 2, (10, 3.6), layout="constrained", width_ratios=(3, 2))
    _curve(over_time, scores.per_frame, color=INK, lw=1)
    shade_trust(over_time, trust)
    over_time.set(xlabel="frame", ylabel="mean joint error (mm)", ylim=(0, None))
    by_joint.barh(scores.names, scores.per_joint, color=INK)
    by_joint.invert_yaxis()
    by_joint.tick_params(labelsize=7)
    by_joint.set_xlabel("mean error (mm)")
    return figure_uri(figure)
