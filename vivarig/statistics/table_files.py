"""Tables written a block of rows at a time, as CSV or Parquet, and read again by column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import measured
from calibration.foundation.damaged_files import guarded, require_file
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import written_by_library
from skeleton.motion_files.optional import optional_package

__all__ = ["TABLE_SUFFIXES", "Columns", "TableWriter", "create_table", "read_table"]

TABLE_SUFFIXES = (".csv", ".parquet")

#: Column name to its values (n,): text, whole numbers, or numbers with NaN where not known.
Columns = Mapping[str, NDArray[Any]]


class TableWriter(Protocol):
    """Takes rows."""

    def write(self, columns: Columns) -> None:
        """Append rows; every call has the same columns."""


class _CsvWriter:
    def __init__(self, stream: Any) -> None:
        self._rows = csv.writer(stream, lineterminator="\n")
        self._names: list[str] = []

    def write(self, columns: Columns) -> None:
        if not self._names:
            self._names = list(columns)
            self._rows.writerow(self._names)
        cells = [_words(columns[name]) for name in self._names]
        self._rows.writerows(zip(*cells, strict=True))


def _words(values: NDArray[Any]) -> list[str]:
    if values.dtype.kind != "f":
        return [str(value) for value in values.tolist()]
    return ["" if np.isnan(value) else f"{value:.6g}" for value in values.tolist()]


class _ParquetWriter:
    def __init__(self, path: Path) -> None:
        self._arrow = optional_package("pyarrow", "Parquet", extra="parquet")
        self._parquet = optional_package("pyarrow.parquet", "Parquet", extra="parquet")
        self._path = path
        self._open: Any = None

    def write(self, columns: Columns) -> None:
        arrays = {
            name: self._arrow.array(values.tolist() if values.dtype.kind in "UO" else values, from_pandas=True)
            for name, values in columns.items()
        }
        table = self._arrow.table(arrays)
        if self._open is None:
            self._open = self._parquet.ParquetWriter(str(self._path), table.schema)
        self._open.write_table(table)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()


@contextmanager
def create_table(path: Path) -> Iterator[TableWriter]:
    """Yield a writer of a table that appears under its name once it is whole."""
    suffix = path.suffix.lower()
    if suffix not in TABLE_SUFFIXES:
        raise InputError(f"{path}: a table is {' or '.join(TABLE_SUFFIXES)}, by the file's suffix; got '{suffix}'")
    with written_by_library(path) as temporary:
        if suffix == ".csv":
            with open(temporary, "w", newline="", encoding="utf-8") as stream:
                yield _CsvWriter(stream)
            return
        writer = _ParquetWriter(temporary)
        try:
            yield writer
        finally:
            writer.close()


@guarded("a table")
def read_table(path: Path, wanted: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """Read some columns of a table: numbers where all cells are numbers or empty (NaN), else text."""
    require_file(path, most_mb=4000)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        parquet = optional_package("pyarrow.parquet", "Parquet", extra="parquet")
        there = parquet.read_schema(str(path)).names
        _check_columns(path, there, wanted)
        table = parquet.read_table(str(path), columns=list(wanted))
        return {name: _typed([_text(value) for value in table[name].to_pylist()], f"{path}: {name}") for name in wanted}
    if suffix != ".csv":
        raise InputError(f"{path}: a table is {' or '.join(TABLE_SUFFIXES)}, by the file's suffix; got '{suffix}'")
    with open(path, newline="", encoding="utf-8", errors="replace") as stream:
        rows = csv.reader(stream)
        names = next(rows, [])
        _check_columns(path, names, wanted)
        places = [names.index(name) for name in wanted]
        cells: list[list[str]] = [[] for _ in wanted]
        for number, row in enumerate(rows, 2):
            if len(row) != len(names):
                raise InputError(f"{path}:{number}: {len(row)} cells where the title line has {len(names)}")
            for column, place in zip(cells, places, strict=True):
                column.append(row[place])
    return {name: _typed(column, f"{path}: {name}") for name, column in zip(wanted, cells, strict=True)}


def _check_columns(path: Path, there: list[str], wanted: tuple[str, ...]) -> None:
    for name in wanted:
        if name not in there:
            raise InputError(f"{path}: no column '{name}'; {nearest(name, there)}")


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _typed(cells: list[str], what: str) -> NDArray[Any]:
    try:
        numbers = np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells, dtype=object)
    return measured(numbers, what)
