"""A skeleton fitted in chunks: the same as fitted at once, whatever is missing."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from calibration.foundation.spans import Span
from skeleton.bodies import load_body
from skeleton.bodies.marker_sets import builtin_markers
from skeleton.inverse_kinematics.fits import SkeletonFit
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from skeleton.inverse_kinematics.spring_window import fit_smoothly
from vivarig.stages.skeleton_chunks import fit_chunks

FRAMES = 150


@pytest.fixture(scope="module")
def points() -> Floats:
    """Markers of a mouse that walks in a circle, one and a half times round, swaying."""
    body, markers = load_body("mouse"), builtin_markers("mouse")
    rng = np.random.default_rng(3)
    time = np.arange(FRAMES) / 100.0
    q = 0.1 * np.sin(2 * np.pi * (time[:, None] + rng.random(body.dimension)))
    q[:, 3:6] = np.array([0.0, 0.0, 2 * np.pi]) * time[:, None]
    q[:, :2] = 100.0 * np.stack([np.cos(2 * np.pi * time), np.sin(2 * np.pi * time)], axis=1)
    segments = np.array([body.index(name) for name in markers.segments])
    placed = body.forward(body.clamp(q)).points(segments, markers.offsets)
    return np.asarray(placed + rng.normal(0.0, 0.1, placed.shape))


def in_chunks(points: Floats, chunk: int) -> tuple[list[Span], dict[str, np.ndarray]]:
    """Return the chunks in the order they came, and their rows put together."""
    body, names = load_body("mouse"), builtin_markers("mouse").names

    def fit(span: Span, start: Floats | None) -> SkeletonFit:
        here = points[span.first : span.stop]
        found = fit_skeleton(body, names, here, start=start)
        return fit_smoothly(body, names, here, rate_hz=100.0, time_s=0.02, start=found)

    done = list(fit_chunks(fit, np.isfinite(points[..., 0]).sum(axis=1), chunk=chunk, lead=8))
    parts = [fit for _, fit in sorted(done, key=lambda item: item[0])]
    keys = ("positions", "rotations", "coordinates", "trust")
    return [span for span, _ in done], {key: np.concatenate([getattr(part, key) for part in parts]) for key in keys}


def distances(coordinates: Floats, points: Floats) -> Floats:
    """Return (T, M) how far the body's markers are from where they were seen, mm."""
    body, markers = load_body("mouse"), builtin_markers("mouse")
    segments = np.array([body.index(name) for name in markers.segments])
    return np.asarray(np.linalg.norm(body.forward(coordinates).points(segments, markers.offsets) - points, axis=2))


def test_chunks_give_the_fit_of_the_whole(points: Floats) -> None:
    (only,), whole = in_chunks(points, FRAMES)
    spans, cut = in_chunks(points, 40)
    assert only == Span(0, FRAMES) and [len(span) for span in spans] == [37, 38, 37, 38]
    # The iteration ends some hundredths of a sigma from the optimum, wherever it began: 0.1 mm markers.
    np.testing.assert_allclose(cut["positions"], whole["positions"], atol=0.02)
    np.testing.assert_array_equal(cut["trust"], whole["trust"])
    # A whole turn is passed, where rotation vectors know no direction.
    assert distances(whole["coordinates"], points).mean(axis=1).max() < 0.6
    # Neither signs nor turns jump at a seam.
    assert (np.einsum("tjk,tjk->tj", cut["rotations"][1:], cut["rotations"][:-1]) > 0).all()
    assert np.abs(np.diff(cut["coordinates"][:70, 3:], axis=0)).max() < 0.5


def test_chunks_without_markers_hold_a_pose_and_are_lost(points: Floats) -> None:
    gaps = points.copy()
    gaps[:45] = np.nan
    gaps[70:115] = np.nan
    spans, cut = in_chunks(gaps, 30)
    assert spans[-1] == Span(0, 30), "what comes before the first sight is held from after it"
    lost = np.r_[0:45, 70:115]
    assert (cut["trust"][lost] == 2).all() and (np.delete(cut["trust"], lost) == 0).all()
    assert np.isfinite(cut["positions"]).all()
    # Beside a gap the pose rests on half of its neighbours: some tenths of the markers' 1 mm springs.
    off = np.delete(distances(cut["coordinates"], points), lost, axis=0)
    assert np.median(off) < 0.4 and off.mean(axis=1).max() < 1.0
