"""Silhouettes: accuracy of each model on the samples, clean and hard, and speed.

    python -m benchmarks.silhouettes [--mouse-cage]

Truth is the actor's skin cast into the views. The samples have shadows and sensor noise as filmed; "hard" adds noise of
4 grey levels and 6 % mains flicker. Models see all frames of four cameras and are scored on every eighth. For chroma
key, backlight, bright and brought masks the same true silhouettes are set before a screen, a panel or black, with
uneven light. ``--mouse-cage`` measures the real, unplated cage recording instead, scored by its labelled points.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import cv2
import h5py
import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig, save_rig
from calibration.geometry.transforms import RigidTransform
from capture.discs import disc
from capture.hull import mesh_silhouette, overlap
from capture.recordings.masks import MaskFlag, read_masks
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import read_frames, write_video
from capture.silhouettes import ModelOptions, segment_recording
from capture.silhouettes.models import is_grey
from capture.silhouettes.segment import learn_models
from capture.silhouettes.sitting import SITTING_MARGIN

REPOSITORY = Path(__file__).resolve().parent.parent
MODELS = ("plate", "mixture", "moving", "mog2", "knn")
#: Scenes made from true silhouettes: blue, green and red of the ground and of the subject.
MADE = {
    "chroma": ((60, 180, 70), (70, 80, 150)),
    "backlight": ((220, 220, 220), (30, 30, 30)),
    "bright": ((20, 20, 20), (190, 190, 190)),
    "masks": ((20, 20, 20), (190, 190, 190)),
}
FRAMES = range(0, 100, 8)
CAGE = ("back", "mid", "side", "top")


def steady_speed(folder: Path) -> tuple[float, float]:
    """Return camera-frames per second on two cores once models are made: by CPU seconds and by the wall clock."""
    recording = load_recording(folder)
    models = learn_models(recording, workers=2)
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "silhouettes.h5"
        segment_recording(recording, target, stop=4, models=models, workers=2)
        cpu, wall = time.process_time(), time.perf_counter()
        report = segment_recording(recording, target, models=models, workers=2)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return 2 * report.flags.size / cpu, report.flags.size / wall


def _spoilt(images: Iterator[tuple[int, np.ndarray]], rng: np.random.Generator, hard: bool) -> Iterator[np.ndarray]:
    for index, image in images:
        if not hard:
            yield image
            continue
        # A monochrome camera has one noise, not one per channel of its video.
        sensor = image[:, :, 0] if is_grey(image) else image
        light = sensor * np.float32(1.0 + 0.06 * np.sin(1.9 * index))
        light += np.float32(4.0) * rng.standard_normal(sensor.shape, dtype=np.float32)
        yield np.clip(light, 0, 255).astype(np.uint8)


def filmed_again(sample: Path, folder: Path, *, hard: bool) -> Recording:
    """Write four cameras of a sample, spoilt if ``hard``, as a recording of its own."""
    original = load_recording(sample)
    rng = np.random.default_rng(7)
    footage = []
    for camera in original.footage[:: max(1, len(original.footage) // 4)]:
        video, plate = folder / f"{camera.name}.mkv", folder / f"{camera.name}_background.mkv"
        write_video(video, _spoilt(read_frames(camera.source), rng, hard), 25.0, codec="ffv1")
        assert camera.background is not None
        write_video(plate, _spoilt(read_frames(camera.background), rng, hard), 25.0, codec="ffv1")
        footage.append(Footage(camera.name, video, background=plate))
    rig = original.need_rig().subset([camera.name for camera in footage])
    recording = Recording(folder, original.name, 25.0, None, rig, tuple(footage))
    save_rig(rig, folder / "rig.toml")
    save_recording(recording)
    return load_recording(folder)


def _made_images(model: str, masks: Sequence[np.ndarray], hard: bool) -> Iterator[np.ndarray]:
    """Yield pictures of true silhouettes (H, W) before a screen, a panel or black, a fifth darker at one side."""
    ground, subject = (np.array(colour, dtype=np.float32) for colour in MADE[model])
    rng = np.random.default_rng(7)

    def still() -> Iterator[tuple[int, np.ndarray]]:
        for index, mask in enumerate(masks):
            matte = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 0.6)[:, :, None]
            light = np.linspace(1.0, 0.8, mask.shape[1], dtype=np.float32)[None, :, None]
            noise = 2.0 * rng.standard_normal((*mask.shape, 3 if model == "chroma" else 1), dtype=np.float32)
            yield index, np.clip(light * (ground + matte * (subject - ground)) + noise, 0, 255).astype(np.uint8)

    return _spoilt(still(), rng, hard)


def made_recording(model: str, true: dict[str, list[np.ndarray]], rig: Rig, folder: Path, *, hard: bool) -> Recording:
    """Write the recording of a made scene with the views' true silhouettes."""
    footage = []
    for name, masks in true.items():
        write_video(folder / f"{name}_{model}.mkv", _made_images(model, masks, hard), 25.0, codec="ffv1")
        brought = None
        if model == "masks":
            brought = folder / f"{name}_masks"
            brought.mkdir()
            for index, mask in enumerate(masks):
                cv2.imwrite(str(brought / f"{index:03d}.png"), 255 * mask.view(np.uint8))
        footage.append(Footage(name, folder / f"{name}_{model}.mkv", masks=brought))
    return Recording(folder, model, 25.0, None, rig, tuple(footage))


def _ious(
    recording: Recording, model: str, true: dict[str, list[np.ndarray]], frames: Sequence[int] | None
) -> tuple[float, float]:
    """Return the mean and the worst view's mean IoU of a model with the truth, at the given frames."""
    target = recording.folder / "silhouettes.h5"
    segment_recording(recording, target, ModelOptions(model), workers=2)
    views = [
        np.mean([overlap(a, b) for a, b in zip(read_masks(target, name, frames), masks, strict=True)])
        for name, masks in true.items()
    ]
    return float(np.mean(views)), float(np.min(views))


def model_scores(sample: Path, *, hard: bool) -> dict[str, tuple[float, float]]:
    """Return for each model the mean and the worst view's mean IoU with the truth."""
    with h5py.File(sample / "truth.h5") as truth:
        vertices = truth["skin/vertices"][list(FRAMES)].astype(np.float64)
        faces = truth["skin/faces"][()].astype(np.int32)
    with tempfile.TemporaryDirectory() as scratch:
        recording = filmed_again(sample, Path(scratch), hard=hard)
        rig = recording.need_rig()
        true = {c.name: [mesh_silhouette(c, some, faces) for some in vertices] for c in rig}
        found = {model: _ious(recording, model, true, FRAMES) for model in MODELS}
        for model in MADE:
            found[model] = _ious(made_recording(model, true, rig, Path(scratch), hard=hard), model, true, None)
    return found


def cage_recording(data: Path, folder: Path) -> Recording:
    """Write a recording of the real mouse cage, with the derived calibration and no plate."""
    derived = json.loads((data / "mouse_cage" / "calib_derived.json").read_text())
    cameras, footage = [], []
    for name in CAGE:
        values = derived[name]
        lens = PinholeLens(tuple(values["size"]), np.array(values["K"]), np.array(values["dist"]))
        cameras.append(LensCamera(name, lens, RigidTransform.from_vectors(values["rvec"], values["tvec"])))
        footage.append(Footage(name, data / "mouse_cage" / name / f"minimal_{name}.mp4"))
    recording = Recording(folder, "mouse_cage", 30.0, None, Rig(tuple(cameras)), tuple(footage))
    save_rig(recording.need_rig(), folder / "rig.toml")
    save_recording(recording)
    return load_recording(folder)


def cage_labels(data: Path, camera: str) -> np.ndarray:
    """Return (120, 15, 2) the labelled points of a camera, px; NaN where hidden. Four of them lie on the tail."""
    with h5py.File(data / "mouse_cage" / camera / f"minimal_{camera}_proofread.analysis.h5") as file:
        return np.asarray(file["tracks"][0].transpose(2, 1, 0))


def label_scores(mask: np.ndarray, points: np.ndarray) -> tuple[int, int, float]:
    """Return labelled points (15, 2) inside the mask, their number, and its area over that of their dilated hull."""
    seen = points[np.isfinite(points).all(axis=1)]
    columns, rows = np.rint(seen).astype(int).T
    room = np.zeros(mask.shape, np.uint8)
    cv2.fillConvexPoly(room, cv2.convexHull(np.rint(16 * seen).astype(np.int32)), 1, shift=4)
    room = cv2.dilate(room, disc(8))
    return int(mask[rows, columns].sum()), len(seen), float(mask.sum()) / float(room.sum())


def cage_scores(data: Path, *, stop: int | None = None) -> dict[str, float]:
    """Segment the mouse cage once and score it by its labels, with the default margin and without, per view and in all.

    The margin is laid around the stored silhouettes afterwards, as `segment_recording` does at its end.
    """
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        recording = cage_recording(data, Path(scratch))
        target = Path(scratch) / "silhouettes.h5"
        options = ModelOptions(margin_px=0)
        report = segment_recording(recording, target, options, stop=stop, models=learn_models(recording, options))
        shown = (report.flags & (MaskFlag.NO_FRAME | MaskFlag.EMPTY | MaskFlag.FULL)) == 0
        found["found"] = float(shown.mean())
        for label, share in (("bare", 0.0), ("margin", SITTING_MARGIN)):
            scores = {}
            for name in CAGE:
                masks = read_masks(target, name)
                grown = [_grown(mask, round(share * max(mask.shape))) for mask in masks]
                pairs = zip(grown, cage_labels(data, name)[:stop], strict=True)
                scores[name] = np.array([label_scores(mask, points) for mask, points in pairs])
            for name, rows in {**scores, "all": np.concatenate(list(scores.values()))}.items():
                found[f"{label}_{name}_inside"] = float(rows[:, 0].sum() / rows[:, 1].sum())
                found[f"{label}_{name}_area_mean"] = float(rows[:, 2].mean())
                found[f"{label}_{name}_area_max"] = float(rows[:, 2].max())
    return found


def _grown(mask: np.ndarray, radius: int) -> np.ndarray:
    return np.asarray(cv2.dilate(mask.view(np.uint8), disc(radius)).view(np.bool_)) if radius else mask


def print_cage(found: dict[str, float]) -> None:
    """Print the scores of the mouse cage as a table."""
    print(f"mouse cage: animal found in {100 * found['found']:.1f} % of the frame-views")
    print("view   labels inside, bare / with the default margin   area / labels' hull dilated by 8 px, mean (most)")
    for name in (*CAGE, "all"):
        bare, margin = found[f"bare_{name}_inside"], found[f"margin_{name}_inside"]
        mean, most = found[f"margin_{name}_area_mean"], found[f"margin_{name}_area_max"]
        print(f"{name:<6} {100 * bare:8.1f} % {100 * margin:8.1f} % {mean:24.2f} ({most:.2f})", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mouse-cage", action="store_true", help="the real mouse cage instead of the samples")
    args = parser.parse_args()
    results: dict[str, float] = {}
    if args.mouse_cage:
        data = Path(os.environ.get("VIVARIG_DATA", REPOSITORY.parent / "shared" / "data"))
        cage = cage_scores(data)
        print_cage(cage)
        print(json.dumps({f"cage_{key}": value for key, value in cage.items()}))
        return
    columns = [(sample, hard) for sample in ("mouse", "human") for hard in (False, True)]
    scores = {}
    for sample, hard in columns:
        scores[sample, hard] = model_scores(REPOSITORY / "sample_data" / sample, hard=hard)
        words = ", ".join(f"{model} {mean:.3f}" for model, (mean, _) in scores[sample, hard].items())
        print(f"{sample}{', hard' if hard else ''}: {words}", flush=True)
    print(f"{'model':<10}" + "".join(f"{sample + (', hard' if hard else ''):>24}" for sample, hard in columns))
    for model in (*MODELS, *MADE):
        cells = [scores[column][model] for column in columns]
        print(f"{model:<10}" + "".join(f"{mean:>9.3f} (worst {worst:.3f})" for mean, worst in cells))
        for (sample, hard), (mean, _) in zip(columns, cells, strict=True):
            results[f"{sample}_{'hard_' if hard else ''}{model}_iou"] = mean
    cpu, wall = steady_speed(REPOSITORY / "sample_data" / "mouse")
    print(f"speed: {cpu:.0f} camera-frames/s on 2 cores by CPU seconds, {wall:.0f} by the wall clock")
    results.update({"silhouette_fps": cpu, "silhouette_fps_wall": wall})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
