"""Silhouettes of the real mouse cage: infrared, bedding, reflections, no plate, an animal that sits."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.silhouettes import cage_scores


@pytest.mark.realdata
def test_sitting_mouse_is_found_without_a_plate(shared_data: Path) -> None:
    scores = cage_scores(shared_data, stop=2)
    assert scores["found"] == 1.0
    # Nose, ears and tail tip lie on the animal's very edge, and the labels themselves reproject to 4-8 px only.
    assert scores["margin_all_inside"] >= 0.95
    assert scores["margin_all_area_max"] <= 1.3  # 1.12 at most: no bedding in any view
