"""The bead report says what kind of joint two bones form."""

from __future__ import annotations

import numpy as np

from calibration.geometry.transforms import rotation_from_vector
from vivarig.report.bead_report import _joint_table
from vivarig.report.page import Page


def test_a_jaw_that_hangs_on_a_hinge() -> None:
    still = np.broadcast_to(np.eye(4), (40, 4, 4)).copy()
    jaw = still.copy()
    angles = np.radians(8.0) * np.sin(np.arange(40) / 6.0)
    jaw[:, :3, :3] = rotation_from_vector(angles[:, None] * np.array([0.0, 1.0, 0.0]))
    jaw[3] = np.nan  # one frame without
    page = Page("x")
    _joint_table(page, {"jaw": jaw, "skull": still, "other": still})
    html = page.html()
    assert "skull against jaw" in html and "hinge" in html and "100 %" in html and "16.0" in html
    assert "that slides" not in html
    assert "other against skull" not in html  # they do not turn against each other
