"""``track.h5``, the only module that knows its datasets: T frames, Q quads, V vertices, M markers, J joints, L limbs.

Per frame: ``rotations`` (T, Q, 3, 3), ``centres`` (T, Q, 3), ``latent`` (T, d), ``vertices`` (T, V, 3) float32,
``markers`` (T, M, 3), ``marker_sigma`` (T, M), ``cage_joints`` (T, J, 3), ``overlap`` (T, C), ``agreement``,
``residual``, ``variance``, ``departure``, ``lead`` (over rivals), ``trust`` and ``reason`` (T); of the limbs
``limb_trust`` and ``limb_reason`` (T, L), ``limb_sigma`` (T, L) what doubt adds to the sigma of its points, and what
the verdicts rest on (``limb_bad``, ``limb_residual``, ``limb_lead`` and so on, see `LimbRecord`); where the recording
has 2D points, ``point_status`` (T, C, P) what became of each mark. Once: what `TrackHeader` holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import h5py
import numpy as np
from numpy.typing import NDArray

from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.hdf5_files import mapped_or_read, words_of
from calibration.foundation.result_files import create_results, open_results, read_parameters, text_array
from tracking.limbs.evidence import LimbRecord
from tracking.quads.oriented_quads import QuadPose

__all__ = ["Frames", "TrackFile", "TrackHeader", "TrackRows", "joined_track", "open_track", "save_track"]

Frames: TypeAlias = slice | int | Sequence[int] | Ints
"""Rows of a file, in rising order."""

_ALL = slice(None)
_STAGE = "track"
_NAMES = ("quad_names", "marker_names", "cage_joint_names", "reasons", "limb_names", "limb_joint_names", "point_names")
_TABLES = {"faces": np.int32, "marker_limbs": np.uint8, "cage_joint_limbs": np.uint8, "limb_joints": np.bool_}
_FACTS = ("subject", "body", "rate_hz")
_LEFT_OUT = 1024
"""Untracked frames that are written at a time."""


@dataclass(frozen=True, eq=False)
class TrackHeader:
    """What of a track does not change with the frames.

    Attributes:
        subject, body: names of the subject and of the built-in body behind it.
        rate_hz: frames per second.
        start_frame: frame that tracking began with.
        quad_names, marker_names, cage_joint_names: (Q,), (M,), (J,).
        reasons: words of the reason codes.
        faces: (F, 3) of the template.
        vertices: V.
        limb_names: (L,).
        limb_joint_names, limb_joints: joints (N,) of the skeleton, and (N, L) which limbs they depend on.
        marker_limbs, cage_joint_limbs: (M,), (J,) the limb of each.
        point_names: (P,) marked 2D points of the recording; none where it has none.
    """

    subject: str
    body: str
    rate_hz: float
    start_frame: int
    quad_names: tuple[str, ...]
    marker_names: tuple[str, ...]
    cage_joint_names: tuple[str, ...]
    reasons: tuple[str, ...]
    faces: Ints
    vertices: int
    limb_names: tuple[str, ...]
    limb_joint_names: tuple[str, ...]
    limb_joints: Bools
    marker_limbs: Ints
    cage_joint_limbs: Ints
    point_names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TrackRows:
    """What of a track there is for each frame, but its surface; NaN where a frame was not tracked."""

    rotations: Floats
    centres: Floats
    latent: Floats
    overlap: Floats
    agreement: Floats
    residual: Floats
    variance: Floats
    departure: Floats
    lead: Floats
    trust: Ints
    reason: Ints
    limb_trust: Ints
    limb_reason: Ints
    limb_sigma: Floats
    limbs: LimbRecord
    cage_joints: Floats
    markers: Floats
    marker_sigma: Floats
    point_status: Ints | None = None


class TrackFile:
    """An open ``track.h5``. Files of other makers may hold markers and their names alone."""

    def __init__(self, file: h5py.File) -> None:
        self._file = file

    def __len__(self) -> int:
        """Return the number of frames T."""
        return len(self._file["trust" if "trust" in self._file else "markers"])

    @property
    def parameters(self) -> dict[str, Any]:
        """What the track was made with: subject, scale, shape, ..."""
        return read_parameters(self._file)

    @property
    def subject(self) -> str:
        """Name of the subject."""
        return str(self._file.attrs["subject"])

    @property
    def body(self) -> str:
        """Name of the built-in body behind the subject; empty in files of other makers."""
        return str(self._file.attrs.get("body", ""))

    @property
    def start_frame(self) -> int:
        """The frame that tracking began with."""
        return int(self._file.attrs["start_frame"])

    @property
    def cameras(self) -> int:
        """Number of cameras."""
        return int(self._file["overlap"].shape[1])

    @property
    def has_markers(self) -> bool:
        """Whether there are markers, with their names."""
        return "markers" in self._file and "marker_names" in self._file

    @property
    def quad_names(self) -> tuple[str, ...]:
        """(Q,) names."""
        return words_of(self._file["quad_names"])

    @property
    def marker_names(self) -> tuple[str, ...]:
        """(M,) names."""
        return words_of(self._file["marker_names"])

    @property
    def cage_joint_names(self) -> tuple[str, ...]:
        """(J,) names of the joints that the cage carried; none where there are none."""
        return words_of(self._file["cage_joint_names"]) if "cage_joints" in self._file else ()

    @property
    def limb_names(self) -> tuple[str, ...]:
        """(L,) limbs that were judged one by one; none where none were."""
        return self._words("limb_names")

    @property
    def reasons(self) -> tuple[str, ...]:
        """Words of the reason codes."""
        return self._words("reasons")

    @property
    def faces(self) -> NDArray[np.int32]:
        """(F, 3) of the template."""
        return np.asarray(self._file["faces"][:], np.int32)

    def trust(self, frames: Frames = _ALL) -> Ints:
        """Return `Trust` codes; a file without any is trusted."""
        return self._codes("trust", frames)

    def reason(self, frames: Frames = _ALL) -> Ints:
        """Return `Reason` codes."""
        return self._codes("reason", frames)

    def quads(self, frames: Frames = _ALL) -> QuadPose:
        """Return rotations (n, Q, 3, 3) and centres (n, Q, 3), mm."""
        return QuadPose(self._file["rotations"][frames], self.centres(frames))

    def centres(self, frames: Frames = _ALL) -> Floats:
        """Return the quads' centres (n, Q, 3), mm."""
        return np.asarray(self._file["centres"][frames])

    @property
    def stored_centres(self) -> h5py.Dataset:
        """The same (T, Q, 3), read as it is sliced."""
        return self._file["centres"]

    def latent(self, frames: Frames = _ALL) -> Floats:
        """Return latent points (n, d)."""
        return np.asarray(self._file["latent"][frames])

    def overlap(self, frames: Frames = _ALL) -> Floats | None:
        """Return the overlap (n, C) of template and silhouettes, IoU; None where it was not kept."""
        return self._numbers("overlap", frames)

    def agreement(self, frames: Frames = _ALL) -> Floats:
        """Return the mean overlap (n,)."""
        return np.asarray(self._file["agreement"][frames], np.float64)

    def residual(self, frames: Frames = _ALL) -> Floats:
        """Return the outlines' residual (n,), mm."""
        return np.asarray(self._file["residual"][frames], np.float64)

    def departure(self, frames: Frames = _ALL) -> Floats:
        """Return how far from the prior (n,) each frame is."""
        return np.asarray(self._file["departure"][frames])

    def lead(self, frames: Frames = _ALL) -> Floats:
        """Return by how much what each frame follows (n,) beat its rivals."""
        if "lead" not in self._file:  # earlier versions had one for all frames
            return np.full(len(self), float(self._file.attrs.get("lead", 1.0)))[frames]
        return self._given("lead", frames)

    def vertices(self, frames: Frames) -> Floats:
        """Return the template's vertices (n, V, 3), mm."""
        return np.asarray(self._file["vertices"][frames], np.float64)

    def markers(self, frames: Frames | None = None) -> Floats:
        """Return markers (n, M, 3), mm; all of them without reading them at once."""
        return mapped_or_read(self._file["markers"]) if frames is None else self._given("markers", frames)

    def marker_sigma(self, frames: Frames | None = None) -> Floats | None:
        """Return the markers' sigma (n, M), mm, or None; all of them without reading them at once."""
        name = next((name for name in ("marker_sigma", "sigma") if name in self._file), None)
        if name is None:
            return None
        return mapped_or_read(self._file[name]) if frames is None else self._given(name, frames)

    def cage_joints(self, frames: Frames = _ALL) -> Floats | None:
        """Return the joints (n, J, 3) that the cage carried, mm."""
        return self._numbers("cage_joints", frames)

    def limb_trust(self, frames: Frames = _ALL) -> Ints:
        """Return `Trust` codes (n, L)."""
        return self._codes("limb_trust", frames)

    def limb_reason(self, frames: Frames = _ALL) -> Ints:
        """Return `Reason` codes (n, L)."""
        return self._codes("limb_reason", frames)

    def limb_sigma(self, frames: Frames = _ALL) -> Floats:
        """Return what doubt adds to the sigma of a limb's points (n, L), mm."""
        return self._given("limb_sigma", frames)

    def limb_record(self, frames: Frames = _ALL) -> LimbRecord:
        """Return what the verdicts about the limbs rest on."""
        # Earlier versions did not write some of it: that says nothing for a limb or against it.
        later = ("turned", "shown", "standing", "leap", "feet")
        known = {key: self._given(f"limb_{key}", frames) for key in LimbRecord.NAMES if key not in later}
        for key in later:
            values = self._numbers(f"limb_{key}", frames)
            known[key] = np.full(known["lead"].shape, np.nan) if values is None else values
        return LimbRecord(**known)

    @property
    def marker_limbs(self) -> Ints:
        """(M,) the limb of each marker."""
        return np.asarray(self._file["marker_limbs"][:], np.int64)

    @property
    def cage_joint_limbs(self) -> Ints:
        """(J,) the limb of each carried joint."""
        return np.asarray(self._file["cage_joint_limbs"][:], np.int64)

    @property
    def limb_joints(self) -> tuple[tuple[str, ...], Bools]:
        """Joints (N,) of the skeleton by name, and (N, L) which limbs they depend on."""
        return words_of(self._file["limb_joint_names"]), np.asarray(self._file["limb_joints"][:], bool)

    @property
    def point_names(self) -> tuple[str, ...]:
        """(P,) 2D points of the recording; none where it has none."""
        return self._words("point_names")

    def point_status(self, frames: Frames = _ALL) -> Ints:
        """Return what became of each mark (n, C, P)."""
        return self._codes("point_status", frames)

    def judge(self, trust: Ints, reason: Ints) -> None:
        """Write the verdicts (T,) about the frames; of a file from `joined_track`."""
        self._file["trust"][...], self._file["reason"][...] = trust, reason

    def judge_limbs(self, frames: slice, trust: Ints, reason: Ints) -> None:
        """Write the verdicts (n, L) about the limbs in some frames; of a file from `joined_track`."""
        self._file["limb_trust"][frames], self._file["limb_reason"][frames] = trust, reason

    def _words(self, name: str) -> tuple[str, ...]:
        return words_of(self._file[name]) if name in self._file else ()

    def _codes(self, name: str, frames: Frames) -> Ints:
        if name not in self._file:
            return np.zeros(len(self), np.int64)[frames]
        return np.asarray(self._file[name][frames], np.int64)

    def _numbers(self, name: str, frames: Frames) -> Floats | None:
        return self._given(name, frames) if name in self._file else None

    def _given(self, name: str, frames: Frames) -> Floats:
        return np.asarray(self._file[name][frames], np.float64)


@contextmanager
def open_track(path: Path | str, *, look: bool = True) -> Iterator[TrackFile]:
    """Yield a track for reading, after checking that it is one and unharmed (without ``look``: see `open_results`)."""
    with open_results(path, stage=_STAGE, look=look) as file:
        yield TrackFile(file)


def save_track(
    path: Path,
    header: TrackHeader,
    rows: TrackRows,
    surfaces: Iterable[tuple[int, Floats]],
    parameters: Mapping[str, Any],
) -> None:
    """Write a track; ``surfaces`` gives the vertices (V, 3) of those frames that were tracked."""
    frames, vertices = len(rows.trust), header.vertices
    with create_results(path, stage=_STAGE, parameters=parameters) as file:
        for key in (*_FACTS, "start_frame"):
            file.attrs[key] = getattr(header, key)
        for name in _NAMES:
            if name != "point_names" or header.point_names:
                file[name] = text_array(list(getattr(header, name)))
        for name, kind in _TABLES.items():
            file.create_dataset(name, data=getattr(header, name).astype(kind), track_times=False)
        for name, values in _columns(rows):
            file.create_dataset(name, data=values, track_times=False)
        surface = file.create_dataset(
            "vertices", (frames, vertices, 3), np.float32, chunks=(1, vertices, 3), fillvalue=np.nan, track_times=False
        )
        for frame, one in surfaces:
            surface[frame] = one


def _columns(rows: TrackRows) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the datasets of all frames, in the types in which they are stored."""
    for name in ("rotations", "centres", "latent", "overlap", "agreement", "residual", "variance", "departure", "lead"):
        yield name, getattr(rows, name)
    for name in ("trust", "reason", "limb_trust", "limb_reason"):
        yield name, getattr(rows, name).astype(np.uint8)
    yield "limb_sigma", rows.limb_sigma.astype(np.float32)
    for key, values in rows.limbs.rows().items():
        yield f"limb_{key}", values.astype(np.float32)
    for name in ("cage_joints", "markers", "marker_sigma"):
        yield name, getattr(rows, name)
    if rows.point_status is not None:
        yield "point_status", rows.point_status.astype(np.uint8)


@contextmanager
def joined_track(
    path: Path,
    parts: Sequence[tuple[Path, slice, slice]],
    frames: int,
    *,
    start_frame: int,
    parameters: Mapping[str, Any],
) -> Iterator[TrackFile]:
    """Yield a track of ``frames`` frames that is put together from parts, to be judged; then it takes its place.

    ``parts``: each file, its rows, and where they go, in order. Frames that no part holds stay untracked.
    """
    with (
        open_results(parts[0][0], stage=_STAGE) as example,
        create_results(path, stage=_STAGE, parameters=parameters) as file,
    ):
        for key in _FACTS:
            file.attrs[key] = example.attrs[key]
        file.attrs["start_frame"] = start_frame
        for name in (name for name in (*_NAMES, *_TABLES) if name in example):
            file.create_dataset(name, data=example[name][()], track_times=False)
        rows_of = [name for name in example if name not in file]
        whole = {name: _empty_rows(file, name, frames, example[name]) for name in rows_of}
        at = 0
        for source, rows, place in parts:
            _leave_out(whole, slice(at, place.start))
            # They were looked at when they were made or found done.
            with open_results(source, stage=_STAGE, look=False) as part:
                for name in rows_of:
                    whole[name][place] = part[name][rows]
            at = place.stop
        _leave_out(whole, slice(at, frames))
        yield TrackFile(file)


def _empty_rows(file: h5py.File, name: str, frames: int, like: h5py.Dataset) -> h5py.Dataset:
    """Return a dataset of so many frames that lies in its file in one run, with nothing written yet."""
    fill = np.nan if np.issubdtype(like.dtype, np.floating) else 0
    shape = (frames, *like.shape[1:])
    return file.create_dataset(name, shape, like.dtype, fillvalue=fill, fill_time="never", track_times=False)


def _leave_out(whole: Mapping[str, h5py.Dataset], rows: slice) -> None:
    """Write that some frames were not tracked, a few at a time."""
    for data in whole.values():
        for first in range(rows.start, rows.stop, _LEFT_OUT):
            data[first : min(first + _LEFT_OUT, rows.stop)] = data.fillvalue
