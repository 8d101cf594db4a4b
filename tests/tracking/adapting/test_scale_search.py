"""The size of a subject: which sizes are tried."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tracking.adapting import scale_search


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Sizes that were fitted; the overlap is best at 1.12."""
    sizes: list[float] = []

    def fits(subject: Any, rig: Any, settings: Any, scale: float, looks: Any, starts: Any) -> list[Any]:
        sizes.append(scale)
        return [_fit(scale)]

    monkeypatch.setattr(scale_search, "_fits", fits)
    return sizes


def _fit(scale: float) -> Any:
    return SimpleNamespace(agreement=0.9 - (scale - 1.12) ** 2)


@pytest.mark.parametrize("at_scale", [False, True])
def test_fits_at_the_size_to_begin_with_are_not_made_again(tried: list[float], at_scale: bool) -> None:
    nothing: Any = None
    scale, fits = scale_search.refined_scale(nothing, nothing, [nothing], [_fit(1.0)], 1.0, 0.05, at_scale=at_scale)
    assert abs(scale - 1.12) < 0.002
    assert abs(fits[0].agreement - _fit(1.05**2).agreement) < 1e-12
    assert [round(one, 3) for one in sorted(tried)] == [0.952] + [1.0] * (not at_scale) + [1.05, 1.103, 1.158]
