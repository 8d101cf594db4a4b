"""Silhouettes of people filmed by rays, against their true masks. ``python -m benchmarks.filmed_people``.

    python -m benchmarks.filmed_people [--only NAME ...] [--frames N] [--score N] [--sheets DIR]

Bodies are another project's (Anny), their motion is captured, clothes and rooms are made here, the pictures by other
code than the studio's (`benchmarks/people/filming.py`). Each film is cut out with nothing set, with its clips of the
empty room and without. Films are kept in ``.bench/filmed_people``. Some are to choose on, the others to report on.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

from benchmarks.crane.sequence import data_folder
from benchmarks.people.builds import load_build
from benchmarks.people.carrying import RATE_HZ, person
from benchmarks.people.filming import Actor, Sensor, film
from benchmarks.people.rooms import Lamp, Room
from benchmarks.people.wardrobe import Outfit, dressed
from benchmarks.real_silhouettes import iou, linked
from calibration.cameras.rig import Rig, load_rig, save_rig
from capture.recordings.masks import read_masks
from capture.recordings.video import read_frames
from capture.silhouettes import segment_recording
from capture.silhouettes.segment import count_frames, learn_models

FRAMES = 48
KEPT = Path(__file__).resolve().parents[1] / ".bench" / "filmed_people"
RIGS = {"corners": ("cam01", "cam02", "cam03", "cam04"), "mixed": ("cam01", "cam06", "cam03", "cam07")}
#: An agreement below this is worth a look; silhouettes below this IoU are bad.
LOW_AGREEMENT, BAD_IOU = 0.9, 0.9

_WARM = (Lamp((1000.0, 1500.0, 3250.0), (500.0, 500.0), (5.6, 5.1, 4.5)),
         Lamp((-2500.0, -1500.0, 3250.0), (500.0, 300.0), (4.4, 4.6, 5.0)))  # fmt: skip
_ROWS = tuple(
    Lamp((x, y, 3250.0), (150.0, 900.0), (3.2, 3.2, 3.3)) for x in (-2000.0, 1800.0) for y in (-1500.0, 1500.0)
)
_BARE = (Lamp((600.0, -700.0, 3200.0), (120.0, 120.0), (8.0, 7.5, 6.8)),)


@dataclass(frozen=True)
class Film:
    """Build, captured clip and its start in seconds, clothes, room, cameras and sensor of a film."""

    build: str
    clip: str
    start_s: float
    outfit: Outfit
    room: Room
    sensor: Sensor = field(default_factory=Sensor)
    rig: str = "corners"


_BEIGE = (0.50, 0.42, 0.31)
FILMS = {
    "turning": Film(
        "woman", "05_05", 3.6, Outfit((0.62, 0.62, 0.60), (0.17, 0.17, 0.19), sleeves="long", hair_mm=140.0),
        Room("planks", (0.33, 0.20, 0.11), ((0.55, 0.53, 0.47), (0.45, 0.50, 0.55)), _WARM, (0.8, 0.8, 0.85), 3),
    ),
    "rising": Film(
        "man", "140_03", 4.2, Outfit((0.10, 0.22, 0.32), (0.05, 0.05, 0.10), trousers="short", shoes=None),
        Room("tiles", (0.42, 0.36, 0.28), ((0.60, 0.58, 0.52),), _ROWS, (0.6, 0.6, 0.6), 11),
        Sensor(noise=2.5), "mixed",
    ),
    "running": Film(
        "short woman", "127_03", 1.4,
        Outfit((0.35, 0.05, 0.05), (0.06, 0.10, 0.22), shirt_second=(0.45, 0.42, 0.36), pattern="checked",
               skin=(0.22, 0.12, 0.08), hair_mm=100.0),
        Room("carpet", (0.20, 0.21, 0.22), ((0.40, 0.46, 0.40), (0.52, 0.48, 0.42)), _WARM, (0.5, 0.5, 0.5), 23),
        Sensor(shutter=0.3, noise=2.0, quality=23),
    ),
    "working": Film(
        "stout woman", "62_13", 1.8, Outfit((0.50, 0.46, 0.40), (0.12, 0.08, 0.05), sleeves="long", hair_mm=120.0),
        Room("tiles", (0.30, 0.30, 0.31), ((0.52, 0.48, 0.42),), _ROWS, (1.2, 1.2, 1.2), 37),
        Sensor(noise=2.0), "mixed",
    ),
    "lying": Film(
        "child", "111_21", 8.0,
        Outfit((0.55, 0.42, 0.08), (0.07, 0.16, 0.10), trousers="short", shoes=None, skin=(0.55, 0.35, 0.26)),
        Room("planks", (0.36, 0.25, 0.15), ((0.50, 0.50, 0.45), (0.35, 0.45, 0.50)), _WARM, (0.7, 0.7, 0.7), 41),
        Sensor(noise=1.5, quality=22),
    ),
    "boxing": Film(
        "athlete", "14_02", 33.0, Outfit((0.02, 0.02, 0.022), (0.025, 0.025, 0.03), skin=(0.35, 0.2, 0.13)),
        Room("carpet", _BEIGE, ((0.45, 0.40, 0.36), (0.50, 0.52, 0.50)), _BARE, (0.35, 0.35, 0.36), 59),
        Sensor(shutter=0.2, noise=2.0, quality=20),
    ),
}  # fmt: skip
#: Films to choose on; the others were fixed to report on before any was scored.
CHOOSE_ON = ("turning", "rising", "running")


def cast_of(name: str, frames: int) -> tuple[Rig, Actor]:
    """Return the cameras and the dressed person of a film, a moment longer than it."""
    one = FILMS[name]
    moving = person(load_build(one.build), data_folder() / "cmu", one.clip, one.start_s, frames + 1)
    rig = load_rig(data_folder() / "stranger" / "walk" / "rig.toml").subset(RIGS[one.rig])
    return rig, Actor(moving.build, dressed(moving, one.outfit), one.outfit, one.room.seed)


def made_film(name: str, frames: int) -> Path:
    """Return the folder of a film's recording, made if it is not kept."""
    one, folder = FILMS[name], KEPT / f"{name}_{frames}"
    if (folder / "recording.toml").is_file():
        return folder
    rig, actor = cast_of(name, frames)
    folder.mkdir(parents=True, exist_ok=True)
    save_rig(rig, folder / "rig.toml")
    film(folder, rig, one.room, actor, one.sensor, RATE_HZ)
    words = [f'name = "{name}"', f"rate_hz = {RATE_HZ}", 'subject = "human"', 'rig = "rig.toml"']
    for camera in rig.names:
        video = f"videos/{camera}"
        words += [f"[cameras.{camera}]", f'video = "{video}.mp4"', f'background = "{video}_background.mp4"']
    (folder / "recording.toml").write_text("\n".join(words) + "\n")
    return folder


@dataclass(frozen=True, eq=False)
class Scored:
    """IoU with the truth, what is lost and too much as shares of it, and the agreement, each (T, C)."""

    iou: np.ndarray
    lost: np.ndarray
    excess: np.ndarray
    agreement: np.ndarray

    def line(self) -> str:
        """Return a row of the table."""
        bad, low = self.iou < BAD_IOU, self.agreement < LOW_AGREEMENT
        words = {"IoU": self.iou.mean(), "worst view": self.iou.mean(axis=0).min(), "worst frame": self.iou.min()}
        words |= {"lost": self.lost.mean(), "too much": self.excess.mean(), "agreement": np.nanmean(self.agreement)}
        warned = f"bad {bad.sum()} of {bad.size}, warned of {(bad & low).sum()}; warned in vain {(low & ~bad).sum()}"
        return "  ".join(f"{word} {value:.3f}" for word, value in words.items()) + "  " + warned


def scored(folder: Path, plates: bool, score: int | None, sheet: Path | None) -> Scored:
    """Cut a film's silhouettes out, with plates or without, and score all frames or some spread over it."""
    truth = np.load(folder / "truth.npz")
    rows: list[list[list[float]]] = []
    said: list[np.ndarray] = []
    with tempfile.TemporaryDirectory() as scratch:
        recording = linked(folder, Path(scratch), plates=plates)
        models = learn_models(recording, workers=1)
        total = count_frames(recording)
        starts = [0] if score is None else np.linspace(0, total - 1, score).round().astype(int).tolist()
        pictures = []
        for start in starts:
            stop = total if score is None else start + 1
            report = segment_recording(recording, start=start, stop=stop, models=models, workers=1)
            said.append(np.asarray(report.agreement, dtype=float).reshape(stop - start, -1))
            found = [read_masks(recording.results / "silhouettes.h5", camera) for camera in report.names]
            true = [
                np.unpackbits(truth[f"masks_{c}"][start:stop], axis=2)[..., : f.shape[2]].astype(bool)
                for c, f in zip(report.names, found, strict=True)
            ]
            for at in range(stop - start):
                rows.append([_figures(f[at], t[at]) for f, t in zip(found, true, strict=True)])
                if score is not None:
                    pictures.append(
                        [
                            outlined(recording.footage[k].source, start, f[at], t[at])
                            for k, (f, t) in enumerate(zip(found, true, strict=True))
                        ]
                    )
        if sheet is not None and pictures:
            cv2.imwrite(str(sheet), np.vstack([np.hstack(row) for row in pictures]))
    lost, excess, overlap = np.array(rows).transpose(2, 0, 1)
    return Scored(overlap, lost, excess, np.concatenate(said))


def _figures(found: np.ndarray, true: np.ndarray) -> list[float]:
    area = max(1, int(true.sum()))
    return [float((true & ~found).sum() / area), float((found & ~true).sum() / area), iou(found, true)]


def outlined(source: Path, frame: int, found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Return a picture (h, w, 3) of the person: lost red, too much yellow, at 3 times its size."""
    image = next(read_frames(source, frame, frame + 1))[1].copy()
    image = image if image.ndim == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2BGR)
    rows, columns = np.nonzero(true)
    middle = np.clip([rows.mean(), columns.mean()], [130, 90], [true.shape[0] - 130, true.shape[1] - 90]).astype(int)
    cut = np.s_[middle[0] - 130 : middle[0] + 130, middle[1] - 90 : middle[1] + 90]
    plain = cv2.resize(image[cut], None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)
    image[true & ~found] = (0, 0, 255)
    image[found & ~true] = (0, 255, 255)
    return np.hstack([plain, cv2.resize(image[cut], None, fx=2, fy=2, interpolation=cv2.INTER_NEAREST)])


def main() -> None:
    """Make the films that are not kept, cut them out, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(FILMS), default=list(FILMS))
    parser.add_argument("--frames", type=int, default=FRAMES, help="frames of each film")
    parser.add_argument("--score", type=int, default=None, help="score so many frames of each film only")
    parser.add_argument("--plates", choices=["with", "without", "both"], default="both")
    parser.add_argument("--sheets", type=Path, default=None, help="folder for pictures of what is lost and too much")
    parser.add_argument("--make", action="store_true", help="make the films and stop")
    args = parser.parse_args()
    figures: dict[str, float] = {}
    for name in args.only:
        folder = made_film(name, args.frames)
        for plates in (True, False):
            word = "with" if plates else "without"
            if args.make or args.plates not in ("both", word):
                continue
            if args.sheets is not None:
                args.sheets.mkdir(parents=True, exist_ok=True)
            sheet = None if args.sheets is None else args.sheets / f"{name}_{word}.png"
            scores = scored(folder, plates, args.score, sheet)
            figures[f"{name}_{word}_iou"] = float(scores.iou.mean())
            print(f"{name:8s} {word:7s} plates: {scores.line()}", flush=True)
    print(json.dumps({key: round(value, 4) for key, value in figures.items()}))


if __name__ == "__main__":
    main()
