"""Hulls of a long recording: each part stays a file of its own in ``hull_parts``, ``hull.h5`` says which frames it has.

An hour's hulls are tens of gigabytes: to copy them into one file would take one worker longer than many take to make
them. ``hull.h5`` then holds, in place of ``vertices`` and ``faces``, ``parts`` (P) names and ``part_first`` (P + 1) the
frame that each begins with.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from calibration.foundation.errors import InputError
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import create_results, open_results, text_array

__all__ = ["FOLDER", "MOST_IN_ONE", "drop_parts", "keep_parts", "part_of"]

FOLDER = "hull_parts"
MOST_IN_ONE = 20_000
"""Frames up to which hulls are put together in one file."""
COLUMNS = ("volume", "views_used", "agreement", "flags")
_NAME = re.compile(r"[\w-]+\.h5")


def keep_parts(target: Path, parts: Sequence[Path], parameters: Mapping[str, Any]) -> None:
    """Keep hull files beside ``target``, in order, and write it as the list of them.

    A file is linked, not copied, where the disk can do that. If this is stopped half-way there is no ``target``.
    """
    folder, coming = target.parent / FOLDER, target.parent / f".{FOLDER}"
    shutil.rmtree(coming, ignore_errors=True)
    coming.mkdir(parents=True)
    columns: dict[str, list[Any]] = {key: [] for key in COLUMNS}
    names: tuple[str, ...] = ()
    for path in parts:
        with open_results(path, stage="hull", look=False) as file:
            names = names or words_of(file["names"])
            for key in COLUMNS:
                columns[key].append(file[key][()])
        _link(path, coming / path.name)
    target.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(coming, folder)
    with create_results(target, stage="hull", parameters=parameters) as file:
        file["names"] = text_array(list(names))
        file["parts"] = text_array([path.name for path in parts])
        file["part_first"] = np.cumsum([0, *(len(one) for one in columns["volume"])], dtype=np.int64)
        for key, values in columns.items():
            file[key] = np.concatenate(values)


def drop_parts(target: Path) -> None:
    """Remove the parts that a ``target`` before this one had."""
    shutil.rmtree(target.parent / FOLDER, ignore_errors=True)


def part_of(file: h5py.File, path: Path, frame: int) -> tuple[Path, int]:
    """Return the file that holds the hull of a frame, and its row there."""
    first = file["part_first"][()]
    index = int(np.searchsorted(first, frame, side="right")) - 1
    name = words_of(file["parts"][index : index + 1])[0]
    # Where edits lie over the results, the list as made lies in a folder of its own.
    places = [place / FOLDER / name for place in (path.parent, path.parent.parent)]
    found = next((place for place in places if place.is_file()), None)
    if not _NAME.fullmatch(name) or found is None:
        raise InputError(f"{path}: its part {FOLDER}/{name} is missing; delete it and run `vivarig hull` again")
    return found, frame - int(first[index])


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a disk that knows no links
        shutil.copyfile(source, target)
