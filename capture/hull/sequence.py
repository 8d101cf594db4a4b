"""Hulls of a whole recording: ``silhouettes.h5`` in, ``hull.h5`` out, streaming, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError
from calibration.foundation.result_files import open_results
from capture.hull.exact import exact_hull
from capture.hull.implicit import implicit_hull
from capture.hull.result import Hull, HullFlag
from capture.hull.store import create_hulls
from capture.recordings.masks import MaskFlag, has_mattes, mask_cameras, masks_in, mattes_in, read_flags

__all__ = ["HullReport", "HullSettings", "reconstruct_hulls", "views_not_flagged"]

_CHUNK = 16


@dataclass(frozen=True)
class HullSettings:
    """How hulls are made.

    Attributes:
        engine: "implicit" or "exact".
        voxel_mm: side of a cell of the implicit engine; None: two pixels at the subject, at most 104 cells a side.
        tolerated: number of views that may be wrong at any point; the implicit engine only.
        wanted_views: fewer complete views flag the frame; None: three quarters of the rig.
        leave_out_flagged: leave out silhouettes that the other views contradict, as long as enough remain.
        least_agreement: a mean IoU below this flags the frame.
    """

    engine: str = "implicit"
    voxel_mm: float | None = None
    tolerated: int = 0
    wanted_views: int | None = None
    leave_out_flagged: bool = True
    least_agreement: float = 0.8


@dataclass(frozen=True, eq=False)
class HullReport:
    """How the hulls of a recording came out.

    Attributes:
        volume: (T,) mm^3; 0 where there is no hull.
        views_used: (T, C).
        agreement: (T, C) IoU; NaN for views that took no part.
        flags: (T,) `HullFlag` codes.
    """

    volume: Floats
    views_used: Bools
    agreement: Floats
    flags: NDArray[np.uint16]


def reconstruct_hulls(
    silhouettes: Path | str,
    rig: Rig,
    path: Path | str,
    options: HullSettings | None = None,
    *,
    rows: range | None = None,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> HullReport:
    """Reconstruct the hull of every frame of a ``silhouettes.h5`` into ``hull.h5``, from its mattes if it has any.

    Args:
        silhouettes: file to read. rig: cameras. path: file to write. options: how.
        rows: only these frames, one after the other; None: all.
        workers: threads; the result does not depend on it.
        on_progress: called with (frames done, frames in all).
    """
    chosen = options or HullSettings()
    if chosen.engine not in ("implicit", "exact"):
        raise InputError(f"hull engine must be implicit or exact, got '{chosen.engine}'")
    if chosen.engine == "exact" and chosen.tolerated:
        raise InputError("hull: the exact engine has no robust mode; take the implicit one")
    names, frames = mask_cameras(silhouettes)
    wanted = range(frames) if rows is None else rows
    count = len(wanted)
    missing = [name for name in names if name not in rig.names]
    if missing:
        raise InputError(f"{silhouettes}: camera '{missing[0]}' is not in the rig, which has {', '.join(rig.names)}")
    if chosen.tolerated > len(names) - 2:
        raise InputError(
            f"hull: --robust {chosen.tolerated} needs at least {chosen.tolerated + 2} cameras, "
            f"the silhouettes have {len(names)}"
        )
    cameras = rig.subset(names)
    codes = read_flags(silhouettes)[wanted.start : wanted.stop]
    report = HullReport(
        np.zeros(count),
        np.zeros((count, len(names)), bool),
        np.full((count, len(names)), np.nan),
        np.zeros(count, np.uint16),
    )
    parameters = {key: getattr(chosen, key) for key in chosen.__dataclass_fields__}
    with (
        open_results(silhouettes, stage="silhouettes") as file,
        create_hulls(path, names, count, parameters) as writer,
        ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool,
    ):
        matte = has_mattes(file)
        for first in range(0, count, _CHUNK):
            stop = min(count, first + _CHUNK)
            here = slice(wanted.start + first, wanted.start + stop)
            masks: list[NDArray[Any]] = [
                mattes_in(file, name, here.start, here.stop) if matte else masks_in(file, name, here) for name in names
            ]

            def make(offset: int, masks: list[NDArray[Any]] = masks, first: int = first) -> Hull:
                return _frame_hull([view[offset] for view in masks], codes[first + offset], cameras, chosen)

            # (One thread alone only hands frames to and fro.)
            hulls = list((map if workers == 1 else pool.map)(make, range(stop - first)))
            writer.write(first, hulls)
            for offset, hull in enumerate(hulls):
                report.volume[first + offset] = hull.volume
                report.views_used[first + offset] = hull.views_used
                report.agreement[first + offset] = hull.agreement
                report.flags[first + offset] = hull.flags
            if on_progress is not None:
                on_progress(stop, count)
    return report


def views_not_flagged(codes: NDArray[np.uint16]) -> Bools:
    """Return (C,) the views of a frame that no other contradicts, by their `MaskFlag` codes; all if few remain."""
    good = (codes & (MaskFlag.CONTRADICTED | MaskFlag.NO_FRAME)) == 0
    seen = (codes & (MaskFlag.EMPTY | MaskFlag.FULL)) == 0
    return np.asarray(good if np.count_nonzero(good & seen) >= 3 else np.ones(len(codes), dtype=bool))


def _frame_hull(masks: list[NDArray[Any]], codes: NDArray[np.uint16], rig: Rig, options: HullSettings) -> Hull:
    views = views_not_flagged(codes) if options.leave_out_flagged else np.ones(len(masks), dtype=bool)
    if options.engine == "exact":
        hull = exact_hull(masks, rig, views=views, wanted_views=options.wanted_views)
    else:
        hull = implicit_hull(
            masks,
            rig,
            None,
            options.voxel_mm,
            views=views,
            tolerated=options.tolerated,
            wanted_views=options.wanted_views,
        )
    flags = HullFlag(hull.flags)
    if not hull.is_empty and np.nanmean(hull.agreement) < options.least_agreement:
        flags |= HullFlag.LOW_AGREEMENT
    if (codes & MaskFlag.SUBJECTS_TOUCH).any():
        flags |= HullFlag.SUBJECTS_TOUCH
    if (codes & MaskFlag.IDENTITY_UNSURE).any():
        flags |= HullFlag.IDENTITY_UNSURE
    return replace(hull, flags=int(flags))
