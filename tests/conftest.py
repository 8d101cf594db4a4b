"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def _data_folder() -> Path:
    return Path(os.environ.get("VIVARIG_DATA", REPOSITORY.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of borrowed real data; a test that needs it is skipped, loudly, only where it does not exist."""
    folder = _data_folder()
    if not folder.is_dir():
        pytest.skip(f"real data missing: {folder}")
    return folder


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of the sample recordings that ship with the repository."""
    return REPOSITORY / "sample_data"


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator."""
    return np.random.default_rng(20120101)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it loudly where the tests on real data could not run."""
    if not _data_folder().is_dir():
        terminalreporter.section("REAL DATA MISSING", sep="!", red=True)
        terminalreporter.line(f"{_data_folder()} does not exist: tests on real data were skipped; set VIVARIG_DATA")
