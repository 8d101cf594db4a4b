"""The size of a subject: the sizes that are tried."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracking.adapting import scale_search
from tracking.adapting.scale_search import refined_scale


@pytest.mark.parametrize(
    ("true", "tried"),
    [(1.12, [0, 1, 2, 3]), (1.0, [0, 1, -1]), (0.9, [0, 1, -1, -2, -3]), (2.0, [0, 1, 2, 3, 4, 5, 6, 7])],
)
def test_sizes_are_tried_towards_where_the_overlap_rises_and_no_others(
    true: float, tried: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[float] = []

    def fits(subject: Any, rig: Any, settings: Any, scale: float, looks: Any, starts: Any) -> list[Any]:
        sizes.append(scale)
        return [SimpleNamespace(agreement=1.0 - np.log(scale / true) ** 2, scale=scale)]

    monkeypatch.setattr(scale_search, "_fits", fits)
    nothing: Any = None
    scale, found = refined_scale(nothing, nothing, [], [], 1.0, 0.05)
    assert sorted(round(np.log(size) / np.log(1.05)) for size in sizes) == sorted(tried)
    if true < 1.4:
        assert abs(scale - true) < 1e-9
    else:  # no further than the sizes that are believed
        assert scale < 1.4 * 1.05
    best: Any = found[0]
    assert abs(np.log(best.scale / true)) == min(abs(np.log(size / true)) for size in sizes)
