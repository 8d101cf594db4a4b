"""Damaged files that once did harm, by hand and small: each is refused in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from corpus import READERS
from driver import nonsense, outcome

from skeleton.pose_spaces.coding.vpg_files import read_vpg, write_vpg


def _replaced(old: str, new: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        text = path.read_text()
        assert re.search(old, text)
        path.write_text(re.sub(old, new, text, count=1))

    return damage


def _number(dataset: str, value: float, kind: type | None = None) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            shape, before = file[dataset].shape, file[dataset].dtype
            del file[dataset]
            file[dataset] = np.full(shape, value, kind or before)

    return damage


def _attribute(group: str, name: str, value: object) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with h5py.File(path, "r+") as file:
            file[group].attrs[name] = value

    return damage


def _array(name: str, value: object) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path = next(path.glob("*.npz")) if path.is_dir() else path
        with np.load(path) as archive:
            fields = dict(archive)
        np.savez(path, **{**fields, name: np.asarray(value)})

    return damage


def _heap_of_strings(path: Path) -> None:
    """Give the first string a length that the library's walk of the heap turns into a step of nothing."""
    content = bytearray(path.read_bytes())
    place = content.find(b"GCOL")
    assert place > 0
    content[place + 24 : place + 32] = (2**64 - 16).to_bytes(8, "little")
    path.write_bytes(content)


def _no_scale(path: Path) -> None:
    write_vpg(replace(read_vpg(path), scales=np.zeros(2)), path)


FOUND: dict[str, tuple[str, Callable[[Path], None]]] = {
    "infinite weight": ("ik setup", _replaced("<weight>2", "<weight>-inf")),
    "weight that is none": ("ik setup", _replaced("<weight>2", "<weight>nan")),
    "infinite place": ("osim", _replaced("<location>0 0.5 0", "<location>0 inf 0")),
    "absurd mass": ("osim", _replaced("<mass>2", "<mass>1e300")),
    "infinite body": ("mujoco", _replaced('pos="0.3 0 0"', 'pos="inf 0 0"')),
    "absurd radius": ("bead tracks", _number("sigma", 1e300)),
    "absurd map": ("distortion maps", _number("x1/to_raw", np.inf)),
    "one number for two": ("distortion maps", _attribute("x1", "size", 64)),
    "absurd cover": ("distortion maps", _number("x1/known", 7.5e300, np.float64)),
    "absurd beads": ("results", lambda path: _number("positions", 1e300)(path / "results" / "beads.h5")),
    "absurd truth": ("truth", _number("joints/positions", 1e300)),
    "infinite click": ("clicks", _replaced("cam1,a,1,2", "cam1,a,1,-inf")),
    "absurd survey": ("surveyed scene", _replaced("sd_mm = 2", "sd_mm = 1e300")),
    "absurd table": ("table", _replaced("left_knee,1.5", "left_knee,1e16")),
    "absurd board": ("boards", _replaced("square_mm = 10", "square_mm = 1e300")),
    "no views of buffers": (
        "mesh glb",
        lambda path: path.write_bytes(path.read_bytes().replace(b'"bufferViews"', b'"bxfferViews"')) and None,
    ),
    "absurd rate": ("plan", _replaced("rate_hz = 100.0", "rate_hz = 1e300")),
    "offsets of nobody": ("cmu table", _array("offsets", 3.0)),
    "letters that do not exist": ("cmu table", _array("channels", np.full(6, 0x7FFFFFFF, np.uint32).view("<U1"))),
    "absurd keypoint": ("image points", _replaced(r'"keypoints": \[\d[\d.]*', '"keypoints": [1e300')),
    "heap of strings without an end": ("motion deeplabcut h5", _heap_of_strings),
    "motion to infinity": ("vpg", _no_scale),
    "a return that ends no line": ("xmalab 3d", _replaced("1,2,3", "1,2\r,3")),
    "a cell without an end": ("xmalab 3d", _replaced("1,2,3", "1,2," + 200_000 * "3")),
    "clip beyond the end": ("cmu table", _array("first", [2])),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_did_harm_is_refused(tmp_path: Path, name: str) -> None:
    kind, damage = FOUND[name]
    reader = READERS[kind]
    path = tmp_path / reader.file
    reader.make(path)
    assert outcome(reader, path)[0] == "read"
    damage(path)
    what, said = outcome(reader, path)
    assert what == "refused", said


def test_nonsense_is_seen_wherever_it_stands() -> None:
    assert nonsense({"a": [1.0, (np.array([1.0, np.nan]), 3)]}) == ""
    assert "inf" in nonsense({"a": [1.0, (np.array([1.0, np.inf]),)]})
    assert "1e+16" in nonsense([1e16]) and "nan" in nonsense((float("nan"),))
    assert nonsense({"bounds": np.array([-np.inf, np.inf])}) == ""
