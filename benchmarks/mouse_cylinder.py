"""A real laboratory recording, one black mouse in a plastic cylinder: tracked from its videos, scored on 3D labels.

``python -m benchmarks.mouse_cylinder [--hand] [--around N] [--folder DIR] [--overlays DIR]``. The recording of
../shared/data (or VIVARIG_DATA) as it comes, built-in mouse, defaults only. To save time only stretches around the
labelled frames are cut out, with backgrounds learnt from the whole recording. The stretches are tracked as the parts of
one recording, a few empty frames between them, so that size and shape of the animal are found from all of them
together. ``--hand`` takes the hand-made silhouettes of the labelled frames instead, each frame by itself: the tracker
alone. Labels are marked by eye (1.7 mm); a label's place on the body is known by its name.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from benchmarks.crane.sequence import data_folder
from calibration.cameras.rig import load_rig, save_rig
from calibration.foundation.arrays import Bytes, Floats
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from calibration.foundation.trust import Trust
from capture.recordings.masks import LikeliestMasks, create_masks, read_masks
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import probe, read_frames
from capture.silhouettes.segment import learn_models, segment_recording
from tracking.sequence.track_file import open_track
from vivarig.jobs.cutting import MARGIN
from vivarig.jobs.fingerprints import digest_of_inputs
from vivarig.jobs.job import Job
from vivarig.jobs.lock import results_lock
from vivarig.pipeline.plans import plan_of
from vivarig.pipeline.runner import run_job, workers_here
from vivarig.pipeline.stages import STAGES
from vivarig.stages.options import TrackOptions

AROUND = 40
"""Frames of a stretch before the labelled one, and after (the labelled one is the first of those)."""
FAR = 15.0
"""A point further from its label than this is wrong, mm."""
MARKERS = {
    "nose": ("nose_tip",),
    "ear_left": ("left_ear",),
    "ear_right": ("right_ear",),
    "tail_base": ("tail_2_skin",),
    "paw_hind_left": ("left_foot", "left_toe"),
    "paw_hind_right": ("right_foot", "right_toe"),
    "paw_front_left": ("left_hand", "left_finger"),
    "paw_front_right": ("right_hand", "right_finger"),
}
"""Labels that are scored, and the virtual marker at that place, or those between whose middle it is. The tail's base is
labelled where the tail leaves the fur, which is 8 mm behind the marker over its first joint."""
BESIDE: dict[str, tuple[str, ...]] = {"tail_tip": ("tail_end",)}


@dataclass(frozen=True, eq=False)
class Labels:
    """Points marked by eye: frame to name to (3,) mm."""

    points: dict[int, dict[str, Floats]]

    @classmethod
    def read(cls, path: Path) -> Labels:
        """Read ``labels.json``."""
        table = json.loads(path.read_text(encoding="utf-8"))["frames"]
        return cls(
            {
                int(frame): {name: np.array(point, float) for name, point in one["points3d_mm"].items()}
                for frame, one in table.items()
            }
        )

    @property
    def frames(self) -> list[int]:
        """Labelled frames, in order."""
        return sorted(self.points)


@dataclass(frozen=True)
class Miss:
    """One labelled point: how far the marker is from it, mm, and whether the track calls it trusted."""

    frame: int
    label: str
    away: float
    trusted: bool


@dataclass(frozen=True)
class Stretch:
    """Frames around a labelled one, and where they lie among the stretches.

    Attributes:
        label: the labelled frame.
        first, stop: frames of the recording.
        row: where the first of them is among the stretches, which are parts of equal length with empty rows around.
    """

    label: int
    first: int
    stop: int
    row: int

    @property
    def labelled_row(self) -> int:
        """Where the labelled frame is among the stretches."""
        return self.row + self.label - self.first


@dataclass(frozen=True, eq=False)
class Layout:
    """Stretches one after the other: ``part`` rows each."""

    stretches: tuple[Stretch, ...]
    part: int

    @classmethod
    def around(cls, frames: list[int], before: int, after: int, length: int) -> Layout:
        """Lay out stretches around some frames of a recording of ``length`` frames."""
        part = before + after + 2 * MARGIN
        stretches = []
        for index, frame in enumerate(frames):
            first, stop = max(frame - before, 0), min(frame + after, length)
            stretches.append(Stretch(frame, first, stop, index * part + MARGIN))
        return cls(tuple(stretches), part)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return self.part * len(self.stretches)

    def row(self, frame: int) -> int:
        """Where a labelled frame is."""
        return next(one.labelled_row for one in self.stretches if one.label == frame)


def describe(source: Path, folder: Path, layout: Layout) -> Recording:
    """Write recording.toml, rig.toml and the images of the stretches."""
    folder.mkdir(parents=True, exist_ok=True)
    given = load_recording(source)
    save_rig(load_rig(source / "rig.toml"), folder / "rig.toml")
    footage = []
    for one in given.footage:
        images = folder / "images" / one.name
        footage.append(Footage(one.name, images))
        if images.is_dir():
            continue
        images.mkdir(parents=True)
        width, height = probe(one.source).size
        for row in range(layout.rows):
            cv2.imwrite(str(images / f"{row:05d}.jpg"), np.zeros((height, width, 3), np.uint8))
        for stretch in layout.stretches:
            for frame, image in read_frames(one.source, stretch.first, stretch.stop):
                row = stretch.row + frame - stretch.first
                cv2.imwrite(str(images / f"{row:05d}.jpg"), image, [cv2.IMWRITE_JPEG_QUALITY, 97])
    rig = load_rig(folder / "rig.toml")
    save_recording(Recording(folder, given.name, given.rate_hz, given.subject, rig, tuple(footage)))
    return load_recording(folder)


def write_silhouettes(recording: Recording, layout: Layout, masks: dict[tuple[str, int], Bytes]) -> None:
    """Write silhouettes.h5 of the stretches: packed masks (n, H, ceil(W / 8)) by camera and row; else empty."""
    names = list(recording.need_rig().names)
    sizes = [camera.size for camera in recording.need_rig().cameras]
    recording.results.mkdir(exist_ok=True)
    with create_masks(recording.results / "silhouettes.h5", names, sizes, layout.rows, {"start": 0}) as writer:
        # Rows between the stretches are written too, as empty: a file that says more than it holds is refused.
        for name, (width, height) in zip(names, sizes, strict=True):
            empty = np.zeros((layout.rows, height, -(-width // 8)), np.uint8)
            writer.write(name, 0, empty, np.full(layout.rows, np.nan, np.float32), np.zeros(layout.rows, np.uint16))
        for (name, row), packed in masks.items():
            told = np.full(len(packed), np.nan, np.float32)
            writer.write(name, row, packed, told, np.zeros(len(packed), np.uint16))


def cut_stretches(source: Path, recording: Recording, layout: Layout) -> None:
    """Cut the animal out of the stretches, its surroundings learnt from the whole recording."""
    given = load_recording(source)
    models = learn_models(given, workers=1)
    masks: dict[tuple[str, int], Bytes] = {}
    for stretch in layout.stretches:
        piece = recording.folder / "stretches" / f"{stretch.label}.h5"
        piece.parent.mkdir(exist_ok=True)
        segment_recording(given, piece, start=stretch.first, stop=stretch.stop, models=models, workers=1)
        for name in recording.need_rig().names:
            likeliest = _likeliest(piece, name, stretch.stop - stretch.first)
            masks[name, stretch.row] = np.packbits(likeliest, axis=-1)
    write_silhouettes(recording, layout, masks)


def _likeliest(piece: Path, name: str, frames: int) -> Bytes:
    with open_results(piece, stage="silhouettes") as file:
        masks = LikeliestMasks(file)
        return np.stack([masks(name, frame) for frame in range(frames)]).view(np.uint8)


def given_by_hand(source: Path, recording: Recording, layout: Layout) -> None:
    """Take the hand-made silhouettes of the labelled frames."""
    with np.load(source / "masks.npz") as file:
        masks = {
            (name, stretch.labelled_row): file[f"mask_{name}_{stretch.label}"][None]
            for stretch in layout.stretches
            for name in recording.need_rig().names
        }
    write_silhouettes(recording, layout, masks)


def track(recording: Recording, layout: Layout) -> None:
    """Track the stretches as the parts of one recording."""
    stage = next(one for one in STAGES if one.name == "track")
    plan = plan_of(recording, stage, TrackOptions(), [], digest_of_inputs(recording), layout.part)
    job = Job(recording.folder.resolve(), Span(0, layout.rows), {plan.name: plan}, layout.part)
    with results_lock(recording.results), workers_here(1) as place:
        job.clear("track")
        report = run_job(job, ["track"], place, lambda name, text: None, {}, None)["track"]
        job.clear("track", "silhouettes")
    print("\n".join(report.lines))


def score(recording: Recording, labels: Labels, layout: Layout, pairs: dict[str, tuple[str, ...]]) -> list[Miss]:
    """Compare the markers with the labels; a marker of a frame that was not tracked is infinitely far."""
    with open_track(recording.results / "track.h5") as file:
        names, markers = list(file.marker_names), file.markers()
        by_marker = file.limb_trust()[:, file.marker_limbs]
    misses = []
    for frame, points in labels.points.items():
        row = layout.row(frame)
        for label, point in points.items():
            if label in pairs:
                which = [names.index(marker) for marker in pairs[label]]
                away = float(np.linalg.norm(markers[row, which].mean(axis=0) - point))
                worst = int(by_marker[row, which].max())
                misses.append(Miss(frame, label, away if np.isfinite(away) else np.inf, worst == int(Trust.TRUSTED)))
    return misses


def _middle(markers: Floats, names: list[str], which: tuple[str, ...]) -> Floats:
    return np.asarray(markers[[names.index(name) for name in which]].mean(axis=0))


def draw(recording: Recording, labels: Labels, layout: Layout, folder: Path) -> None:
    """Draw silhouettes, the track's outline, markers and labels over the images of the labelled frames."""
    folder.mkdir(parents=True, exist_ok=True)
    rig = recording.need_rig()
    with open_track(recording.results / "track.h5") as file:
        names, faces = list(file.marker_names), file.faces
        for frame in labels.frames:
            panels, row = [], layout.row(frame)
            surface, markers = file.vertices(row), file.markers(row)
            for index, camera in enumerate(rig.cameras):
                image = next(iter(read_frames(recording.footage[index].source, row, row + 1)))[1].copy()
                image = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
                seen = read_masks(recording.results / "silhouettes.h5", camera.name, row)[0].astype(np.uint8)
                model = np.zeros(image.shape[:2], np.uint8)
                pixels = camera.project(surface)
                if np.isfinite(pixels).all():
                    for face in faces:
                        cv2.fillConvexPoly(model, np.round(pixels[face]).astype(np.int32), 1)
                for mask, colour in ((seen, (0, 255, 255)), (model, (0, 255, 0))):
                    loops, _ = cv2.findContours(mask, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
                    cv2.drawContours(image, loops, -1, colour, 1)
                places = []
                for label, point in labels.points[frame].items():
                    given = camera.project(point[None])[0]
                    places.append(given)
                    cv2.circle(image, (int(given[0]), int(given[1])), 3, (0, 0, 255), -1)
                    found = camera.project(_middle(markers, names, (MARKERS | BESIDE)[label])[None])[0]
                    if np.isfinite(found).all():
                        end = (int(found[0]), int(found[1]))
                        cv2.circle(image, end, 3, (255, 128, 0), -1)
                        cv2.line(image, (int(given[0]), int(given[1])), end, (255, 255, 255), 1)
                centre = np.mean(places, axis=0).astype(int)
                low = np.clip(centre - 150, 0, [image.shape[1] - 300, image.shape[0] - 300])
                panels.append(image[low[1] : low[1] + 300, low[0] : low[0] + 300])
            cv2.imwrite(str(folder / f"frame_{frame:04d}.png"), np.hstack(panels))


def main() -> None:
    """Track, score and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="recording folder to make and keep (default: a temporary one)")
    parser.add_argument("--overlays", type=Path, help="also draw the labelled frames, to be looked at")
    parser.add_argument("--hand", action="store_true", help="hand-made silhouettes, each labelled frame by itself")
    parser.add_argument("--around", type=int, default=AROUND, help="frames before and after a label (default 40)")
    args = parser.parse_args()
    source = data_folder() / "mouse_cylinder"
    labels = Labels.read(source / "labels.json")
    length = probe(load_recording(source).footage[0].source).frames
    before, after = (0, 1) if args.hand else (args.around, args.around)
    layout = Layout.around(labels.frames, before, after, length)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary) / "mouse_cylinder"
        start = time.perf_counter()
        recording = describe(source, folder, layout)
        if not (recording.results / "silhouettes.h5").is_file():
            (given_by_hand if args.hand else cut_stretches)(source, recording, layout)
        track(recording, layout)
        seconds = time.perf_counter() - start
        misses, beside = score(recording, labels, layout, MARKERS), score(recording, labels, layout, BESIDE)
        with open_track(recording.results / "track.h5") as file:
            agreement = file.agreement()
        if args.overlays is not None:
            draw(recording, labels, layout, args.overlays)
    report(misses, beside, agreement, layout, seconds)


def report(misses: list[Miss], beside: list[Miss], agreement: Floats, layout: Layout, seconds: float) -> None:
    """Print the misses of each frame and the benchmark's numbers."""
    for frame in (stretch.label for stretch in layout.stretches):
        words = "  ".join(
            f"{one.label} {one.away:.1f}{'' if one.trusted else '?'}" for one in misses + beside if one.frame == frame
        )
        print(f"frame {frame:4d}  overlap {agreement[layout.row(frame)]:.3f}  {words}")
    away = np.array([one.away for one in misses])
    trusted = np.array([one.trusted for one in misses])
    numbers = {
        "label_median_mm": float(np.median(away)),
        "label_p90_mm": float(np.percentile(away, 90)),
        "trusted_share": float(trusted.mean()),
        "wrong_trusted": int((trusted & (away > FAR)).sum()),
        "overlap": float(np.nanmedian(agreement)),
        "points": len(away),
        "seconds": seconds,
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
