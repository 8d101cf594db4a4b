"""Hulls on disk."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import RowWriter
from capture.hull.result import Hull
from capture.hull.store import create_hulls, keep_parts, read_hulls


def test_files_put_together_hold_the_hulls_of_both(tmp_path: Path) -> None:
    """Of different sizes, an empty one between them: each frame's mesh comes back as it was written."""
    rng = np.random.default_rng(4)
    hulls = [
        Hull(
            rng.random((size, 3)).astype(np.float32).astype(np.float64),
            rng.integers(0, max(size, 1), (2 * size, 3)).astype(np.int32),
            float(size),
            rng.random(3) > 0.3,
            rng.random(3).astype(np.float32).astype(np.float64),
            size % 4,
        )
        for size in (5, 0, 40_000, 7, 90_000)
    ]
    for name, part in (("a", hulls[:2]), ("b", hulls[2:])):
        with create_hulls(tmp_path / f"{name}.h5", ["x", "y", "z"], len(part), {}) as writer:
            writer.write(0, part)
    with create_hulls(tmp_path / "both.h5", ["x", "y", "z"], len(hulls), {}) as writer:
        assert writer.copy(0, tmp_path / "a.h5") == 2
        assert writer.copy(2, tmp_path / "b.h5") == 3
    for wanted, found in zip(hulls, read_hulls(tmp_path / "both.h5"), strict=True):
        for key in ("vertices", "faces", "volume", "views_used", "agreement", "flags"):
            np.testing.assert_array_equal(getattr(found, key), getattr(wanted, key))


@pytest.mark.parametrize("count", [-1, 6])
def test_a_count_that_does_not_fit_is_refused(count: int, tmp_path: Path) -> None:
    path = tmp_path / "hull.h5"
    hull = Hull(np.zeros((5, 3)), np.zeros((2, 3), np.int32), 1.0, np.ones(2, bool), np.ones(2), 0)
    with create_hulls(path, ["x", "y"], 1, {}) as writer:
        writer.write(0, [hull])
    with h5py.File(path, "r+") as file:
        file["vertex_count"][0] = count
    with pytest.raises(InputError, match="'vertex_count' does not fit"):
        next(read_hulls(path))


def test_parts_of_a_long_recording_stay_where_they_are(tmp_path: Path) -> None:
    """Each frame's mesh comes back from its part, also where the list of them was set aside; a lost part is named."""
    hulls = [
        Hull(np.full((3, 3), float(k)), np.zeros((1, 3), np.int32), float(k), np.ones(2, bool), np.ones(2), 0)
        for k in range(5)
    ]
    (tmp_path / "made").mkdir()
    parts = [tmp_path / "made" / f"hulls-{name}.h5" for name in ("a", "b")]
    for path, some in zip(parts, (hulls[:2], hulls[2:]), strict=True):
        with create_hulls(path, ["x", "y"], len(some), {"voxel_mm": 2.0}) as writer:
            writer.write(0, some)
    target = tmp_path / "results" / "hull.h5"
    keep_parts(target, parts, {"voxel_mm": 2.0})
    aside = tmp_path / "results" / "unedited" / "hull.h5"
    for _ in range(2):
        found = list(read_hulls(target))
        assert [hull.vertices[0, 0] for hull in found] == [0, 1, 2, 3, 4] == [hull.volume for hull in found]
        if target != aside:
            aside.parent.mkdir()
            target = target.rename(aside)
    with pytest.raises(InputError, match="frame 5 is outside"):
        next(read_hulls(target, [5]))
    (tmp_path / "results" / "hull_parts" / "hulls-b.h5").unlink()
    with pytest.raises(InputError, match=r"hulls-b\.h5 is missing"):
        next(read_hulls(target, [2]))


def test_a_list_of_parts_leads_nowhere_else(tmp_path: Path) -> None:
    """A stranger's list that names a file elsewhere is refused, and one whose frames do not fit."""
    hull = Hull(np.zeros((5, 3)), np.zeros((2, 3), np.int32), 1.0, np.ones(2, bool), np.ones(2), 0)
    with create_hulls(tmp_path / "a.h5", ["x", "y"], 1, {}) as writer:
        writer.write(0, [hull])
    path = tmp_path / "results" / "hull.h5"
    keep_parts(path, [tmp_path / "a.h5"], {})
    with h5py.File(path, "r+") as file:
        del file["parts"]
        file["parts"] = np.array([b"../../a.h5"])
    with pytest.raises(InputError, match="missing"):
        next(read_hulls(path))
    with h5py.File(path, "r+") as file:
        file["part_first"][1] = 9
    with pytest.raises(InputError, match="'part_first' points outside"):
        next(read_hulls(path))


def test_rows_are_what_any_program_reads(tmp_path: Path, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(53, 3)).astype(np.float32)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        data = file.create_dataset(
            "rows", (0, 3), np.float32, maxshape=(None, 3), chunks=(16, 3), compression="gzip", shuffle=True
        )
        writer = RowWriter(data)
        for first, stop in ((0, 5), (5, 5), (5, 16), (16, 50), (50, 53)):  # within a chunk, to its end, over several
            writer.append(rows[first:stop])
        writer.finish()
        with pytest.raises(ValueError, match="empty dataset"):
            RowWriter(data)
    with h5py.File(tmp_path / "rows.h5") as file:
        np.testing.assert_array_equal(file["rows"][()], rows)
