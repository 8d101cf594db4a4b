"""DeepLabCut pose files (.csv with its header rows, .h5 of pandas): image points with a likelihood.

The HDF5 form is read with h5py alone. pandas' table layout, which DeepLabCut writes, keeps the column labels as a
pickled list of tuples: it is opened by an unpickler that knows lists, tuples and strings and refuses everything else.
"""

from __future__ import annotations

import csv
import io
import pickle
from pathlib import Path
from typing import Any, NoReturn

import h5py
import numpy as np

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.foundation.files import read_text
from calibration.foundation.hdf5_files import open_hdf5, words_of
from skeleton.motion_files.motions import MarkerSeries
from skeleton.motion_files.table import cells_as_numbers

__all__ = ["read_deeplabcut"]


def read_deeplabcut(
    path: Path | str, *, rate_hz: float, individual: str | None = None, least_likelihood: float = 0.0
) -> MarkerSeries:
    """Read a DeepLabCut file of one animal.

    Args:
        path: .csv or .h5 file.
        rate_hz: frames per second of the video (the file does not hold it).
        individual: which animal of a multi-animal file.
        least_likelihood: points scored below this are missing.
    """
    source = Path(path)
    columns, values = _read_h5(source) if source.suffix.lower() in (".h5", ".hdf5") else _read_text(source)
    animals = list(dict.fromkeys(animal for animal, _, _ in columns))
    if individual is None and len(animals) > 1:
        raise InputError(f"{source}: holds several animals ({', '.join(animals)}); pass individual")
    chosen = animals[0] if individual is None else individual
    if chosen not in animals:
        raise InputError(f"{source}: no animal '{chosen}'; the file has {', '.join(animals)}")
    place = {(part, kind): index for index, (animal, part, kind) in enumerate(columns) if animal == chosen}
    names = tuple(dict.fromkeys(part for part, _ in place))
    missing = [f"{name} {kind}" for name in names for kind in ("x", "y", "likelihood") if (name, kind) not in place]
    if missing:
        raise InputError(f"{source}: column '{missing[0]}' is missing; not a DeepLabCut pose file")
    likelihood = values[:, [place[name, "likelihood"] for name in names]]
    points = np.stack([values[:, [place[name, axis] for name in names]] for axis in ("x", "y")], axis=-1)
    seen = np.isfinite(points).all(axis=-1) & (np.nan_to_num(likelihood, nan=0.0) >= least_likelihood)
    return MarkerSeries(names, np.where(seen[..., None], points, np.nan), rate_hz, unit="px", confidence=likelihood)


def _read_text(source: Path) -> tuple[list[tuple[str, str, str]], Floats]:
    rows = [row for row in csv.reader(io.StringIO(read_text(source), newline=None)) if row]
    head = {row[0].strip().lower(): row[1:] for row in rows[:4]}
    if "bodyparts" not in head or "coords" not in head:
        raise InputError(f"{source}: not a DeepLabCut file (no header rows 'bodyparts' and 'coords')")
    first = 1 + max(index for index, row in enumerate(rows[:4]) if row[0].strip().lower() == "coords")
    animals = head.get("individuals", ["animal"] * len(head["bodyparts"]))
    columns = list(zip(animals, head["bodyparts"], head["coords"], strict=True))
    return columns, cells_as_numbers([row[1:] for row in rows[first:]], first + 1, str(source))


class _PlainUnpickler(pickle.Unpickler):
    """Opens lists, tuples and strings only: a pickle that names any class is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def _plain(raw: Any, source: Path) -> list[tuple[str, ...]]:
    content = raw if isinstance(raw, bytes) else bytes(raw)
    try:
        value = _PlainUnpickler(io.BytesIO(content)).load()
    except (pickle.UnpicklingError, EOFError, ValueError) as error:
        raise InputError(f"{source}: its column labels cannot be read ({error}); save it as CSV instead") from None
    return [tuple(str(word) for word in label) for label in value]


def _read_h5(source: Path) -> tuple[list[tuple[str, str, str]], Floats]:
    if not source.is_file():
        raise InputError(f"{source}: no such file")
    with open_hdf5(source, "a DeepLabCut file") as file:
        group = next((value for value in file.values() if isinstance(value, h5py.Group)), None)
        if group is not None and "table" in group and "values_block_0_kind" in group["table"].attrs:
            table = group["table"]
            labels = _plain(table.attrs["values_block_0_kind"], source)
            values = np.asarray(table["values_block_0"], dtype=np.float64)
        elif group is not None and "block0_values" in group:
            levels: list[list[str]] = []
            while f"block0_items_level{len(levels)}" in group:
                words = words_of(group[f"block0_items_level{len(levels)}"])
                levels.append([words[index] for index in group[f"block0_items_label{len(levels)}"][:]])
            labels = list(zip(*levels, strict=True))
            values = np.asarray(group["block0_values"][:], dtype=np.float64)
        else:
            raise InputError(f"{source}: not a DeepLabCut result; save it as CSV and read that")
    if not labels or len(labels[0]) not in (3, 4):
        raise InputError(f"{source}: wanted column labels (scorer, individual, bodypart, coordinate), got {labels[:1]}")
    return [(label[1] if len(label) == 4 else "animal", label[-2], label[-1]) for label in labels], values
