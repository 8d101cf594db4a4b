"""Silhouettes of real and independently made recordings against true and hand-made masks, and labelled points.

    python -m benchmarks.real_silhouettes [--only walk4 box4 cylinder ...] [--frames N] [--sheets DIR]

The stranger recordings have true masks of every frame. On the mouse cylinder, which has no plate, models are learnt
from the whole recording and stretches of 80 frames around the labelled ones are cut out, and single frames spread over
all of it; hand-made masks are scored outside what they call unknown. The cage is scored by labelled points
(`benchmarks.silhouettes`). ``--only compressed`` stores the strangers again as H.264 of constant rate factors 26, 31
and 38, as laboratories do, and scores these. ``--frames 4`` learns as ever and scores four frames of each recording,
for a quick look.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from scipy.stats import spearmanr

from benchmarks.camera_checks import camera_checks
from benchmarks.measuring.broken_masks import broken
from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recompressed import recompressed
from benchmarks.silhouettes import cage_scores
from calibration.cameras.rig import save_rig
from capture.discs import disc
from capture.recordings.masks import read_masks
from capture.recordings.recording import Recording, load_recording, save_recording
from capture.recordings.video import read_frames
from capture.silhouettes import segment_recording
from capture.silhouettes.judging import frame_agreement
from capture.silhouettes.models import CameraModel
from capture.silhouettes.preparation import Prepared
from capture.silhouettes.segment import SilhouetteReport, count_frames, learn_models
from capture.silhouettes.sheets import contact_sheet

REPOSITORY = Path(__file__).resolve().parent.parent
#: Key, recording, every n-th camera, with plates.
STRANGERS = (
    ("walk4", "walk", 2, True),
    ("walk8", "walk", 1, True),
    ("walk4_noplate", "walk", 2, False),
    ("dark4", "walk_dark_shadow", 1, True),
    ("box4", "box", 1, True),
)
PARTS = (*(key for key, *_ in STRANGERS), "cylinder", "cage", "speed", "checks")
#: Only where asked for: films and plates compressed again by these constant rate factors.
COMPRESSED, FACTORS = "compressed", (26, 31, 38)
STRETCH = 80
#: Single frames spread over the mouse cylinder whose areas are looked at besides.
SPREAD = 40
#: Which of its labelled frames have their masks broken on purpose, too.
_BROKEN = (3, 7)
LABEL_PX = 4
AREA_SHARES = (0.002, 0.03)


def linked(source: Path, folder: Path, *, every: int = 1, plates: bool = True) -> Recording:
    """Write a recording of its own into ``folder`` that points to the videos of another."""
    original = load_recording(source)
    footage = tuple(
        replace(
            one, source=one.source.resolve(), background=one.background.resolve() if one.background and plates else None
        )
        for one in original.footage[::every]
    )
    rig = original.need_rig().subset([one.name for one in footage])
    save_rig(rig, folder / "rig.toml")
    save_recording(replace(original, folder=folder, footage=footage, rig=rig))
    return load_recording(folder)


def iou(found: np.ndarray, true: np.ndarray, unknown: np.ndarray | None = None) -> float:
    """Return the intersection over the union of two masks (H, W), outside what is unknown."""
    asked = np.ones(true.shape, bool) if unknown is None else ~unknown
    return float((found & true & asked).sum() / max(1, ((found | true) & asked).sum()))


def stranger_scores(
    data: Path, name: str, every: int, plates: bool, sheet: Path | None, frames: int | None
) -> tuple[np.ndarray, list[tuple[float, float]]]:
    """Return (T, C) the IoU with true masks; and IoU and agreement of silhouettes of one frame broken on purpose."""
    scores: list[np.ndarray] = []
    rows: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        recording = linked(data / "stranger" / name, Path(scratch), every=every, plates=plates)
        truth = np.load(data / "stranger" / name / "truth.npz")
        models = learn_models(recording, workers=2)
        total = count_frames(recording)
        starts = [0] if frames is None else np.linspace(0, total - 1, frames).round().astype(int).tolist()
        for start in starts:
            stop = total if frames is None else start + 1
            report = segment_recording(recording, start=start, stop=stop, models=models, workers=2)
            found, true = [], []
            for camera in report.names:
                found.append(read_masks(recording.results / "silhouettes.h5", camera))
                packed = truth[f"masks_{camera}"][start:stop]
                true.append(np.unpackbits(packed, axis=2)[:, :, : found[-1].shape[2]].astype(bool))
            columns = [[iou(a, b) for a, b in zip(*both, strict=True)] for both in zip(found, true, strict=True)]
            scores.append(np.array(columns).T)
            if not rows:
                at = len(found[0]) // 2
                views, right = [one[at] for one in found], [(one[at], None) for one in true]
                rows = broken_scores(recording, models, start + at, views, right)
        if sheet is not None:
            contact_sheet(recording if frames is None else recording.from_frame(starts[-1]), sheet)
    return np.concatenate(scores), rows


def compressed_scores(data: Path, sheets: Path | None, frames: int | None) -> dict[str, float]:
    """Return the mean IoU with true masks of the strangers stored again, and that of the worst camera."""
    figures: dict[str, float] = {}
    for factor in FACTORS:
        with tempfile.TemporaryDirectory() as scratch:
            again = Path(scratch)
            for key, name, every, plates in STRANGERS:
                folder = again / "stranger" / name
                if key == "walk8":
                    continue
                if not folder.exists():
                    recompressed(data / "stranger" / name, folder, factor, every)
                sheet = None if sheets is None else sheets / f"{key}_crf{factor}.png"
                scores, _ = stranger_scores(again, name, 1, plates, sheet, frames)
                views = scores.mean(axis=0)
                figures[f"{key}_crf{factor}_iou"] = float(scores.mean())
                figures[f"{key}_crf{factor}_iou_worst_camera"] = float(views.min())
                named = " ".join(f"{one:.3f}" for one in views)
                print(f"{key}, crf {factor}: IoU {scores.mean():.3f} (views {named}; worst frame {scores.min():.3f})")
    return figures


def hand_mask(file: np.lib.npyio.NpzFile, kind: str, camera: str, frame: int, width: int) -> np.ndarray:
    """Return (H, W) a hand-made mask, or what it leaves open (``kind`` "mask" or "unknown")."""
    return np.unpackbits(file[f"{kind}_{camera}_{frame}"], axis=1)[:, :width].astype(bool)


def points_inside(mask: np.ndarray, points: Sequence[Sequence[float]]) -> int:
    """Return how many labelled points (n, 2) are in a mask (H, W), or within 4 px of it."""
    grown = cv2.dilate(mask.view(np.uint8), disc(LABEL_PX))
    rounded = np.rint(points).astype(int).reshape(-1, 2)
    rounded = np.clip(rounded, 0, np.array(mask.shape[::-1]) - 1)
    return int(grown[rounded[:, 1], rounded[:, 0]].sum())


def image_sizes(recording: Recording) -> np.ndarray:
    """Return (C,) the pixels of each camera's image."""
    return np.array([np.prod(camera.size) for camera in recording.need_rig()], dtype=float)


def broken_scores(
    recording: Recording,
    models: Prepared,
    frame: int,
    masks: Sequence[np.ndarray],
    truth: Sequence[tuple[np.ndarray, np.ndarray | None]],
) -> list[tuple[float, float]]:
    """Return the true IoU and the agreement of each view of a frame, as found and broken on purpose.

    ``truth``: the true silhouette of each view (H, W), and what of it is not known.
    """
    rig, found = recording.need_rig(), []
    images = [next(read_frames(one.source, frame, frame + 1))[1] for one in recording.footage]
    for _, spoilt in broken(masks, np.random.default_rng(0)):
        doubts = [
            model.doubt(image, mask) if isinstance(model, CameraModel) else None
            for model, image, mask in zip(models.models, images, spoilt, strict=True)
        ]
        said = frame_agreement(spoilt, doubts, rig, models.floor)
        true = [iou(mask, *one) for mask, one in zip(spoilt, truth, strict=True)]
        found += [(a, float(b)) for a, b in zip(true, said, strict=True) if np.isfinite(b)]
    return found


class CylinderScores:
    """Scores of the mouse cylinder, gathered stretch by stretch."""

    def __init__(self, data: Path) -> None:
        self.labels = json.loads((data / "mouse_cylinder" / "labels.json").read_text())["frames"]
        self.hand = np.load(data / "mouse_cylinder" / "masks.npz")
        self.iou: list[list[float]] = []
        self.broken: list[tuple[float, float]] = []
        self.inside: dict[str, list[int]] = {}
        self.shares: list[np.ndarray] = []

    def hand_made(self, camera: str, frame: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (H, W) the hand-made mask of a view, and what it leaves open."""
        return tuple(hand_mask(self.hand, kind, camera, frame, width) for kind in ("mask", "unknown"))  # type: ignore[return-value]

    def add(self, path: Path, report: SilhouetteReport, start: int, frame: int) -> None:
        """Score a stretch that begins at ``start`` and holds a labelled frame."""
        at = frame - start
        row = []
        for camera in report.names:
            mask = read_masks(path, camera, [at])[0]
            row.append(iou(mask, *self.hand_made(camera, frame, mask.shape[1])))
            for name, point in self.labels[str(frame)]["points2d"].get(camera, {}).items():
                count = self.inside.setdefault(name, [0, 0])
                count[0] += points_inside(mask, [point])
                count[1] += 1
        self.iou.append(row)
        self.shares.append(report.area / mask.size)

    def figures(self) -> dict[str, float]:
        """Return the figures."""
        shares = np.concatenate(self.shares)
        views = np.mean(self.iou, axis=0)
        inside, labelled = np.sum(list(self.inside.values()), axis=0)
        return {
            "cylinder_iou": float(views.mean()),
            "cylinder_iou_worst_camera": float(views.min()),
            "cylinder_labels_inside": float(inside / labelled),
            "cylinder_area_share_ok": float(((shares > AREA_SHARES[0]) & (shares < AREA_SHARES[1])).mean()),
        }


def cylinder_scores(data: Path, sheets: Path | None, stretch: int | None) -> CylinderScores:
    """Learn the models of the mouse cylinder from all of it and score stretches around its labelled frames."""
    scores = CylinderScores(data)
    length = stretch or STRETCH
    with tempfile.TemporaryDirectory() as scratch:
        recording = linked(data / "mouse_cylinder", Path(scratch))
        began = time.perf_counter()
        models = learn_models(recording, workers=2)
        print(f"cylinder: models learnt in {time.perf_counter() - began:.0f} s", flush=True)
        for frame in sorted(map(int, scores.labels)):
            start = max(0, frame - length // 2)
            path = Path(scratch) / f"{frame}.h5"
            report = segment_recording(recording, path, start=start, stop=start + length, models=models, workers=2)
            scores.add(path, report, start, frame)
            if len(scores.iou) in _BROKEN:
                views = [read_masks(path, camera, [frame - start])[0] for camera in report.names]
                right = [scores.hand_made(camera, frame, views[0].shape[1]) for camera in report.names]
                scores.broken += broken_scores(recording, models, frame, views, right)
            print(f"  frame {frame}: IoU {' '.join(f'{one:.2f}' for one in scores.iou[-1])}", flush=True)
            if sheets is not None:
                (recording.results).mkdir(exist_ok=True)
                path.rename(recording.results / "silhouettes.h5")
                contact_sheet(recording.from_frame(start), sheets / f"cylinder_{frame}.png")
        spread = SPREAD if stretch is None else SPREAD // 3
        for start in np.linspace(0, count_frames(recording) - 1, spread).round().astype(int).tolist():
            path = Path(scratch) / "one.h5"
            report = segment_recording(recording, path, start=start, stop=start + 1, models=models, workers=2)
            scores.shares.append(report.area / image_sizes(recording))
    return scores


def speed_and_memory(data: Path) -> dict[str, float]:
    """Return camera-frames per second of 2 cores by processor time, models made, and the memory of one process."""
    script = (
        "import sys, time\n"
        "from capture.recordings.recording import load_recording\n"
        "from capture.silhouettes.segment import learn_models, segment_recording\n"
        "recording = load_recording(sys.argv[1])\n"
        "models = learn_models(recording, workers=2)\n"
        "segment_recording(recording, stop=4, models=models, workers=2)\n"
        "cpu = time.process_time()\n"
        "report = segment_recording(recording, start=1500, stop=1660, models=models, workers=2)\n"
        "print(2 * report.flags.size / (time.process_time() - cpu))\n"
    )
    with tempfile.TemporaryDirectory() as scratch:
        linked(data / "mouse_cylinder", Path(scratch))
        call = [sys.executable, "-c", script, scratch]
        with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as process:
            with watch_memory(lambda: [process.pid], 0.05, own=False) as watch:
                output, _ = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"segmenting the mouse cylinder ended with {process.returncode}")
    return {"camera_fps_1400k": float(output.split()[-1]), "worker_mb_1400k": watch.peak_mb}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=(*PARTS, COMPRESSED), default=list(PARTS), help="parts to measure")
    parser.add_argument("--frames", type=int, default=None, help="score so many frames of each recording only")
    parser.add_argument("--sheets", type=Path, default=None, help="folder for contact sheets")
    args = parser.parse_args()
    data = Path(os.environ.get("VIVARIG_DATA", REPOSITORY.parent / "shared" / "data"))
    if args.sheets is not None:
        args.sheets.mkdir(parents=True, exist_ok=True)
    figures: dict[str, float] = {}
    rows: list[tuple[float, float]] = []
    for key, name, every, plates in STRANGERS:
        if key not in args.only:
            continue
        sheet = None if args.sheets is None else args.sheets / f"{key}.png"
        scores, spoilt = stranger_scores(data, name, every, plates, sheet, args.frames)
        figures[f"{key}_iou"] = float(scores.mean())
        rows += spoilt
        views = " ".join(f"{one:.3f}" for one in scores.mean(axis=0))
        print(f"{key}: IoU {scores.mean():.3f} (views {views}; worst frame {scores.min():.3f})", flush=True)
    if COMPRESSED in args.only:
        figures.update(compressed_scores(data, args.sheets, args.frames))
    if "cylinder" in args.only:
        cylinder = cylinder_scores(data, args.sheets, args.frames)
        figures.update(cylinder.figures())
        print("labelled points inside: " + ", ".join(f"{n} {a}/{b}" for n, (a, b) in cylinder.inside.items()))
        print(", ".join(f"{key} {value:.3f}" for key, value in cylinder.figures().items()), flush=True)
        rows += cylinder.broken
    if rows:
        figures["agreement_rank_correlation"] = float(spearmanr(*np.array(rows).T).statistic)
        print(f"agreement against IoU, {len(rows)} views: rank correlation {figures['agreement_rank_correlation']:.3f}")
    if "cage" in args.only:
        cage = cage_scores(data, stop=args.frames)
        figures["cage_labels_inside"] = cage["bare_all_inside"]
        figures["cage_area_ratio"] = cage["bare_all_area_max"]
    if "speed" in args.only:
        figures.update(speed_and_memory(data))
    if "checks" in args.only:
        figures.update(camera_checks(data))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
