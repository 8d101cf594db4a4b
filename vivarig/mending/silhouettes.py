"""Silhouettes and hulls with the edits of a recording: painted, erased, cameras left out."""

from __future__ import annotations

from pathlib import Path

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Ints
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results, read_parameters
from calibration.foundation.spans import Span
from capture.hull.sequence import HullSettings, reconstruct_hulls
from capture.hull.store import create_hulls, read_hull, read_hulls
from capture.recordings.mask_copying import copy_masks
from capture.recordings.masks import mask_cameras
from vivarig.edits.edit_file import Drop, Edits, Stroke
from vivarig.edits.strokes import brushed

__all__ = ["edited_masks", "mend_hulls", "mend_silhouettes"]


def edited_masks(edits: Edits, names: list[str], first: int, frames: int) -> frozenset[tuple[str, int]]:
    """Return (camera, row) of every silhouette that the edits change; rows count from frame ``first``."""
    touched: set[tuple[str, int]] = set()
    changes: list[Stroke | Drop] = [*edits.masks, *edits.drops]
    for one in changes:
        if one.camera not in names:
            raise InputError(f"edits.toml: no camera '{one.camera}' in the silhouettes; {nearest(one.camera, names)}")
        rows = range(max(one.first - first, 0), min(one.last - first + 1, frames))
        touched.update((one.camera, row) for row in rows)
    return frozenset(touched)


def mend_silhouettes(raw: Path, target: Path, edits: Edits, first: int) -> frozenset[tuple[str, int]]:
    """Write the silhouettes of ``raw`` with the edits; return which were changed."""
    names, frames = mask_cameras(raw)
    touched = edited_masks(edits, names, first, frames)

    def change(camera: str, row: int, mask: Bools) -> Bools | None:
        frame = row + first
        if any(one.camera == camera and one.first <= frame <= one.last for one in edits.drops):
            return None
        return brushed(mask, [one for one in edits.masks if one.camera == camera and one.first <= frame <= one.last])

    copy_masks([(raw, Span(0, frames))], target, {"edited": len(touched)}, change, touched)
    return touched


def mend_hulls(raw: Path, target: Path, silhouettes: Path, rig: Rig, rows: Ints) -> None:
    """Write the hulls of ``raw`` with those of some rows made anew from the edited silhouettes."""
    with open_results(raw, stage="hull") as file:
        names, told, count = list(words_of(file["names"])), read_parameters(file), len(file["volume"])
    settings = HullSettings(**{key: told[key] for key in HullSettings.__dataclass_fields__ if key in told})
    anew = set(rows.tolist())
    one_file = target.with_name(f".{target.name}.one")
    try:
        with create_hulls(target, names, count, told) as writer:
            for row, hull in enumerate(read_hulls(raw)):
                if row in anew:
                    reconstruct_hulls(silhouettes, rig, one_file, settings, rows=range(row, row + 1), workers=1)
                writer.write(row, [read_hull(one_file, 0) if row in anew else hull])
    finally:
        one_file.unlink(missing_ok=True)
