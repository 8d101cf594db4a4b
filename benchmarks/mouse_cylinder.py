"""A real laboratory recording, one black mouse in a plastic cylinder: tracked from its videos, scored on 3D labels.

``python -m benchmarks.mouse_cylinder [--folder DIR] [--overlays DIR]``. The recording of ../shared/data (or
VIVARIG_DATA) as it comes, built-in mouse, defaults only. To save time only stretches of 80 frames around the labelled
ones are cut out, with backgrounds learnt from the whole recording; all other frames have empty silhouettes and stay
untracked, so that size and shape of the animal are found from the stretches together. Labels are marked by eye
(1.7 mm); a label's place on the body is known by its name.
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
from calibration.foundation.arrays import Floats
from calibration.foundation.result_files import open_results
from calibration.foundation.trust import Trust
from capture.recordings.masks import create_masks, read_masks
from capture.recordings.recording import Footage, Recording, load_recording, save_recording
from capture.recordings.video import probe, read_frames
from capture.silhouettes.segment import learn_models, segment_recording
from tracking.sequence.track_file import open_track
from vivarig.cli import main as vivarig

BEFORE, AFTER = 40, 40
"""Frames of a stretch before and after the labelled one (which is the first of those after)."""
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
BESIDE = {"tail_tip": ("tail_end",)}


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


def describe(source: Path, folder: Path) -> Recording:
    """Write recording.toml and rig.toml that name the shared videos."""
    folder.mkdir(parents=True, exist_ok=True)
    given = load_recording(source)
    save_rig(load_rig(source / "rig.toml"), folder / "rig.toml")
    footage = tuple(Footage(one.name, one.source) for one in given.footage)
    save_recording(Recording(folder, given.name, given.rate_hz, given.subject, load_rig(folder / "rig.toml"), footage))
    return load_recording(folder)


def cut_stretches(recording: Recording, frames: list[int], length: int) -> None:
    """Write silhouettes.h5 of the whole recording, empty but for the stretches around ``frames``."""
    models = learn_models(recording, workers=1)
    names = list(recording.need_rig().names)
    sizes = [camera.size for camera in recording.need_rig().cameras]
    parameters: dict[str, object] = {}
    pieces: list[tuple[int, Path]] = []
    for frame in frames:
        first, stop = max(frame - BEFORE, 0), min(frame + AFTER, length)
        piece = recording.folder / "stretches" / f"{frame}.h5"
        piece.parent.mkdir(exist_ok=True)
        segment_recording(recording, piece, start=first, stop=stop, models=models, workers=1)
        pieces.append((first, piece))
    recording.results.mkdir(exist_ok=True)
    with open_results(pieces[0][1], stage="silhouettes") as file:
        parameters = {**json.loads(str(file.attrs["parameters"])), "start": 0}
    with create_masks(recording.results / "silhouettes.h5", names, sizes, length, parameters) as writer:
        # Frames outside are written too, as empty: a file that says more than it holds is refused.
        for name, (width, height) in zip(names, sizes, strict=True):
            for start in range(0, length, 32):
                rows = min(32, length - start)
                empty = np.zeros((rows, height, -(-width // 8)), np.uint8)
                writer.write(name, start, empty, np.full(rows, np.nan, np.float32), np.zeros(rows, np.uint16))
        for first, piece in pieces:
            with open_results(piece, stage="silhouettes") as file:
                for name in names:
                    group = file[f"cameras/{name}"]
                    writer.write(name, first, group["masks"][:], group["agreement"][:], group["flags"][:])


def score(recording: Recording, labels: Labels, pairs: dict[str, tuple[str, ...]]) -> list[Miss]:
    """Compare the markers with the labels; a marker of a frame that was not tracked is infinitely far."""
    with open_track(recording.results / "track.h5") as file:
        names, markers, trust = list(file.marker_names), file.markers(), file.trust()
        by_marker = file.limb_trust()[:, file.marker_limbs] if file.limb_names else None
    misses = []
    for frame, points in labels.points.items():
        for label, point in points.items():
            if label in pairs:
                which = [names.index(marker) for marker in pairs[label]]
                away = float(np.linalg.norm(markers[frame, which].mean(axis=0) - point))
                worst = int(trust[frame]) if by_marker is None else int(by_marker[frame, which].max())
                misses.append(Miss(frame, label, away if np.isfinite(away) else np.inf, worst == int(Trust.TRUSTED)))
    return misses


def _middle(markers: Floats, names: list[str], which: tuple[str, ...]) -> Floats:
    return np.asarray(markers[[names.index(name) for name in which]].mean(axis=0))


def draw(recording: Recording, labels: Labels, folder: Path) -> None:
    """Draw silhouettes, the track's outline, markers and labels over the images of the labelled frames."""
    folder.mkdir(parents=True, exist_ok=True)
    rig = recording.need_rig()
    with open_track(recording.results / "track.h5") as file:
        names, faces = list(file.marker_names), file.faces
        for frame in labels.frames:
            panels = []
            surface, markers = file.vertices(frame), file.markers(frame)
            for index, camera in enumerate(rig.cameras):
                image = next(iter(read_frames(recording.footage[index].source, frame, frame + 1)))[1].copy()
                image = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
                seen = read_masks(recording.results / "silhouettes.h5", camera.name, frame)[0].astype(np.uint8)
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
    args = parser.parse_args()
    source = data_folder() / "mouse_cylinder"
    labels = Labels.read(source / "labels.json")
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary) / "mouse_cylinder"
        start = time.perf_counter()
        recording = describe(source, folder)
        if not (recording.results / "silhouettes.h5").is_file():
            cut_stretches(recording, labels.frames, probe(recording.footage[0].source).frames)
        vivarig(["track", str(folder)])
        seconds = time.perf_counter() - start
        misses, beside = score(recording, labels, MARKERS), score(recording, labels, BESIDE)
        with open_track(recording.results / "track.h5") as file:
            agreement = file.agreement()
        if args.overlays is not None:
            draw(recording, labels, args.overlays)
    report(misses, beside, agreement, labels, seconds)


def report(misses: list[Miss], beside: list[Miss], agreement: Floats, labels: Labels, seconds: float) -> None:
    """Print the misses of each frame and the benchmark's numbers."""
    for frame in labels.frames:
        words = "  ".join(
            f"{one.label} {one.away:.1f}{'' if one.trusted else '?'}" for one in misses + beside if one.frame == frame
        )
        print(f"frame {frame:4d}  overlap {agreement[frame]:.3f}  {words}")
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
