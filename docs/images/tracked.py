"""Draw the picture of the README: a tracked recording's surface, virtual markers and skeleton over its own images.

python docs/images/tracked.py demo/mouse docs/images/tracked_mouse.jpg --frames 20 62 --cameras cam02 cam04 cam07
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from calibration.cameras import Camera
from capture.raycasting import SurfaceScene
from capture.recording import load_recording
from vivarig.report.findings import Findings, load_findings
from vivarig.report.pictures import overlay

TILE = (480, 320)
SKIN = np.array([205.0, 175.0, 120.0])  # BGR


def shade(image: np.ndarray, camera: Camera, vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return the image with the surface over it, lit from the camera."""
    width, height = camera.size
    columns, rows = np.meshgrid(np.arange(width, dtype=float), np.arange(height, dtype=float))
    origins, directions = camera.rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    hits = SurfaceScene([(vertices, faces)]).first_hits(np.broadcast_to(origins, directions.shape), directions)
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    smooth = np.zeros_like(vertices)
    for corner in range(3):
        np.add.at(smooth, faces[:, corner], normals)
    smooth /= np.linalg.norm(smooth, axis=1, keepdims=True)
    found = hits.found
    weights = np.column_stack([1.0 - hits.barycentric.sum(1), hits.barycentric])[found]
    normal = np.einsum("nc,ncd->nd", weights, smooth[faces[hits.triangle[found]]])
    toward = -directions[found] / np.linalg.norm(directions[found], axis=1, keepdims=True)
    light = np.abs(np.einsum("nd,nd->n", normal, toward))[:, None]
    shaded = image.reshape(-1, 3).astype(float)
    shaded[found] = 0.25 * shaded[found] + 0.75 * np.minimum(SKIN * (0.25 + 0.85 * light), 255.0)
    return shaded.reshape(image.shape).astype(np.uint8)


def widened(box: tuple[int, int, int, int], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return a box around the same centre with the tile's proportions, moved to lie within the image."""
    width, height = box[2] - box[0], box[3] - box[1]
    scale = min(max(width / TILE[0], height / TILE[1]), size[0] / TILE[0], size[1] / TILE[1])
    width, height = int(scale * TILE[0]), int(scale * TILE[1])
    left = min(max((box[0] + box[2] - width) // 2, 0), size[0] - width)
    top = min(max((box[1] + box[3] - height) // 2, 0), size[1] - height)
    return left, top, left + width, top + height


def tile(findings: Findings, name: str, frame: int) -> np.ndarray:
    """Return one camera's image of one frame with what was tracked, cropped to the subject."""
    rig, track, skeleton = findings.recording.rig, findings.track, findings.skeleton
    assert rig is not None and track is not None and skeleton is not None
    camera, vertices = rig[name], track.vertices_at(frame)
    image = overlay(findings, name, frame, ())
    assert image is not None
    large = cv2.resize(shade(image, camera, vertices, track.faces), None, fx=3, fy=3, interpolation=cv2.INTER_CUBIC)
    joints = 3.0 * camera.project(skeleton.positions[frame]) + 1.0
    for joint, parent in enumerate(skeleton.parents):
        if parent >= 0:
            ends = [tuple(int(v) for v in np.round(joints[k])) for k in (joint, parent)]
            cv2.line(large, ends[0], ends[1], (255, 255, 255), 3, cv2.LINE_AA)
    for pixel in joints:
        cv2.circle(large, tuple(int(v) for v in np.round(pixel)), 6, (60, 60, 220), -1, cv2.LINE_AA)
    for pixel in 3.0 * camera.project(track.markers[frame]) + 1.0:
        cv2.circle(large, tuple(int(v) for v in np.round(pixel)), 4, (90, 220, 250), -1, cv2.LINE_AA)
    pixels = camera.project(vertices)
    low, high = pixels.min(0) - 12, pixels.max(0) + 12
    left, top, right, bottom = widened((int(low[0]), int(low[1]), int(high[0]), int(high[1])), camera.size)
    return np.asarray(cv2.resize(large[3 * top : 3 * bottom, 3 * left : 3 * right], TILE, interpolation=cv2.INTER_AREA))


def main() -> None:
    """Read the arguments and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--frames", type=int, nargs="+", required=True)
    parser.add_argument("--cameras", nargs="+", required=True)
    given = parser.parse_args()
    findings = load_findings(load_recording(given.recording))
    rows = [np.hstack([tile(findings, name, frame) for name in given.cameras]) for frame in given.frames]
    cv2.imwrite(str(given.picture), np.vstack(rows), [cv2.IMWRITE_JPEG_QUALITY, 85])


if __name__ == "__main__":
    main()
