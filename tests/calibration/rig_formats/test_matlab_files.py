"""The MATLAB reader against what scipy writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from calibration.foundation.errors import InputError
from calibration.rig_formats.matlab_files import read_matlab


@pytest.mark.parametrize("compressed", [False, True])
def test_reads_what_scipy_writes(tmp_path: Path, compressed: bool) -> None:
    cell = np.empty((2, 2), dtype=object)
    cell[0, 0], cell[0, 1], cell[1, 0], cell[1, 1] = np.arange(3.0), "name", np.array([[1 + 0]]), "x"
    numbers = np.arange(24.0).reshape(2, 3, 4)
    given = {"numbers": numbers, "small": np.int8([[1, 2]]), "word": "hello", "cell": cell, "one": {"K": np.eye(3)}}
    scipy.io.savemat(tmp_path / "a.mat", given, do_compression=compressed)
    found = read_matlab(tmp_path / "a.mat")
    assert np.array_equal(found["numbers"], numbers)
    assert np.array_equal(found["small"], [[1, 2]])
    assert found["word"] == "hello"
    assert found["cell"][0, 1] == "name" and np.array_equal(found["cell"][0, 0].ravel(), [0, 1, 2])
    assert np.array_equal(found["one"]["K"], np.eye(3))


def test_other_versions_are_named(tmp_path: Path) -> None:
    (tmp_path / "v73.mat").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(600))
    with pytest.raises(InputError, match="-v7"):
        read_matlab(tmp_path / "v73.mat")
    (tmp_path / "no.mat").write_bytes(b"hello")
    with pytest.raises(InputError, match="does not begin"):
        read_matlab(tmp_path / "no.mat")
