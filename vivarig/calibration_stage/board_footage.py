"""Board footage of a session to detections: opens the videos, checks that they fit together, keeps a cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibration.boards.board import Board, board_toml
from calibration.boards.detection import BoardView, CameraDetections, detect_boards
from calibration.boards.diagnosis import explain_missing
from calibration.boards.session import BoardFootage, Session
from calibration.foundation.damaged_files import DAMAGE
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from capture.recordings.video import VideoInfo, probe, read_frames, read_image
from vivarig.console.progress import progress_callback

__all__ = ["detect_session", "frames_of"]

CACHE_VERSION = 1
LENGTH_SLACK = 2  # frame counts of containers are often off by one or two


def frames_of(footage: BoardFootage, step: int = 1) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (frame number, image) of one camera's footage."""
    if footage.video is not None:
        yield from read_frames(footage.video, step=step, gray=True)
        return
    for number, path in footage.images[::step]:
        yield number, read_image(path)


def check_footage(footage: Sequence[BoardFootage], *, trim: bool) -> dict[str, VideoInfo]:
    """Probe every camera's footage; videos of different rates or lengths are refused unless ``trim``."""
    info = {f.name: probe(f.video if f.video is not None else f.images[0][1].parent) for f in footage}
    videos = {f.name: info[f.name] for f in footage if f.video is not None}
    if len(videos) < 2 or trim:
        return info
    rates = {name: v.rate_hz for name, v in videos.items() if v.rate_hz}
    if rates and max(rates.values()) > 1.002 * min(rates.values()):
        said = ", ".join(f"{name} {rate:g} Hz" for name, rate in rates.items())
        raise InputError(f"videos of different frame rates ({said}): frame numbers do not match; re-encode to one rate")
    lengths = {name: v.frames for name, v in videos.items()}
    if max(lengths.values()) - min(lengths.values()) > LENGTH_SLACK:
        said = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(
            f"videos of different lengths ({said} frames): if they start together, say --trim; if not, find the "
            "offsets with `vivarig sync`"
        )
    return info


def detect_session(
    session: Session, output: Path, *, workers: int, step: int, trim: bool
) -> tuple[tuple[Board, ...], list[CameraDetections], list[str]]:
    """Detect the session's boards in all footage. Return the boards as found, the detections, and notes.

    A board that is never found is explained (`calibration.boards.diagnosis`): harmless differences of the description
    are corrected and noted, others are an error.
    """
    info = check_footage(session.footage, trim=trim)
    shortest = min(v.frames for v in info.values()) if trim else None
    boards, notes = session.boards, []
    found = _detect_all(session.footage, boards, output, info, workers, step, shortest)
    if not any(d.views for d in found):
        pictures = [image for f in session.footage for image in _sample(f, info[f.name].frames)]
        corrected = []
        for board in boards:
            finding = explain_missing(pictures, board)
            if finding.board is None or not finding.harmless:
                raise InputError(f"no board in any camera: {finding.sentence} ({session.board_file})")
            notes.append(f"{finding.sentence} in {session.board_file.name}; corrected for this run")
            corrected.append(finding.board)
        boards = tuple(corrected)
        found = _detect_all(session.footage, boards, output, info, workers, step, shortest)
    blind = [d.name for d in found if not d.views]
    if len(blind) == len(found):
        raise InputError(f"no board in any of {len(found)} cameras; is {session.board_file} the board that was shown?")
    return boards, found, notes


def _sample(footage: BoardFootage, frames: int, count: int = 6) -> list[np.ndarray]:
    every = max(1, frames // count)
    return [image for _, image in frames_of(footage, step=every)][:count]


def _detect_all(
    footage: Sequence[BoardFootage],
    boards: tuple[Board, ...],
    output: Path,
    info: dict[str, VideoInfo],
    workers: int,
    step: int,
    stop: int | None,
) -> list[CameraDetections]:
    out = []
    total = sum(len(range(0, info[f.name].frames, step)) for f in footage)
    done = 0
    with progress_callback("looking for the board") as show:
        for f in footage:
            key = _fingerprint(f, boards, step, stop)
            cache = output / "detections" / f"{f.name}.npz"
            cached = _load(cache, key)
            if cached is None:
                base = done

                def tell(count: int, base: int = base) -> None:
                    show(base + count, total)

                frames = frames_of(f, step)
                if stop is not None:
                    frames = (entry for entry in frames if entry[0] < stop)
                cached = detect_boards(frames, boards, name=f.name, workers=workers, on_progress=tell)
                _save(cache, key, cached)
            done += len(cached.frame)
            show(done, total)
            out.append(cached)
    return out


def _fingerprint(footage: BoardFootage, boards: tuple[Board, ...], step: int, stop: int | None) -> str:
    """Return what a cached detection depends on: the files (size and time), the boards, the sampling."""
    files = [footage.video] if footage.video is not None else [path for _, path in footage.images]
    stats = [(f.name, f.stat().st_size, f.stat().st_mtime_ns) for f in files if f is not None]
    text = json.dumps([CACHE_VERSION, stats, board_toml(boards), step, stop])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _save(path: Path, key: str, detections: CameraDetections) -> None:
    views = detections.views
    arrays: dict[str, Any] = {
        "key": np.array(key),
        "size": np.array(detections.size),
        "frame": detections.frame,
        "fresh": detections.fresh,
        "view_frame": np.array([f for f, _ in views], np.int64),
        "view_board": np.array([v.board for _, v in views], np.int64),
        "view_edge": np.array([v.edge_px for _, v in views]),
        "count": np.array([len(v.corner) for _, v in views], np.int64),
        "corner": np.concatenate([np.empty(0, np.int64), *(v.corner for _, v in views)]),
        "pixels": np.concatenate([np.empty((0, 2)), *(v.pixels for _, v in views)]),
    }
    with atomic_path(path) as temporary:
        np.savez(temporary, **arrays)


def _load(path: Path, key: str) -> CameraDetections | None:
    if not path.is_file():
        return None
    try:
        data = read_npz(path, "found corners")
        if str(data["key"]) != key:
            return None
        ends = np.cumsum(data["count"])[:-1]
        corner, pixels = np.split(data["corner"], ends), np.split(data["pixels"], ends)
        views = tuple(
            (int(f), BoardView(int(b), c, p, float(e)))
            for f, b, e, c, p in zip(
                data["view_frame"], data["view_board"], data["view_edge"], corner, pixels, strict=True
            )
        )
        size = (int(data["size"][0]), int(data["size"][1]))
        return CameraDetections(path.stem, size, data["frame"], data["fresh"], views)
    except DAMAGE:  # of which our own errors about damaged files are one
        return None  # a damaged cache is made again
