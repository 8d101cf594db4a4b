"""Fixtures of this package's tests."""

from __future__ import annotations

import pytest
from example_rigs import ring

from calibration.cameras.rig import Rig


@pytest.fixture
def rig() -> Rig:
    """Eight different cameras with five distortion coefficients."""
    return ring()
