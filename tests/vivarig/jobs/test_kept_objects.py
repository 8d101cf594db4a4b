"""Kept objects come back as they were, hold large arrays once, and their files are not changed through them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vivarig.jobs.kept_objects import is_ours, load_object, load_object_anew, save_object


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 200, 301), dtype=np.uint8)
    return {
        "odd": images[0, :, :-1].copy(),
        "bytes": images,
        "numbers": rng.normal(size=(120, 90, 3)).astype(np.float32),
        "by columns": np.asfortranarray(rng.normal(size=(200, 100))),
        "with gaps": images[:, ::2, ::2],
        "truths": images > 100,
        "small": np.arange(5),
        "empty": np.zeros((0, 3)),
        "words": ["as they are", 3, None],
    }


def test_arrays_come_back_as_they_were(tmp_path: Path) -> None:
    kept = arrays()
    save_object(tmp_path / "a.kept", kept, "inputs")
    for found in (load_object(tmp_path / "a.kept"), load_object_anew(tmp_path / "a.kept")):
        assert list(found) == list(kept) and found["words"] == kept["words"]
        for name in list(kept)[:-1]:
            assert found[name].dtype == kept[name].dtype and np.array_equal(found[name], kept[name]), name
            assert found[name].flags.aligned and found[name].flags.writeable, name
        assert found["by columns"].flags.f_contiguous


def test_a_loaded_array_that_is_changed_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.kept"
    save_object(path, arrays(), "inputs")
    found = load_object_anew(path)
    found["bytes"][:] = 0
    assert is_ours(path, "inputs") and np.array_equal(load_object_anew(path)["bytes"], arrays()["bytes"])
    path.unlink()
    assert not found["bytes"].any() and np.array_equal(found["numbers"], arrays()["numbers"]), "it outlives its file"


def test_a_damaged_array_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.kept"
    kept = arrays()
    save_object(path, kept, "inputs")
    content = path.read_bytes()
    at = content.index(kept["bytes"].tobytes()) + 12_345
    for damaged in (content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :], content[:-100], content[:20]):
        path.write_bytes(damaged)
        assert not is_ours(path, "inputs")


def most_held(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_neither_keeping_nor_looking_nor_loading_holds_large_arrays_again(tmp_path: Path) -> None:
    path, value = tmp_path / "a.kept", [np.ones((1000, 1000, 3), np.float32) for _ in range(4)]
    allowed = sum(one.nbytes for one in value) // 10
    assert most_held(lambda: save_object(path, value, "inputs")) < allowed
    assert most_held(lambda: is_ours(path, "inputs")) < allowed
    assert most_held(lambda: load_object_anew(path)) < allowed
