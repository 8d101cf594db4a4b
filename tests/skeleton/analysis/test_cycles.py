"""Curves over the gait cycle."""

from __future__ import annotations

import numpy as np
import pytest

from skeleton.analysis.contacts import Contacts
from skeleton.analysis.cycles import cycle_curves, cycles_table


def _contacts(downs: list[float], frames: int) -> Contacts:
    spans = np.array([[down, down + 20.0] for down in downs])
    return Contacts(np.zeros(frames, dtype=bool), 100.0, 0.0, 1.0, 1.0, spans, np.ones(len(spans)))


def test_a_sine_over_its_own_cycle() -> None:
    frames = np.arange(460)
    signal = np.sin(2 * np.pi * (frames - 7.0) / 50.0)
    contacts = {"left_foot": _contacts([7.0 + 50.0 * k for k in range(9)], 460)}
    root = np.stack([2.0 * frames, 0.0 * frames], axis=1)
    (curve,) = cycle_curves({"left_knee": signal}, {"left_knee": "left_foot"}, contacts, root)
    assert curve.strides == 8 and curve.speed_mm_s == pytest.approx(200.0)
    np.testing.assert_allclose(curve.mean, np.sin(2 * np.pi * np.arange(101) / 100.0), atol=0.01)
    assert curve.spread.max() < 0.01
    rows = cycles_table([curve]).splitlines()
    assert len(rows) == 102 and rows[1].startswith("left_knee,left_foot,200.0,8,0,")


def test_a_walk_that_becomes_a_jog_gives_two_curves_and_unknown_strides_none() -> None:
    frames = np.arange(900)
    downs = [50.0 * k for k in range(1, 17)]
    root = np.stack([np.where(frames < 400, 1.0 * frames, 400 + 3.0 * (frames - 400)), 0.0 * frames], axis=1)
    signal = np.ones(900)
    signal[120] = np.nan
    curves = cycle_curves({"s": signal}, {"s": "f"}, {"f": _contacts(downs, 900)}, root)
    assert [curve.strides for curve in curves] == [6, 8]
    assert curves[0].speed_mm_s == pytest.approx(100.0) and curves[1].speed_mm_s == pytest.approx(300.0)
