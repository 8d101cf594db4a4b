"""Silhouettes of a part drawn again, kept beside its track, and put together for the whole recording."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from capture.recordings.masks import LikeliestMasks, MaskFlag, create_masks
from capture.recordings.recording import Footage
from tracking.adapting.scale_search import Found
from tracking.fitting.solver import FrameFit
from vivarig.jobs.footage_images import images_at, images_of
from vivarig.jobs.job import Job, PartMasks
from vivarig.redrawing.learning import Masks, Redrawing

__all__ = ["FILE", "draw_part", "found_again", "join_parts", "part_masks", "redrawn_file", "written_masks"]

FILE = "redrawn.h5"


def redrawn_file(job: Job, span: Span) -> Path:
    """Return where a part's silhouettes are kept that were drawn again; also those of the frames beyond its ends."""
    return job.beside("track", "track", span, "redrawn")


def found_again(
    redrawing: Redrawing, footage: Sequence[Footage], masks: Masks, rig: Rig, found: Sequence[Found]
) -> Masks:
    """Return the silhouettes, drawn again, of frames where the subject is known."""
    names = tuple(rig.names)
    frames = [one.frame for one in found]
    images = zip(*(images_at(camera, frames) for camera in footage), strict=True)
    drawn = {
        one.frame: redrawing.views(one.frame, seen, masks(names, one.frame), one)
        for one, seen in zip(found, images, strict=True)
    }
    return lambda asked, frame: [drawn[frame][names.index(name)] for name in asked]


def draw_part(
    path: Path,
    redrawing: Redrawing,
    footage: Sequence[Footage],
    masks: Masks,
    rig: Rig,
    fits: Sequence[FrameFit | None],
    at: Span,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Draw the silhouettes of the frames ``at`` again by their fits; those that have none stay as they are."""
    names = tuple(rig.names)
    streams = zip(*(images_of(one, range(at.first, at.stop)) for one in footage), strict=True)
    with written_masks(path, rig, at) as write:
        for row, images in enumerate(streams):
            seen = masks(names, at.first + row)
            fit = fits[row]
            if fit is not None:
                here = Found(at.first + row, fit.pose, fit.latent, np.nan)
                seen = redrawing.views(here.frame, images, seen, here)
            write(row, seen)
            on_progress(row + 1, len(at))


@contextlib.contextmanager
def written_masks(path: Path, rig: Rig, at: Span) -> Iterator[Callable[[int, Sequence[Bools]], None]]:
    """Yield a function that writes one row of the silhouettes of the frames ``at``; the file is there at the end."""
    names, sizes = tuple(rig.names), [camera.size for camera in rig.cameras]
    with create_masks(path, names, sizes, len(at), {"start": at.first}) as writer:

        def write(row: int, masks: Sequence[Bools]) -> None:
            for name, mask in zip(names, masks, strict=True):
                flag = np.array([0 if mask.any() else int(MaskFlag.EMPTY)], np.uint16)
                writer.write(name, row, np.packbits(mask, axis=-1)[None], np.full(1, np.nan, np.float32), flag)

        yield write


@contextlib.contextmanager
def part_masks(job: Job, span: Span, wide: Span) -> Iterator[Masks]:
    """Yield a part's silhouettes by the recording's frames: drawn again where they were, else as cut out."""
    path = redrawn_file(job, span)
    if not path.is_file():
        with PartMasks(job) as masks:
            yield masks
        return
    with open_results(path, stage="silhouettes") as file:
        kept = LikeliestMasks(file)
        yield lambda names, frame: [kept(name, frame - wide.first) for name in names]


def join_parts(job: Job, rig: Rig, spans: Sequence[tuple[Span, Span]], start: int) -> Floats | None:
    """Write the silhouettes drawn again of the whole recording; None, and no file, where there are none.

    Args:
        job: whose.
        rig: cameras.
        spans: each part's own frames, and those with what lies beyond its ends.
        start: frame of the footage that the recording's first is.

    Returns:
        (C, 2) pixels added and taken off, share of those before.
    """
    target = job.recording.results / FILE
    if not any(redrawn_file(job, span).is_file() for span, _ in spans):
        target.unlink(missing_ok=True)  # of a run before
        return None
    names, counts = tuple(rig.names), np.zeros((len(rig), 3))
    sizes = [camera.size for camera in rig.cameras]
    with (
        PartMasks(job) as before,
        create_masks(target, names, sizes, len(job.whole), {"start": start, "redrawn": True}) as writer,
    ):
        for span, wide in spans:
            with part_masks(job, span, wide) as after:
                for frame in range(span.first, span.stop):
                    pairs = zip(names, before(names, frame), after(names, frame), strict=True)
                    for camera, (name, old, new) in enumerate(pairs):
                        counts[camera] += _changed(old, new)
                        flag = np.array([0 if new.any() else int(MaskFlag.EMPTY)], np.uint16)
                        packed = np.packbits(new, axis=-1)[None]
                        writer.write(name, frame, packed, np.full(1, np.nan, np.float32), flag)
    return np.asarray(counts[:, 1:] / np.maximum(counts[:, :1], 1.0))


def _changed(old: Bools, new: Bools) -> tuple[int, int, int]:
    return int(old.sum()), int((new & ~old).sum()), int((old & ~new).sum())
