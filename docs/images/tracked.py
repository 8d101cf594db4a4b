"""Draw the picture of the README: a tracked recording's surface, virtual markers and skeleton over its own images.

python docs/images/tracked.py demo/mouse docs/images/tracked_mouse.jpg --frames 20 --cameras cam02 cam04 cam07
python docs/images/tracked.py demo/mouse docs/images/film_strip.jpg --strip --frames 2 7 12 60 84 98 \\
    --cameras cam04 cam07
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np

from capture.recordings.recording import load_recording
from vivarig.report.pictures import overlay, shaded, stick_figure
from vivarig.results.findings import Findings, load_findings

TILE = (480, 320)
ENLARGED = 3


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
    shaded(image, camera, vertices, track.faces)
    large = np.asarray(cv2.resize(image, None, fx=ENLARGED, fy=ENLARGED, interpolation=cv2.INTER_CUBIC))
    stick_figure(large, camera, skeleton, frame, ENLARGED)
    for pixel in ENLARGED * camera.project(track.markers[frame]) + (ENLARGED - 1) / 2:
        cv2.circle(large, tuple(int(v) for v in np.round(pixel)), 4, (90, 220, 250), -1, cv2.LINE_AA)
    pixels = camera.project(vertices)
    low, high = pixels.min(0) - 12, pixels.max(0) + 12
    left, top, right, bottom = widened((int(low[0]), int(low[1]), int(high[0]), int(high[1])), camera.size)
    part = large[ENLARGED * top : ENLARGED * bottom, ENLARGED * left : ENLARGED * right]
    return np.asarray(cv2.resize(part, TILE, interpolation=cv2.INTER_AREA))


def main() -> None:
    """Read the arguments and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--frames", type=int, nargs="+", required=True)
    parser.add_argument("--cameras", nargs="+", required=True)
    parser.add_argument("--strip", action="store_true", help="frames across, cameras down, at half the size")
    given = parser.parse_args()
    findings = load_findings(load_recording(given.recording))
    tiles = [[tile(findings, name, frame) for name in given.cameras] for frame in given.frames]
    if given.strip:
        tiles = [[cv2.resize(one, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for one in row] for row in tiles]
        tiles = [list(row) for row in zip(*tiles, strict=True)]
    cv2.imwrite(str(given.picture), np.vstack([np.hstack(row) for row in tiles]), [cv2.IMWRITE_JPEG_QUALITY, 85])


if __name__ == "__main__":
    main()
