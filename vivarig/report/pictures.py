"""Pictures of the report: what the program saw and what it made of it, drawn over the cameras' own images."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.once import once
from capture.hull.agreement import mesh_silhouette
from capture.hull.result import Hull
from capture.hull.store import read_hull
from capture.recordings.masks import read_masks
from capture.recordings.seen_frames import seen_frames
from vivarig.report.image_reader import ImageReader
from vivarig.results.findings import Findings, SkeletonFindings

__all__ = [
    "contact_sheet",
    "data_uri",
    "draw_outline",
    "expect_images",
    "overlay",
    "shaded",
    "share_images",
    "stick_figure",
]

SILHOUETTE, HULL, TEMPLATE = (80, 200, 80), (200, 160, 60), (60, 160, 255)
REDRAWN, TAKEN_OFF, ADDED = (255, 255, 255), (60, 60, 230), (230, 120, 40)
RIM = (60, 60, 60)
BONES = ((255, 255, 255), (0, 140, 255), (40, 40, 225))
"""Colour of a bone by the trust of its worse end, BGR: white, orange, red."""
TILE_WIDTH = 320
_reader = ImageReader()
_decoded_kept: dict[tuple[Path, int], Bytes | None] = {}
_KEPT = 32
"""Images that are kept: those of one sheet."""
_PAPER = 250
"""Grey level of the page, for what is left of a row."""


def data_uri(image: Bytes, quality: int = 82) -> str:
    """Return an image as a data URI (JPEG), to stand inside the page."""
    _, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return "data:image/jpeg;base64," + base64.b64encode(encoded.tobytes()).decode("ascii")


def _image_at(findings: Findings, camera: str, frame: int) -> Bytes | None:
    """Return the camera's image of a recording frame, in colour; None where it has none."""
    footage = next(f for f in findings.recording.footage if f.name == camera)
    read = _of_film if footage.kind == "xray" else _decoded
    return read(footage.source, frame + round(footage.offset_frames))


@lru_cache(maxsize=8)
def _of_film(source: Path, at: int) -> Bytes | None:
    """Return an image of an X-ray film, which may be TIFF or DICOM of 16 bits; None where it has none."""
    from capture.recordings.image_stacks import open_stack  # half of what a report of light cameras would import

    stack = open_stack(source)
    image = next(stack.read(at, at + 1), None) if 0 <= at < len(stack) else None
    if image is None:
        return None
    if image.dtype != np.uint8:
        image = (255.0 / max(float(image.max()), 1.0) * image).astype(np.uint8)
    return np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))


def share_images(findings: Findings, cameras: Sequence[str], frame: int) -> None:
    """Let groups of sections that show the same frame decode it once, whichever worker makes them."""
    light = {one.name: one for one in findings.recording.footage if one.kind == "light"}
    wanted = [(light[name].source, frame + round(light[name].offset_frames)) for name in cameras if name in light]
    wanted = [one for one in wanted if _lent(*one) is None]
    images = once(f"images of frame {frame}", lambda: [_decoded(*one) for one in wanted])
    _decoded_kept.update(zip(wanted, images, strict=True))


def expect_images(findings: Findings, cameras: Sequence[str], frames: Sequence[int]) -> None:
    """Be told that some frames of some cameras are shown next, in order: each video is read in one pass."""
    for footage in findings.recording.footage:
        if footage.kind == "light" and footage.name in cameras:
            asked = [(footage.source, frame + round(footage.offset_frames)) for frame in frames]
            wanted = [one[1] for one in asked if one not in _decoded_kept and _lent(*one) is None]
            if len(wanted) > 1:
                _reader.expect(footage.source, wanted)


def _lent(source: Path, at: int) -> Bytes | None:
    """Return an image that was kept when the video was decoded before, None where it was not."""
    known = seen_frames(source, [at], gray=False)
    return known[0][1] if known else None


def _decoded(source: Path, at: int) -> Bytes | None:
    """Return an image of a video or a folder, read-only; the same one is drawn over several times."""
    if (source, at) not in _decoded_kept:
        known = _lent(source, at)
        image = _reader.read(source, at) if known is None else known
        if image is not None:
            image = _lit(image if image.ndim == 3 else np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)))
        while len(_decoded_kept) >= _KEPT:
            _decoded_kept.pop(next(iter(_decoded_kept)))
        _decoded_kept[source, at] = image
    return _decoded_kept[source, at]


def _lit(image: Bytes) -> Bytes:
    """Return an image made brighter, up to three times, where nearly all of it is dark (infrared film)."""
    bright = max(float(np.percentile(image[::4, ::4], 98)), 1.0)
    gain = min(200.0 / bright, 3.0)
    return image if gain <= 1.0 else np.asarray(cv2.convertScaleAbs(image, alpha=gain))


def _mask(path: Path, camera: str, frame: int) -> Bools:
    """Return a silhouette, which is asked for twice: to be drawn, and where the subject is."""
    return _masks_kept(path, path.stat().st_mtime_ns, camera, frame)


@lru_cache(maxsize=_KEPT)
def _masks_kept(path: Path, changed_ns: int, camera: str, frame: int) -> Bools:
    return np.asarray(read_masks(path, camera, frame)[0])


@lru_cache(maxsize=1)
def _hull(path: Path, changed_ns: int, frame: int) -> Hull:
    """Return a hull, which all cameras are shown one after the other."""
    return read_hull(path, frame)


def draw_outline(image: Bytes, mask: Bools, colour: tuple[int, int, int], thickness: int = 1) -> None:
    """Draw the outline of a mask (H, W) into an image."""
    contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(image, contours, -1, colour, thickness, cv2.LINE_AA)


def stick_figure(image: Bytes, camera: Camera, skeleton: SkeletonFindings, frame: int, scale: int = 1) -> None:
    """Draw the skeleton of a frame over an image that was enlarged ``scale`` times."""
    # An enlarged pixel's centre lies in the middle of the small ones.
    pixels = scale * camera.project(skeleton.positions[frame]) + (scale - 1) / 2
    trust = skeleton.joint_trust[frame]
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0 and np.isfinite(pixels[[joint, parent]]).all():
            a, b = (tuple(int(n) for n in np.round(np.clip(pixels[k], -9999, 9999))) for k in (joint, parent))
            cv2.line(image, a, b, RIM, scale + 2, cv2.LINE_AA)  # white bones are to be seen on white fur, too
            cv2.line(image, a, b, BONES[max(trust[joint], trust[parent])], scale, cv2.LINE_AA)
    for joint in np.flatnonzero(np.isfinite(pixels).all(1)).tolist():
        x, y = (int(n) for n in np.round(np.clip(pixels[joint], -9999, 9999)))
        cv2.circle(image, (x, y), 2 * scale, RIM, -1, cv2.LINE_AA)
        cv2.circle(image, (x, y), scale, BONES[trust[joint]], -1, cv2.LINE_AA)


def overlay(findings: Findings, camera: str, frame: int, what: Sequence[str]) -> Bytes | None:
    """Return a camera's image with what is asked for drawn over it.

    That is any of silhouette (as cut out), redrawn (what drawing it again changed), hull, template (surface), skeleton.
    """
    image = _image_at(findings, camera, frame)
    rig = findings.recording.rig
    if image is None:
        return None
    image = image.copy()
    if "silhouette" in what and findings.silhouettes is not None and camera in findings.silhouettes.names:
        mask = _mask(findings.silhouettes.path, camera, frame)
        image[mask] = (0.6 * image[mask] + 0.4 * np.array(SILHOUETTE)).astype(np.uint8)
        draw_outline(image, mask, SILHOUETTE)
        if "redrawn" in what and findings.redrawn is not None:
            _changes(image, mask, read_masks(findings.redrawn, camera, frame)[0])
    if rig is None:
        return image
    view = rig[camera]
    if "hull" in what and findings.hull is not None:
        hull = _hull(findings.hull.path, findings.hull.path.stat().st_mtime_ns, frame)
        if not hull.is_empty:
            draw_outline(image, mesh_silhouette(view, hull.vertices, hull.faces), HULL)
    if "template" in what and findings.track is not None and frame < findings.track.frames:
        vertices = findings.track.vertices_at(frame)
        if np.isfinite(vertices).all():
            if "surface" in what:
                shaded(image, view, vertices, findings.track.faces)
            draw_outline(image, mesh_silhouette(view, vertices, findings.track.faces), TEMPLATE)
    if "skeleton" in what and findings.skeleton is not None and frame < len(findings.skeleton.positions):
        stick_figure(image, view, findings.skeleton, frame)
    return image


def _changes(image: Bytes, before: Bools, after: Bools) -> None:
    """Tint what was taken off a silhouette and what was added, and draw its new outline."""
    for changed, colour in ((before & ~after, TAKEN_OFF), (after & ~before, ADDED)):
        image[changed] = (0.4 * image[changed] + 0.6 * np.array(colour)).astype(np.uint8)
    draw_outline(image, after, REDRAWN)


def shaded(image: Bytes, camera: Camera, vertices: Floats, faces: NDArray[np.int32]) -> None:
    """Lay the template over an image, lit from the camera, half transparent; far faces first."""
    pixels = camera.project(vertices)
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    towards = camera.centre - corners.mean(axis=1)
    distance = np.linalg.norm(towards, axis=1)
    cosine = np.einsum("fi,fi->f", normals, towards) / np.maximum(np.linalg.norm(normals, axis=1) * distance, 1e-12)
    seen = np.flatnonzero((cosine > 0) & np.isfinite(pixels[faces]).all(axis=(1, 2)))
    layer = image.copy()
    fine = np.round(np.clip(pixels, -9999, 9999) * 16).astype(np.int32)
    for face in seen[np.argsort(-distance[seen], kind="stable")]:
        colour = tuple(float(c) * (0.25 + 0.75 * cosine[face]) for c in TEMPLATE)
        cv2.fillConvexPoly(layer, fine[faces[face]], colour, cv2.LINE_8, shift=4)
    cv2.addWeighted(layer, 0.65, image, 0.35, 0.0, dst=image)


def _tile(image: Bytes | None, label: str, box: tuple[int, int, int, int] | None = None) -> Bytes:
    if image is None:
        tile = np.full((TILE_WIDTH * 3 // 4, TILE_WIDTH, 3), 40, np.uint8)
        label += " (no image)"
    else:
        if box is not None:
            image = image[box[1] : box[3], box[0] : box[2]]
        height = round(image.shape[0] * TILE_WIDTH / image.shape[1])
        kind = cv2.INTER_AREA if image.shape[1] > TILE_WIDTH else cv2.INTER_CUBIC
        tile = np.asarray(cv2.resize(image, (TILE_WIDTH, height), interpolation=kind))
    cv2.rectangle(tile, (0, 0), (10 + 8 * len(label), 20), (30, 30, 30), -1)
    cv2.putText(tile, label, (5, 15), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (255, 255, 255), 1)
    return tile


def contact_sheet(
    findings: Findings,
    cameras: Sequence[str],
    frames: Sequence[int],
    what: Sequence[str],
    *,
    near: bool = False,
    markers: Ints | None = None,
) -> Bytes:
    """Return labelled tiles of every camera and frame asked, up to four in a row.

    ``near``: cut to the subject, or to some of its ``markers`` (indices) and what is around them.
    """
    if len(frames) > 1 and len(cameras) * len(frames) <= _KEPT:
        expect_images(findings, cameras, frames)
        for camera in cameras:
            for frame in sorted(frames):  # a video is read forwards, once
                _image_at(findings, camera, frame)
    tiles = [
        _tile(
            overlay(findings, camera, frame, what),
            f"{camera}  frame {frame}",
            _crop_box(findings, camera, frame, markers) if near else None,
        )
        for frame in frames
        for camera in cameras
    ]
    height = max(tile.shape[0] for tile in tiles)
    padded = [np.pad(tile, ((0, height - tile.shape[0]), (0, 0), (0, 0)), constant_values=_PAPER) for tile in tiles]
    # a frame's cameras fill whole rows where they can
    columns = min(next((count for count in (4, 3) if len(cameras) % count == 0), 4), len(tiles))
    padded += [np.full_like(padded[0], _PAPER)] * (-len(padded) % columns)
    rows = [np.hstack(padded[i : i + columns]) for i in range(0, len(padded), columns)]
    return np.vstack(rows)


def _crop_box(
    findings: Findings, camera: str, frame: int, markers: Ints | None = None
) -> tuple[int, int, int, int] | None:
    """Return (left, top, right, bottom) px around the subject as tracked and cut out, 4 to 3; None if not seen.

    With ``markers``, around them alone, and as much again on every side.
    """
    corners: list[Floats] = []
    width = height = 0
    if findings.track is not None and findings.recording.rig is not None and frame < findings.track.frames:
        view = findings.recording.rig[camera]
        width, height = view.size
        places = findings.track.markers[frame]
        pixels = view.project(places if markers is None else places[markers])
        inside = np.isfinite(pixels).all(axis=1) & (pixels >= 0).all(axis=1) & (pixels < view.size).all(axis=1)
        if np.count_nonzero(inside) >= 3:
            corners += [pixels[inside].min(axis=0), pixels[inside].max(axis=0)]
    part = markers is not None and bool(corners)
    if not part and findings.silhouettes is not None and camera in findings.silhouettes.names:
        mask = _mask(findings.silhouettes.path, camera, frame)
        height, width = mask.shape
        x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
        if w > 0:
            corners += [np.array([x, y], dtype=float), np.array([x + w, y + h], dtype=float)]
    if not corners:
        return None
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    side = min(
        max(float(high[0] - low[0]), 4 / 3 * float(high[1] - low[1]), 60.0) * (2.2 if part else 1.3),
        width,
        4 / 3 * height,
    )
    left, top = (low + high - [side, 0.75 * side]) / 2
    left = int(np.clip(left, 0, width - side))
    top = int(np.clip(top, 0, height - 0.75 * side))
    return left, top, left + int(side), top + int(0.75 * side)
