"""Which of two calibrations of the Utrecht room is right? Evidence that neither of them was fitted to.

    python -m benchmarks.room_calibrations OURS.toml      # from `vivarig calibrate`, see docs/measured/calibration.md

Ours, from the board on the floor, and the derived one that lies beside the data differ by 76 and 37 mm in the
centres of cam1 and cam4. Three measurements on other footage than the board's:

* epipolar tangency: the plane through two camera centres that touches the top of the subject's silhouette in one
  image must touch it in the other; the gap in px, median over frames;
* hull agreement: share (IoU) of each silhouette that the visual hull of all four covers;
* floor: the pictures of the empty floor, laid out on the floor plane by two cameras, correlated as they lie.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np

from calibration.cameras.camera import Camera, LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, load_rig
from calibration.foundation.arrays import Bools, Floats
from calibration.geometry.transforms import RigidTransform
from capture.backgrounds.background import load_background
from capture.hull import implicit_hull
from capture.recordings.video import read_frames
from capture.silhouettes import Cleaning
from capture.silhouettes.cleanup import silhouette_of
from capture.silhouettes.difference import PlateModel

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("cam1", "cam2", "cam3", "cam4")
FOCAL_PX = 490.0
MOVED_BOARD = 470  # px: right of this a board was moved in cam3 between plate and recording
CELL_MM = 8.0


def derived_rig(room: Path) -> Rig:
    """Return the calibration beside the data; its z axis points into the floor."""
    table = json.loads((room / "calib_derived.json").read_text())
    cameras = []
    for name in NAMES:
        entry = table[name]
        lens = PinholeLens(tuple(entry["size"]), np.array(entry["K"]), np.array(entry["dist"]))
        pose = RigidTransform.from_vectors(np.ravel(entry["rvec"]), np.ravel(entry["tvec"]))
        cameras.append(LensCamera(name, lens, pose))
    return Rig(tuple(cameras))


def silhouettes(room: Path, name: str, frames: range) -> list[Bools]:
    """Return person and chair of one camera in some frames."""
    model = PlateModel(load_background(room / name / "background.avi", most=9))
    out = []
    for number, image in read_frames(room / name / "video.avi"):
        if number in frames:
            mask = np.asarray(silhouette_of(model.evidence(image), Cleaning())).astype(np.uint8)
            if name == "cam3":
                mask[:, MOVED_BOARD:] = 0
            _, labels, stats, _ = cv2.connectedComponentsWithStats(mask)
            out.append(np.asarray(labels == 1 + np.argmax(stats[1:, cv2.CC_STAT_AREA])))
    return out


def tangency_px(a: Camera, b: Camera, mask_a: Bools, mask_b: Bools) -> float:
    """Return the gap between the upper epipolar tangents of two silhouettes, px (shared by both images)."""
    along = (b.centre - a.centre) / np.linalg.norm(b.centre - a.centre)
    up = np.array([0.0, 0.0, 1.0])
    x = up - along * (up @ along)
    y = np.cross(along, x / np.linalg.norm(x))
    tops = []
    for camera, mask in ((a, mask_a), (b, mask_b)):
        contours, _ = cv2.findContours(mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
        pixels = np.concatenate(contours)[:, 0].astype(float)
        rays = camera.rays(pixels)[1]
        angle = np.arctan2(rays @ x / np.linalg.norm(x), rays @ y)
        top = int(pixels[:, 1].argmin())
        # the extreme plane on the side of the topmost pixel
        turn = np.angle(np.exp(1j * (angle - np.angle(np.exp(1j * angle).mean()))))
        pick = int(turn.argmax() if turn[top] > 0 else turn.argmin())
        tops.append((angle[pick], np.sqrt(1 - (rays[pick] @ along) ** 2)))
    (first, lever_a), (second, lever_b) = tops
    gap = np.angle(np.exp(1j * (first - second)))
    return float(gap * FOCAL_PX * lever_a * lever_b / np.hypot(lever_a, lever_b))


def floor_layout(camera: Camera, image: Floats, flip: float) -> tuple[Floats, Bools]:
    """Return the picture laid out on the floor with its broad shades removed, and where the camera sees it."""
    x, y = np.meshgrid(np.arange(-2500, 3500, CELL_MM), flip * np.arange(-3300, 3300, CELL_MM))
    pixels = camera.project(np.stack([x, y, 0 * x], -1).reshape(-1, 3))
    width, height = camera.size
    seen: Bools = np.asarray(
        np.isfinite(pixels).all(1) & (pixels > 8).all(1) & (pixels < [width - 9, height - 9]).all(1)
    )
    place = np.where(seen[:, None], pixels, -1.0).astype(np.float32).reshape(*x.shape, 2)
    flat = cv2.remap(image.astype(np.float32), place[..., 0], place[..., 1], cv2.INTER_LINEAR)
    mask = seen.reshape(x.shape).astype(np.float32)
    fine, broad = (
        cv2.GaussianBlur(flat * mask, (0, 0), s) / np.maximum(cv2.GaussianBlur(mask, (0, 0), s), 1e-3) for s in (2, 12)
    )
    return np.clip(fine - broad, -12, 12).astype(np.float64), mask > 0


def main() -> None:
    """Measure both calibrations and print them."""
    room = Path(os.environ.get("VIVARIG_DATA", ROOT.parent / "shared" / "data")) / "utrecht_room"
    rigs = {"derived": (derived_rig(room), 1.0), "ours": (load_rig(Path(sys.argv[1])), -1.0)}
    frames = range(5, 420, 24)
    masks = {name: silhouettes(room, name, frames) for name in NAMES}
    floors = {
        name: np.mean([image.mean(-1) for _, image in read_frames(room / name / "background.avi", stop=20)], axis=0)
        for name in NAMES
    }
    result: dict[str, dict[str, object]] = {}
    for words, (rig, flip) in rigs.items():
        gaps, floor = {}, {}
        layouts = {name: floor_layout(rig[name], floors[name], flip) for name in NAMES}
        for a, b in combinations(NAMES, 2):
            pairs = zip(masks[a], masks[b], strict=True)
            gaps[f"{a}-{b}"] = round(float(np.median([tangency_px(rig[a], rig[b], p, q) for p, q in pairs])), 2)
            both = layouts[a][1] & layouts[b][1]
            p, q = layouts[a][0][both], layouts[b][0][both]
            floor[f"{a}-{b}"] = round(float((p * q).sum() / np.sqrt((p * p).sum() * (q * q).sum())), 3)
        hull = [
            implicit_hull([masks[n][t] for n in NAMES], rig, voxel_mm=15.0).agreement for t in range(0, len(frames), 4)
        ]
        result[words] = {"tangency_px": gaps, "floor_ncc": floor, "hull_iou": round(float(np.mean(hull)), 4)}
        print(f"{words}: hull agreement {result[words]['hull_iou']}")
        for pair in gaps:
            print(f"  {pair}: top tangents {gaps[pair]:+.2f} px apart, floor correlates {floor[pair]:.3f}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
