"""Plots of the report as PNG inside the page: quality over time, the rig, joint angles."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot
from matplotlib.figure import Figure

from calibration.arrays import Floats, Ints
from calibration.cameras import LensCamera
from calibration.rig import Rig
from skeleton.scoring import JointScores
from vivarig.report.findings import Findings

__all__ = ["angle_plot", "quality_plot", "rig_picture", "score_plot"]

INK, WARM, COOL, GREY = "#1f6f8b", "#c0392b", "#2e8b57", "#888888"


def _uri(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    pyplot.close(figure)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _shade(axes: Any, trust: Ints, rate_hz: float = 1.0) -> None:
    """Mark doubtful and lost frames behind a plot over frames, or over seconds at a rate."""
    for level, colour in ((1, "#f6d55c"), (2, "#ed553b")):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], trust == level, [0]]).astype(int)))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            axes.axvspan((start - 0.5) / rate_hz, (stop - 0.5) / rate_hz, color=colour, alpha=0.35, lw=0)


def quality_plot(findings: Findings) -> str:
    """Return the quality of every stage over time."""
    rows: list[tuple[str, Any]] = []
    if findings.silhouettes is not None and np.isfinite(findings.silhouettes.agreement).any():
        rows.append(("silhouettes: agreement\nbetween views (IoU)", _agreement))
    if findings.hull is not None:
        rows.append(("hull volume (ml)\nviews used", _hull))
    if findings.track is not None:
        rows.append(("tracking: view\nagreement (IoU)", _track))
    if findings.skeleton is not None:
        rows.append(("skeleton: median joint\n1 sigma (mm)", _sigma))
    figure, axes = pyplot.subplots(
        max(len(rows), 1), 1, figsize=(10, 1.9 * max(len(rows), 1) + 0.4), sharex=True, layout="constrained",
        squeeze=False,
    )  # fmt: skip
    for ax, (label, draw) in zip(axes[:, 0], rows, strict=False):
        draw(ax, findings)
        ax.set_ylabel(label, fontsize=8)
        ax.tick_params(labelsize=8)
        if findings.track is not None:
            _shade(ax, findings.track.trust)
    axes[-1, 0].set_xlabel("frame (yellow: doubtful, red: lost)", fontsize=8)
    return _uri(figure)


def _agreement(ax: Any, findings: Findings) -> None:
    assert findings.silhouettes is not None
    for name, column in zip(findings.silhouettes.names, findings.silhouettes.agreement.T, strict=True):
        ax.plot(column, lw=0.8, label=name)
    ax.legend(fontsize=6, ncols=8, loc="lower left")
    ax.set_ylim(top=1)


def _hull(ax: Any, findings: Findings) -> None:
    assert findings.hull is not None
    ax.plot(findings.hull.volume / 1000, color=INK, lw=1)
    other = ax.twinx()
    other.step(np.arange(len(findings.hull.volume)), findings.hull.views_used.sum(1), color=GREY, lw=0.8, where="mid")
    other.set_ylim(0, findings.hull.views_used.shape[1] + 0.5)
    other.tick_params(labelsize=8)


def _track(ax: Any, findings: Findings) -> None:
    assert findings.track is not None
    agreement = findings.track.agreement
    ax.plot(agreement if agreement.ndim == 1 else np.nanmean(agreement, axis=1), color=INK, lw=1)
    ax.set_ylim(top=1)


def _sigma(ax: Any, findings: Findings) -> None:
    assert findings.skeleton is not None
    sigma = findings.skeleton.sigma
    known = np.isfinite(sigma).any(1)
    values = np.full(len(sigma), np.nan)
    values[known] = np.nanmedian(sigma[known], axis=1)
    ax.plot(values, color=COOL, lw=1)
    ax.set_ylim(bottom=0)


def rig_picture(rig: Rig, path_of_subject: Floats | None) -> str:
    """Return the cameras from above and from the side, with where the subject went."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    centres = rig.centres
    looks = np.stack([_looking(camera) for camera in rig])
    reach = 0.25 * max(rig.size_mm(), 1.0)
    for ax, (first, second), words in ((axes[0], (0, 1), ("x", "y")), (axes[1], (0, 2), ("x", "z"))):
        for name, centre, look in zip(rig.names, centres, looks, strict=True):
            ax.plot(centre[first], centre[second], "o", color=INK, ms=5)
            ax.annotate(name, (centre[first], centre[second]), fontsize=7, xytext=(4, 4), textcoords="offset points")
            tip = centre + reach * look
            ax.plot([centre[first], tip[first]], [centre[second], tip[second]], color=INK, lw=0.8)
        if path_of_subject is not None:
            ax.plot(path_of_subject[:, first], path_of_subject[:, second], color=WARM, lw=1.2)
        ax.set(xlabel=f"{words[0]} (mm)", ylabel=f"{words[1]} (mm)")
        ax.set_aspect("equal", adjustable="datalim")
        ax.grid(alpha=0.3)
    axes[0].set_title("from above", fontsize=9)
    axes[1].set_title("from the side", fontsize=9)
    return _uri(figure)


def _looking(camera: Any) -> Floats:
    if isinstance(camera, LensCamera):
        return np.asarray(camera.camera_from_world.rotation[2])
    width, height = camera.size
    return np.asarray(camera.rays([[width / 2, height / 2]])[1][0])


def angle_plot(names: Sequence[str], degrees: Floats, rate_hz: float, trust: Ints) -> str:
    """Return joint angles (T, K) over time, a small plot each."""
    columns = 3
    rows = -(-len(names) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(10, 1.5 * rows + 0.3), sharex=True, layout="constrained", squeeze=False
    )
    seconds = np.arange(len(degrees)) / rate_hz
    for ax, name, values in zip(axes.ravel(), names, degrees.T, strict=False):
        ax.plot(seconds, np.where(trust < 2, values, np.nan), color=GREY, lw=0.6)
        ax.plot(seconds, np.where(trust == 0, values, np.nan), color=INK, lw=1)
        _shade(ax, trust, rate_hz)
        ax.set_title(name, fontsize=8)
        ax.tick_params(labelsize=7)
    for ax in axes.ravel()[len(names) :]:
        ax.axis("off")
    for ax in axes[-1]:
        ax.set_xlabel("time (s)", fontsize=8)
    return _uri(figure)


def score_plot(scores: JointScores, trust: Ints) -> str:
    """Return the error against truth over time and per joint."""
    figure, (over_time, by_joint) = pyplot.subplots(1, 2, figsize=(10, 3.6), width_ratios=(3, 2), layout="constrained")
    over_time.plot(scores.per_frame, color=INK, lw=1)
    _shade(over_time, trust)
    over_time.set(xlabel="frame", ylabel="mean joint error (mm)", ylim=(0, None))
    by_joint.barh(scores.names, scores.per_joint, color=INK)
    by_joint.invert_yaxis()
    by_joint.tick_params(labelsize=7)
    by_joint.set_xlabel("mean error (mm)")
    return _uri(figure)
