"""Several subjects on disk: each becomes a recording of its own, ``results/subject_1``, ``results/subject_2``, ...

Such a folder has a ``recording.toml`` that names the same videos, and ``masks.h5``: the silhouettes of this subject
alone as masks that are brought (a file like ``silhouettes.h5`` whose rows are the frames). Every stage runs on it as
on any other recording.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.rig import Rig, save_rig
from calibration.foundation.arrays import Bools, Bytes
from calibration.foundation.result_files import open_results, read_parameters
from capture.hull.sequence import views_not_flagged
from capture.recordings.masks import MaskFlag, create_masks, mask_cameras, masks_in, read_flags
from capture.recordings.recording import Recording, load_recording, save_recording
from capture.silhouettes.subjects.identities import Identities, Named
from capture.silhouettes.subjects.solids import Solid, solids_of

__all__ = ["SplitReport", "drop_subjects", "split_subjects", "subject_folder", "subject_recordings"]

_CHUNK = 16


@dataclass(frozen=True, eq=False)
class SplitReport:
    """How the subjects were told apart, T frames, n subjects.

    Attributes:
        found: (T, n) whether a subject was seen.
        touching: (T, n) whether it was in one solid with another.
        unsure: (T, n) whether it may be another one from that frame on.
    """

    found: Bools
    touching: Bools
    unsure: Bools


def subject_folder(recording: Recording, number: int) -> Path:
    """Return the recording folder of one subject, counted from 1."""
    return recording.results / f"subject_{number}"


def drop_subjects(recording: Recording) -> None:
    """Delete the subjects' folders of an earlier run."""
    for folder in recording.results.glob("subject_*"):
        if folder.is_dir():
            shutil.rmtree(folder)


def subject_recordings(recording: Recording) -> list[Recording]:
    """Return the recordings of the subjects that ``silhouettes.h5`` was split into; none if it shows one subject."""
    with open_results(recording.results / "silhouettes.h5", stage="silhouettes") as file:
        count = int(read_parameters(file).get("subjects", 1))
    return [load_recording(subject_folder(recording, number)) for number in range(1, count + 1)] if count > 1 else []


def split_subjects(
    recording: Recording,
    count: int,
    *,
    workers: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SplitReport:
    """Split ``silhouettes.h5`` of a recording into the recordings of ``count`` subjects.

    Solids of the frames are found on all cores, a few frames at a time, and named in order.
    """
    source = recording.results / "silhouettes.h5"
    names, frames = mask_cameras(source)
    rig = recording.need_rig().subset(names)
    codes = read_flags(source)
    with open_results(source, stage="silhouettes") as file:
        start = int(read_parameters(file).get("start", 0))
    report = SplitReport(*(np.zeros((frames, count), dtype=bool) for _ in range(3)))
    identities = Identities(count)
    with ExitStack() as stack:
        file = stack.enter_context(open_results(source, stage="silhouettes"))
        pool = stack.enter_context(ThreadPoolExecutor(workers or os.cpu_count() or 1))
        writers = []
        for number in range(1, count + 1):
            place = subject_folder(recording, number)
            _describe(recording, place, names, start, number)
            sizes = [camera.size for camera in rig]
            parameters = {"subject": number, "subjects": count}
            writers.append(stack.enter_context(create_masks(place / "masks.h5", names, sizes, frames, parameters)))
        for first in range(0, frames, _CHUNK):
            stop = min(frames, first + _CHUNK)
            masks = [masks_in(file, name, slice(first, stop)) for name in names]

            def solids(offset: int, masks: list[Bools] = masks, first: int = first) -> list[Solid]:
                views = views_not_flagged(codes[first + offset])
                return solids_of([view[offset] for view in masks], rig, count, views=views)

            found = list(pool.map(solids, range(stop - first)))
            named = [identities.name(frame) for frame in found]
            here = slice(first, stop)
            report.found[here] = [one.solid >= 0 for one in named]
            report.touching[here] = [one.touching for one in named]
            report.unsure[here] = [one.unsure for one in named]
            for subject, writer in enumerate(writers):
                flags = _flags(named, subject)
                for index, camera in enumerate(rig):
                    packed = _packed(found, named, subject, index, camera.size)
                    writer.write(names[index], first, packed, np.full(len(named), np.nan, np.float32), flags)
            if on_progress is not None:
                on_progress(stop, frames)
    return report


def _flags(named: Sequence[Named], subject: int) -> NDArray[np.uint16]:
    touching = np.array([one.touching[subject] for one in named])
    unsure = np.array([one.unsure[subject] for one in named])
    return (touching * np.uint16(MaskFlag.SUBJECTS_TOUCH) | unsure * np.uint16(MaskFlag.IDENTITY_UNSURE)).astype(
        np.uint16
    )


def _packed(
    found: Sequence[list[Solid]], named: Sequence[Named], subject: int, camera: int, size: tuple[int, int]
) -> Bytes:
    """Return (n, H, ceil(W / 8)) the packed silhouettes of a subject in a camera, empty where it was not found."""
    width, height = size
    packed = np.zeros((len(named), height, -(-width // 8)), dtype=np.uint8)
    for row, (solids, one) in enumerate(zip(found, named, strict=True)):
        which = int(one.solid[subject])
        if which >= 0:
            packed[row] = np.packbits(solids[which].masks[camera], axis=-1)
    return packed


def _describe(recording: Recording, place: Path, names: Sequence[str], start: int, number: int) -> None:
    """Write ``recording.toml`` and ``rig.toml`` of a subject."""
    place.mkdir(parents=True, exist_ok=True)
    rig: Rig = recording.need_rig().subset(list(names))
    footage = tuple(
        replace(one, masks=place / "masks.h5", offset_frames=one.offset_frames + start)
        for one in recording.footage
        if one.name in names
    )
    subject = recording.subject
    if subject is not None and (recording.folder / subject).is_dir():
        subject = os.path.relpath(recording.folder / subject, place)
    save_rig(rig, place / "rig.toml")
    save_recording(
        Recording(place, f"{recording.name}_{number}", recording.rate_hz, subject, rig, footage),
        within=recording.folder,
    )
