"""Silhouettes copied from file to file, a few frames at a time; some of them changed on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.recordings.masks import MaskFlag, create_masks, edge_band, edge_values, has_mattes, outlines_in

__all__ = ["Change", "copy_masks"]

_BLOCK = 16
_EMPTY = int(MaskFlag.EMPTY)

#: (camera, row, silhouette (H, W)) -> the silhouette as it shall be, or None where the camera is to be left out.
Change = Callable[[str, int, Bools], Bools | None]


def copy_masks(
    pieces: Sequence[tuple[Path, Span]],
    target: Path,
    parameters: Mapping[str, object],
    change: Change | None = None,
    rows: frozenset[tuple[str, int]] = frozenset(),
    *,
    look: bool = True,
) -> Floats:
    """Copy rows of silhouette files into one; return (T, C) the areas, px.

    Args:
        pieces: files and the rows taken from each, in order.
        target: file to write.
        parameters: of the first file, with these changed.
        change: asked for the silhouettes of ``rows``, (camera, row of the target).
        rows: which are changed.
        look: check each file first; not needed for parts that this run made (`open_results`).
    """
    with open_results(pieces[0][0], stage="silhouettes") as file:
        names = list(words_of(file["names"]))
        sizes = [tuple(int(file[f"cameras/{name}"].attrs[key]) for key in ("width", "height")) for name in names]
        told = {**read_parameters(file), **parameters}
        matte = has_mattes(file)
    count = sum(len(span) for _, span in pieces)
    area = np.zeros((count, len(names)))
    shapes = [(width, height) for width, height in sizes]
    with create_masks(target, names, shapes, count, told, matte=matte) as writer:
        at = 0
        for path, span in pieces:
            with open_results(path, stage="silhouettes", look=look) as file:
                groups = [file[f"cameras/{name}"] for name in names]
                if change is None and all("area" in group for group in groups):
                    for index, (name, group) in enumerate(zip(names, groups, strict=True)):
                        area[at : at + len(span), index] = writer.copy(name, at, group, span)
                    at += len(span)
                    continue
                for first in range(span.first, span.stop, _BLOCK):
                    here = slice(first, min(first + _BLOCK, span.stop))
                    for index, name in enumerate(names):
                        group = file[f"cameras/{name}"]
                        packed, agreement, flags = (group[key][here] for key in ("masks", "agreement", "flags"))
                        edges = edge_values(group, here.start, here.stop) if matte else None
                        for k in range(len(packed)):
                            if change is None or (name, at + k) not in rows:
                                continue
                            mask = np.unpackbits(packed[k], axis=-1, count=sizes[index][0]).view(np.bool_)
                            wanted = change(name, at + k, mask)
                            packed[k] = 0 if wanted is None else np.packbits(wanted, axis=-1)
                            flags[k] = _flags(int(flags[k]), wanted)
                            agreement[k] = np.nan if wanted is None else agreement[k]
                            if edges is not None:
                                edge = np.zeros_like(mask) if wanted is None else wanted
                                edges[k] = edge[edge_band(edge)].astype(np.uint8) * np.uint8(255)
                        writer.write(name, at, packed, agreement, flags, edges)
                        corners = outlines_in(file, name, here.start, here.stop)
                        if corners is not None:
                            writer.write_outlines(name, at, corners)
                        area[at : at + len(packed), index] = np.bitwise_count(packed).sum(axis=(1, 2))
                    at += here.stop - here.start
    return area


def _flags(before: int, mask: Bools | None) -> int:
    """Return the flags of a silhouette that a person changed: nobody contradicts it; a camera left out has no frame."""
    if mask is None:
        return int(MaskFlag.NO_FRAME) | _EMPTY
    kept = before & ~int(MaskFlag.CONTRADICTED | MaskFlag.EMPTY | MaskFlag.FULL)
    return kept | (0 if mask.any() else _EMPTY) | (int(MaskFlag.FULL) if mask.all() else 0)
