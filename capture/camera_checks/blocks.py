"""Robust costs of residuals, compared block by block of one pair and some frames: blocks err independently."""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats

__all__ = ["block_gains", "cost", "frame_costs", "gain", "mean_cost", "median_px", "sureness"]

#: Frames of one block of time.
_BLOCK = 16


def cost(residual: Floats, scale: float) -> Floats:
    """Return the robust cost of residuals (px), 0 to 1 each; NaN stays NaN."""
    squares = residual**2
    return np.asarray(squares / (squares + scale**2))


def frame_costs(residual: Floats, scale: float) -> Floats:
    """Return (P, T) the mean cost of each pair and frame of residuals (P, T, 2); NaN where not known."""
    values = cost(residual, scale)
    known = np.isfinite(values)
    counts = known.sum(axis=2)
    return np.asarray(np.where(counts > 0, np.where(known, values, 0.0).sum(axis=2) / np.maximum(counts, 1), np.nan))


def mean_cost(residual: Floats, scale: float) -> float:
    """Return the mean cost of residuals (P, T, 2); NaN if none is known."""
    costs = frame_costs(residual, scale)
    known = costs[np.isfinite(costs)]
    return float(known.mean()) if len(known) else float("nan")


def block_gains(before: Floats, after: Floats, scale: float) -> Floats:
    """Return (P, B) by how much the cost falls in each block of one pair and some frames; NaN where not known."""
    change = frame_costs(before, scale) - frame_costs(after, scale)
    blocks = np.array_split(change, max(1, round(change.shape[1] / _BLOCK)), axis=1)
    known = np.stack([np.isfinite(block).sum(axis=1) for block in blocks], axis=1)
    sums = np.stack([np.where(np.isfinite(block), block, 0.0).sum(axis=1) for block in blocks], axis=1)
    return np.asarray(np.where(known > 0, sums / np.maximum(known, 1), np.nan))


def gain(before: Floats, after: Floats, scale: float) -> float:
    """Return by how much the cost falls, mean over blocks; -1 if nothing is known."""
    gains = block_gains(before, after, scale)
    gains = gains[np.isfinite(gains)]
    return float(gains.mean()) if len(gains) else -1.0


def sureness(before: Floats, after: Floats, scale: float) -> float:
    """Return the gain over its standard error."""
    gains = block_gains(before, after, scale)
    gains = gains[np.isfinite(gains)]
    if len(gains) < 4:
        return 0.0
    return float(gains.mean() / max(gains.std(ddof=1) / np.sqrt(len(gains)), 1e-6))


def median_px(residual: Floats) -> float:
    """Return the median size of residuals, px; NaN if none is known."""
    known = np.abs(residual[np.isfinite(residual)])
    return float(np.median(known)) if len(known) else float("nan")
