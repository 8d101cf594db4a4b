"""What tracking leaves for the skeleton: doubt about a limb loosens its points only so far."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tracking.sequence import tracked_points
from tracking.sequence.tracked_points import LOOSEST, TrackedPoints


@pytest.mark.parametrize(("body", "share"), [("human", 0.5), ("mouse", 1.0)])
def test_a_limb_in_doubt_keeps_a_say_and_a_persons_joints_tell_more(
    monkeypatch: pytest.MonkeyPatch, body: str, share: float
) -> None:
    doubt = np.array([[0.0, 140.0], [0.0, 6.0]])
    own = np.array([[4.0, 5.0], [4.0, 5.0]])
    owner = np.array([0, 1])
    file: Any = SimpleNamespace(
        has_markers=True,
        marker_names=("chest", "hand"),
        parameters={"subject": body},
        body=body,
        cage_joint_names=("pelvis", "wrist"),
        trust=lambda: np.zeros(2, np.int64),
        limb_names=("trunk", "arm"),
        reasons=(),
        markers=lambda frames: np.zeros((2, 2, 3)),
        marker_sigma=lambda frames: np.hypot(own, doubt[:, owner]),
        cage_joints=lambda frames: np.zeros((2, 2, 3)),
        limb_sigma=lambda frames: doubt,
        marker_limbs=owner,
        cage_joint_limbs=owner,
    )

    @contextmanager
    def opened(path: Path) -> Any:
        yield file

    monkeypatch.setattr(tracked_points, "open_track", opened)
    sigma = TrackedPoints(Path("track.h5")).rows(slice(None)).sigma
    assert sigma is not None
    np.testing.assert_allclose(sigma[:, :2], [[4.0, np.hypot(5.0, LOOSEST * 5.0)], [4.0, np.hypot(5.0, 6.0)]])
    # Joints have the sigma of a typical marker, a person's half of it, and no more doubt beside it.
    typical = share * np.median(sigma[:, :2], axis=1)
    np.testing.assert_allclose(sigma[:, 2], typical)
    assert (sigma[:, 3] <= np.hypot(1.0, LOOSEST) * typical + 1e-9).all()
