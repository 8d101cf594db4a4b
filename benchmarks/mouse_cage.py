"""A real mouse in a cage, four infrared cameras: tracked from raw videos, scored on 2D labels.

``python -m benchmarks.mouse_cage [--folder DIR] [--overlays DIR]``. The recording of ../shared/data (or VIVARIG_DATA)
is described in a folder of its own (recording.toml, rig.toml); `vivarig run` goes from the raw videos to the report,
with the built-in mouse. Virtual markers are then projected into the images and compared with the labels, which nothing
before has read. With ``--folder`` everything is kept: open DIR/results/report.html. The labels are proofread
but not exact (they reproject 4 to 8 px after triangulation); a label's place on the animal is known by its name only.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import cv2
import h5py
import numpy as np

from benchmarks.crane.sequence import data_folder
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, load_rig, save_rig
from calibration.foundation.arrays import Floats
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.solving.world_frame import moved_rig
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import read_frames
from tracking.sequence.track_file import open_track
from vivarig.cli import main as vivarig

CAMERAS = ("back", "mid", "side", "top")
MARKERS = {
    "Nose": "nose_tip",
    "Ear_L": "left_ear",
    "Ear_R": "right_ear",
    "TTI": "tail_root",
    "Haunch_left": "left_knee_skin",
    "Haunch_right": "right_knee_skin",
    "Trunk": "back_thoracolumbar",
}
"""Labels that are scored, and the virtual marker at that place. The trunk's label lies half way from neck to tail base;
the haunch's 0.6 of the way, where the 34-point set of the same makers lists the knee."""
BESIDE = {
    "TailTip": "tail_end",
    "Neck": "nape",
    "Shoulder_left": "left_shoulder_skin",
    "Shoulder_right": "right_shoulder_skin",
}


def cage_rig(source: Path) -> Rig:
    """Return the derived calibration with z up: the side camera stands upright, which a look at its images shows."""
    table = json.loads((source / "calib_derived.json").read_text())
    cameras = []
    for name in CAMERAS:
        one = table[name]
        lens = PinholeLens(tuple(one["size"]), np.array(one["K"], float), np.array(one["dist"], float))
        pose = RigidTransform(rotation_from_vector(np.array(one["rvec"], float)), np.array(one["tvec"], float))
        cameras.append(LensCamera(name, lens, pose))
    side = cameras[CAMERAS.index("side")].camera_from_world.rotation
    up, ahead = -side[1], side[2]
    axes = np.stack([np.cross(ahead, up), ahead, up])
    return moved_rig(Rig(tuple(cameras)), RigidTransform(axes, np.zeros(3)))


def describe(source: Path, folder: Path, subject: str = "mouse") -> Recording:
    """Write recording.toml and rig.toml for the cage's videos; the rate is that of the video files."""
    folder.mkdir(parents=True, exist_ok=True)
    save_rig(cage_rig(source), folder / "rig.toml")
    footage = tuple(Footage(name, source / name / f"minimal_{name}.mp4") for name in CAMERAS)
    save_recording(Recording(folder, "mouse_cage", 30.0, subject, load_rig(folder / "rig.toml"), footage))
    return load_recording(folder)


def labels(source: Path) -> dict[str, Floats]:
    """Return the 2D labels by name, (C, T, 2) px each, NaN where a camera does not see the point."""
    pixels: dict[str, list[Floats]] = {}
    for camera in CAMERAS:
        with h5py.File(source / camera / f"minimal_{camera}_proofread.analysis.h5") as file:
            names = list(words_of(file["node_names"]))
            tracks = file["tracks"][0].transpose(1, 2, 0)
        for name, track in zip(names, tracks, strict=True):
            pixels.setdefault(name, []).append(track)
    return {name: np.stack(tracks) for name, tracks in pixels.items()}


def score(recording: Recording, truth: dict[str, Floats], pairs: dict[str, str]) -> dict[str, Floats]:
    """Return the distance (C, T) px of each projected marker from its label."""
    rig = recording.need_rig()
    with open_track(recording.results / "track.h5") as file:
        names, markers = list(file.marker_names), file.markers()
    result = {}
    for label, marker in pairs.items():
        seen = np.stack([camera.project(markers[:, names.index(marker)]) for camera in rig.cameras])
        result[label] = np.linalg.norm(seen - truth[label][:, : seen.shape[1]], axis=2)
    return result


def body_lengths(truth: dict[str, Floats]) -> Floats:
    """Return the median distance (C,) px from nose to tail base: the length of the body in each view."""
    return np.asarray(np.nanmedian(np.linalg.norm(truth["Nose"] - truth["TTI"], axis=2), axis=1))


def draw(recording: Recording, truth: dict[str, Floats], folder: Path, frames: list[int]) -> None:
    """Draw outline and markers of the track over the images, and the labels."""
    folder.mkdir(parents=True, exist_ok=True)
    rig = recording.need_rig()
    with open_track(recording.results / "track.h5") as file:
        names, faces = list(file.marker_names), file.faces
        for frame in frames:
            rows = []
            for index, camera in enumerate(rig.cameras):
                image = next(iter(read_frames(recording.footage[index].source, frame, frame + 1)))[1].copy()
                image = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
                image = np.minimum(image.astype(np.int32) * 2, 255).astype(np.uint8)
                mask = np.zeros(image.shape[:2], np.uint8)
                pixels = camera.project(file.vertices(frame))
                for face in faces:
                    if np.isfinite(pixels[face]).all():
                        cv2.fillConvexPoly(mask, np.round(pixels[face]).astype(np.int32), 1)
                loops, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
                cv2.drawContours(image, loops, -1, (0, 255, 255), 1)
                for label, marker in (MARKERS | BESIDE).items():
                    place = camera.project(file.markers(frame)[names.index(marker)][None])[0]
                    given = truth[label][index, frame]
                    cv2.circle(image, tuple(int(v) for v in place), 4, (0, 255, 0), -1)
                    if np.isfinite(given).all():
                        cv2.circle(image, tuple(int(v) for v in given), 4, (0, 0, 255), -1)
                        cv2.line(image, tuple(int(v) for v in place), tuple(int(v) for v in given), (255, 255, 255), 1)
                centre = np.nanmean(truth["Trunk"][index], axis=0).astype(int)
                low = np.clip(centre - 200, 0, [image.shape[1] - 400, image.shape[0] - 400])
                rows.append(image[low[1] : low[1] + 400, low[0] : low[0] + 400])
            cv2.imwrite(str(folder / f"frame_{frame:03d}.png"), np.hstack(rows))


def main() -> None:
    """Track, score and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="recording folder to make and keep (default: a temporary one)")
    parser.add_argument("--overlays", type=Path, help="also draw some frames, to be looked at")
    parser.add_argument("--subject", default="mouse", help="subject to track with (default: the built-in mouse)")
    args = parser.parse_args()
    source = data_folder() / "mouse_cage"
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary) / "mouse_cage"
        start = time.perf_counter()
        recording = describe(source, folder, args.subject)
        vivarig(["run", str(folder)])
        seconds = time.perf_counter() - start
        truth = labels(source)
        scores = score(recording, truth, MARKERS)
        beside = score(recording, truth, BESIDE)
        with open_track(recording.results / "track.h5") as file:
            trusted = float(np.mean(file.trust() == int(Trust.TRUSTED)))
            overlap = float(np.nanmedian(file.agreement()))
        if args.overlays is not None:
            draw(recording, truth, args.overlays, [0, 30, 60, 90, 119])
    body = body_lengths(truth)[:, None]
    print("label           median px  90 % px  median, share of the body's length")
    for label, away in {**scores, **beside}.items():
        share = np.nanmedian(away / body)
        print(f"{label:<15} {np.nanmedian(away):9.1f} {np.nanpercentile(away, 90):8.1f}  {share:6.3f}")
    away = np.stack(list(scores.values()))
    numbers = {
        "median_px": float(np.nanmedian(away)),
        "p90_px": float(np.nanpercentile(away, 90)),
        "median_share": float(np.nanmedian(away / body)),
        "p90_share": float(np.nanpercentile(away / body, 90)),
        "median_px_by_camera": [float(np.nanmedian(away[:, index])) for index in range(len(CAMERAS))],
        "trusted_share": trusted,
        "overlap_iou": overlap,
        "seconds": seconds,
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
