"""Films as files: one per camera, and one of all cameras side by side with the skeleton in space."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from calibration.foundation.arrays import Bytes
from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from calibration.foundation.trust import Trust
from capture.recordings.video import read_frames, write_video
from vivarig.films.drawing import draw_frame, draw_space, draw_words
from vivarig.results.findings import Findings

__all__ = ["FilmOptions", "write_films"]

TILE_WIDTH = 480
"""Width of a camera in the film of all, px: four abreast are full HD."""


@dataclass(frozen=True)
class FilmOptions:
    """What is filmed.

    Attributes:
        frames: which; None: all.
        slow: how many times slower than life.
        surface: whether the surface is shaded; else its outline.
        cameras: whether each camera gets a film of its own; else only that of all.
    """

    frames: Span | None = None
    slow: float = 1.0
    surface: bool = False
    cameras: bool = True


def write_films(
    findings: Findings, folder: Path, options: FilmOptions, on_progress: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Write the films into a folder and return their paths; H.264, so that every browser plays them."""
    rig = findings.recording.need_rig()
    light = [f for f in findings.recording.footage if f.kind == "light" and f.has_images]
    if not light:
        raise InputError(f"{findings.recording.folder}: no camera has images to draw on")
    whole = Span(0, findings.frames)
    span = options.frames or whole
    if not (0 <= span.first < span.stop <= whole.stop):
        raise InputError(f"--frames {span.first}:{span.stop}: the results have frames 0 to {whole.stop - 1}")
    folder.mkdir(parents=True, exist_ok=True)
    rate = max(findings.recording.rate_hz / options.slow, 1.0)
    total = len(span) * (len(light) * options.cameras + 1)
    done = 0

    def counted(frames: Iterator[Bytes]) -> Iterator[Bytes]:
        nonlocal done
        for image in frames:
            yield image
            done += 1
            if on_progress is not None:
                on_progress(done, total)

    paths = []
    if options.cameras:
        for footage in light:
            images = _camera_frames(findings, footage.name, span, surface=options.surface)
            paths.append(folder / f"{footage.name}.mp4")
            write_video(paths[-1], counted(_even(image) for image in images), rate, quality=20)
    views = [_camera_frames(findings, f.name, span, surface=options.surface) for f in light]
    tiles = [(rig[f.name].size, view) for f, view in zip(light, views, strict=True)]
    paths.append(folder / "all.mp4")
    write_video(paths[-1], counted(_sheets(findings, tiles, span)), rate, quality=20)
    return paths


def _camera_frames(findings: Findings, name: str, span: Span, *, surface: bool) -> Iterator[Bytes]:
    """Yield a camera's images with what was found in them; black where the camera has none."""
    camera = findings.recording.need_rig()[name]
    footage = next(f for f in findings.recording.footage if f.name == name)
    offset = round(footage.offset_frames)
    blank = np.zeros((camera.size[1], camera.size[0], 3), np.uint8)
    first = span.first + offset
    for frame in range(span.first, min(span.stop, -offset)):
        yield _told(blank.copy(), findings, name, frame)
    count = max(0, min(span.stop, -offset) - span.first)
    for _, image in read_frames(footage.source, max(first, 0), span.stop + offset):
        frame = span.first + count
        yield _told(draw_frame(image, findings, camera, frame, surface=surface), findings, name, frame)
        count += 1
    for frame in range(span.first + count, span.stop):
        yield _told(blank.copy(), findings, name, frame)


def _told(image: Bytes, findings: Findings, name: str, frame: int) -> Bytes:
    """Write camera, frame and trust into an image."""
    trust = None if findings.track is None else Trust(int(findings.track.trust[frame]))
    reason = "" if trust in (None, Trust.TRUSTED) else f"  {_reason(findings, frame)}"
    draw_words(image, f"{name}  frame {findings.first + frame}{reason}", trust)
    return image


def _reason(findings: Findings, frame: int) -> str:
    track = findings.track
    if track is None or not track.reasons:
        return "not trusted"
    word = track.reasons[int(track.reason[frame])]
    return f"{Trust(int(track.trust[frame])).name.lower()}: {word}"


def _even(image: Bytes) -> Bytes:
    """Return an image of even sides, as H.264 wants them."""
    return image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2]


def _sheets(findings: Findings, tiles: list[tuple[tuple[int, int], Iterator[Bytes]]], span: Span) -> Iterator[Bytes]:
    """Yield all cameras side by side, up to four in a row, the skeleton in space last."""
    height = max(round(size[1] * TILE_WIDTH / size[0]) for size, _ in tiles) // 2 * 2
    skeleton = findings.skeleton
    count = len(tiles) + (skeleton is not None)
    columns = min((4, 3), key=lambda wide: -count % wide) if count > 4 else count
    extent = 1.0
    if skeleton is not None:
        reach = np.nanmax(skeleton.positions, axis=1) - np.nanmin(skeleton.positions, axis=1)
        extent = 1.1 * float(np.nanpercentile(np.linalg.norm(reach, axis=1), 90))
    for frame in range(span.first, span.stop):
        row = [_fitted(next(view), height) for _, view in tiles]
        if skeleton is not None:
            row.append(draw_space(skeleton, frame, (TILE_WIDTH, height), extent))
        row += [np.zeros((height, TILE_WIDTH, 3), np.uint8)] * (-len(row) % columns)
        yield np.vstack([np.hstack(row[k : k + columns]) for k in range(0, len(row), columns)])


def _fitted(image: Bytes, height: int) -> Bytes:
    """Return an image as a tile, padded below."""
    small = cv2.resize(
        image, (TILE_WIDTH, round(image.shape[0] * TILE_WIDTH / image.shape[1])), interpolation=cv2.INTER_AREA
    )
    tile = np.zeros((height, TILE_WIDTH, 3), np.uint8)
    rows = min(height, small.shape[0])
    tile[:rows] = small[:rows]
    return tile
