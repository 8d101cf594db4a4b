"""One frame of a film: a camera's image with surface, markers and skeleton; bones have the colour of their trust."""

from __future__ import annotations

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bytes, Floats, Ints
from calibration.foundation.trust import Trust
from capture.hull.agreement import mesh_silhouette
from vivarig.report.pictures import draw_outline, shaded
from vivarig.results.findings import Findings, SkeletonFindings

__all__ = ["COLOURS", "draw_bones", "draw_frame", "draw_space", "draw_words"]

#: By trust, BGR: white, orange, red.
COLOURS = {Trust.TRUSTED: (255, 255, 255), Trust.DOUBTFUL: (0, 165, 255), Trust.LOST: (60, 60, 235)}
_RIM, _OUTLINE, _MARKER = (40, 40, 40), (60, 200, 60), (230, 200, 40)


def _pixel(place: Floats) -> tuple[int, int]:
    x, y = np.clip(place, -9999, 9999)
    return round(float(x)), round(float(y))


def draw_bones(image: Bytes, pixels: Floats, parents: Ints, trust: Ints) -> None:
    """Draw the bones between joints at ``pixels`` (J, 2); each has the colour of its worse end, ``trust`` (J,)."""
    width = max(1, round(image.shape[1] / 320))
    for joint, parent in enumerate(parents):
        if parent < 0 or not np.isfinite(pixels[[joint, parent]]).all():
            continue
        colour = COLOURS[Trust(int(max(trust[joint], trust[parent])))]
        a, b = _pixel(pixels[joint]), _pixel(pixels[parent])
        cv2.line(image, a, b, _RIM, width + 2, cv2.LINE_AA)
        cv2.line(image, a, b, colour, width, cv2.LINE_AA)
    for seen in np.flatnonzero(np.isfinite(pixels).all(axis=1)):
        cv2.circle(image, _pixel(pixels[seen]), width + 1, COLOURS[Trust(int(trust[seen]))], -1, cv2.LINE_AA)


def draw_frame(image: Bytes, findings: Findings, camera: Camera, frame: int, *, surface: bool) -> Bytes:
    """Return a camera's image of a frame with all that was found there; ``surface``: shaded, not its outline alone."""
    out: Bytes = image.copy() if image.ndim == 3 else np.asarray(cv2.cvtColor(image, cv2.COLOR_GRAY2BGR))
    track = findings.track
    if track is not None and frame < track.frames:
        vertices = track.vertices_at(frame)
        if np.isfinite(vertices).all():
            if surface:
                shaded(out, camera, vertices, track.faces)
            draw_outline(out, mesh_silhouette(camera, vertices, track.faces), _OUTLINE)
        for pixel in camera.project(track.markers[frame]):
            if np.isfinite(pixel).all():
                cv2.circle(out, _pixel(pixel), 1, _MARKER, -1, cv2.LINE_AA)
    skeleton = findings.skeleton
    if skeleton is not None and frame < len(skeleton.positions):
        draw_bones(out, camera.project(skeleton.positions[frame]), skeleton.parents, skeleton.joint_trust[frame])
    return out


def draw_words(image: Bytes, words: str, trust: Trust | None = None) -> None:
    """Write a line at the top left, on a dark ground, large enough for a small screen."""
    size = max(0.4, image.shape[1] / 900)
    (width, height), base = cv2.getTextSize(words, cv2.FONT_HERSHEY_SIMPLEX, size, 1)
    cv2.rectangle(image, (0, 0), (width + 12, height + base + 8), (25, 25, 25), -1)
    colour = (255, 255, 255) if trust is None else COLOURS[trust]
    cv2.putText(image, words, (6, height + 4), cv2.FONT_HERSHEY_SIMPLEX, size, colour, 1, cv2.LINE_AA)


def draw_space(skeleton: SkeletonFindings, frame: int, size: tuple[int, int], extent_mm: float) -> Bytes:
    """Return the skeleton alone, seen obliquely from a place that goes with it, over a floor of squares."""
    width, height = size
    image = np.full((height, width, 3), 34, np.uint8)
    places = skeleton.positions[frame]
    if not np.isfinite(places).all():
        return image
    turn, tilt = np.deg2rad(35.0), np.deg2rad(22.0)
    right = np.array([np.cos(turn), np.sin(turn), 0.0])
    up = np.array([-np.sin(turn) * np.sin(tilt), np.cos(turn) * np.sin(tilt), np.cos(tilt)])
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    scale = 0.8 * min(width, height) / extent_mm

    def seen(points: Floats) -> Floats:
        away = points - middle
        return np.stack([width / 2 + scale * away @ right, height / 2 - scale * away @ up], axis=-1)

    step = 10.0 ** np.floor(np.log10(extent_mm / 2))
    corner = np.floor(middle[:2] / step) * step
    for k in range(-6, 7):
        for line in (
            [[corner[0] + k * step, corner[1] - 6 * step, 0.0], [corner[0] + k * step, corner[1] + 6 * step, 0.0]],
            [[corner[0] - 6 * step, corner[1] + k * step, 0.0], [corner[0] + 6 * step, corner[1] + k * step, 0.0]],
        ):
            a, b = seen(np.array(line))
            cv2.line(image, _pixel(a), _pixel(b), (62, 62, 62), 1, cv2.LINE_AA)
    draw_bones(image, seen(places), skeleton.parents, skeleton.joint_trust[frame])
    return image
