"""Which camera is wrong, and how late each is: faults made on purpose on recordings nobody here built.

The videos of ../shared/data/stranger are cut out once each, without repair, as `vivarig run` does before the views
judge each other. Then a camera is made late by 2 to 10 frames (either way) or turned by 1 to 3 degrees about any axis:
40 trials on the walk, and 20 sound ones on stretches and choices of cameras of all recordings. `vivarig sync` is the
command itself, on videos written anew with frames shifted. Prints a table; the last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig, save_rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from capture.camera_checks.faults import Fault, check_cameras
from capture.camera_checks.outlines import Outlines, join_outlines, outline
from capture.camera_checks.stored import stored_outlines
from capture.recordings.recording import Recording, load_recording, save_recording
from capture.recordings.video import read_frames, write_video
from capture.silhouettes import ModelOptions, segment_recording
from vivarig.commands import sync

__all__ = ["camera_checks", "late", "outlines_of", "true_outlines", "turned"]

REPOSITORY = Path(__file__).resolve().parent.parent
TRIALS = 40
SOUND = 20
SHIFTS = {"walk": (("in step", {}), ("shifted", {"cam02": 5, "cam05": -3})),
          "box": (("in step", {}), ("shifted", {"cam02": -4, "cam03": 7}))}  # fmt: skip


def outlines_of(recording: Recording, *, plates: bool = True) -> list[Outlines]:
    """Return the outlines that the program cuts out of a recording's videos."""
    if not plates:
        footage = tuple(replace(one, background=None) for one in recording.footage)
        recording = replace(recording, footage=footage)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "silhouettes.h5"
        segment_recording(recording, path, ModelOptions(repair=False))
        return stored_outlines(path, recording.need_rig())[0]


def true_outlines(folder: Path, rig: Rig) -> list[Outlines]:
    """Return the outlines of a stranger's true masks."""
    with np.load(folder / "truth.npz") as truth:
        return [
            join_outlines([outline(np.unpackbits(m, axis=-1, count=c.size[0]).view(np.bool_), c) for m in masks])
            for c in rig
            for masks in (truth[f"masks_{c.name}"],)
        ]


def late(outlines: list[Outlines], camera: int, frames: int) -> list[Outlines]:
    """Return outlines of which one camera's are late by so many frames; frames that one has not are left out."""
    count = len(outlines[0]) - abs(frames)
    rows = np.arange(count) + max(frames, 0)
    return [one.take(rows - frames if index == camera else rows) for index, one in enumerate(outlines)]


def turned(rig: Rig, camera: int, turn: np.ndarray) -> Rig:
    """Return a rig whose file is wrong about one camera: the real one is turned by ``turn``, radians, camera axes."""
    cameras = list(rig)
    one = cameras[camera]
    assert isinstance(one, LensCamera)
    rotation = rotation_from_vector(turn) @ one.camera_from_world.rotation
    cameras[camera] = replace(one, camera_from_world=RigidTransform(rotation, -rotation @ one.centre))
    return Rig(tuple(cameras))


def faulty_trials(rig: Rig, outlines: list[Outlines], count: int, seed: int = 0) -> tuple[int, list[str]]:
    """Return in how many trials the wrong camera is named with its amount, and what was said in the others."""
    rng = np.random.default_rng(seed)
    good, bad = 0, []
    for trial in range(count):
        camera = int(rng.integers(len(rig)))
        name = rig.names[camera]
        if trial % 2 == 0:
            frames = int(rng.integers(2, 11)) * int(rng.choice([-1, 1]))
            seen = late(outlines, camera, frames)
            faults = check_cameras(rig, seen, np.arange(len(seen[0]))).faults
            right = _only(faults, name, "late") and abs(faults[0].frames - frames) <= 0.5
            made = f"late {frames}"
        else:
            axis = rng.normal(size=3)
            degrees = rng.uniform(1.0, 3.0) * axis / np.linalg.norm(axis)
            faults = check_cameras(
                turned(rig, camera, np.radians(degrees)), outlines, np.arange(len(outlines[0]))
            ).faults
            right = _only(faults, name, "turned") and bool(np.linalg.norm(faults[0].degrees - degrees) <= 0.5)
            made = f"turned {np.round(degrees, 2)}"
        good += right
        if not right:
            said = [(f.camera, f.kind, round(f.frames, 2), np.round(f.degrees, 2).tolist()) for f in faults]
            bad.append(f"{name} {made}: {said}")
    return good, bad


def _only(faults: tuple[Fault, ...], name: str, kind: str) -> bool:
    return len(faults) == 1 and (faults[0].camera, faults[0].kind) == (name, kind)


def sound_trials(rig: Rig, outlines: list[Outlines], count: int, seed: int = 1) -> int:
    """Return how many of some choices of cameras and stretches, all sound, give an alarm; the first is the whole."""
    rng = np.random.default_rng(seed)
    alarms = 0
    for trial in range(count):
        frames = len(outlines[0])
        chosen = (
            np.arange(len(rig))
            if trial == 0
            else np.sort(rng.choice(len(rig), int(rng.integers(min(4, len(rig)), len(rig) + 1)), replace=False))
        )
        length = frames if trial == 0 else int(rng.integers(frames // 2, frames + 1))
        rows = int(rng.integers(frames - length + 1)) + np.arange(length)
        part = Rig(tuple(rig[int(index)] for index in chosen))
        alarms += bool(check_cameras(part, [outlines[index].take(rows) for index in chosen], rows).faults)
    return alarms


def shifted(recording: Recording, shifts: dict[str, int], folder: Path, *, rig: bool) -> Path:
    """Write a recording whose named cameras are late by so many frames, all videos written anew; return its folder."""
    folder.mkdir(parents=True)
    count = min(sum(1 for _ in read_frames(one.source, gray=True)) for one in recording.footage)
    latest = max([0, *shifts.values()])
    length = count - latest + min([0, *shifts.values()])
    footage = []
    for one in recording.footage:
        first = latest - shifts.get(one.name, 0)
        video = folder / f"{one.name}.mp4"
        images = (image for _, image in read_frames(one.source, first, first + length))
        write_video(video, images, recording.rate_hz, quality=18)
        footage.append(replace(one, source=video))
    if rig:
        save_rig(recording.need_rig(), folder / "rig.toml")
    save_recording(replace(recording, folder=folder, footage=tuple(footage), rig=recording.rig if rig else None))
    return folder


def sync_trials(data: Path) -> tuple[int, int, int, list[str]]:
    """Run `vivarig sync`; return offsets that are wrong and sure, that cannot be told, and all; and a line of each."""
    wrong, unsure, everything, lines = 0, 0, 0, []
    parser = argparse.ArgumentParser()
    sync.add_arguments(parser)
    with tempfile.TemporaryDirectory() as scratch:
        for name, cases in SHIFTS.items():
            recording = load_recording(data / "stranger" / name)
            for with_rig in (True, False):
                for label, shifts in cases:
                    place = shifted(recording, dict(shifts), Path(scratch) / f"{name}_{label}_{with_rig}", rig=with_rig)
                    found = sync.run(parser.parse_args([str(place)])).numbers["offsets"]
                    told = {camera: one["frames"] for camera, one in found.items() if not one["cannot_tell"]}
                    zero = shifts.get(next(iter(told)), 0) if told else 0
                    off = {c: f - (shifts.get(c, 0) - zero) for c, f in told.items()}
                    wrong += sum(abs(value) > 0.5 for value in off.values())
                    unsure += len(found) - len(told)
                    everything += len(found)
                    worst = max(map(abs, off.values()), default=float("nan"))
                    case = f"{name}, {'rig' if with_rig else 'no rig'}, {label}"
                    lines.append(f"{case}: told {len(told)} of {len(found)}, worst {worst:.2f} frames")
    return wrong, unsure, everything, lines


def camera_checks(data: Path, trials: int = TRIALS, sound: int = SOUND) -> dict[str, float]:
    """Measure by so many trials of each kind, print a table, and return the numbers."""
    found: dict[str, float] = {}
    walk = load_recording(data / "stranger" / "walk")
    rig = walk.need_rig()
    every = Rig(tuple(rig)[::2])
    sets = {"true masks": true_outlines(data / "stranger" / "walk", rig), "own masks": outlines_of(walk)}
    for label, outlines in sets.items():
        for views, part, seen in ((8, rig, outlines), (4, every, outlines[::2])):
            started = time.perf_counter()
            good, bad = faulty_trials(part, seen, trials)
            each = (time.perf_counter() - started) / trials
            print(f"walk, {views} views, {label}: named rightly {good} of {trials}, {each:.1f} s each", flush=True)
            for line in bad:
                print(f"    {line}")
            key = f"camera_named_{'true' if label == 'true masks' else 'own'}{views}"
            found[key] = good / trials
    alarms = {f"walk, {label}": sound_trials(rig, seen, sound) for label, seen in sets.items()}
    others = [data / "stranger" / "box", data / "stranger" / "walk_dark_shadow",
              REPOSITORY / "sample_data" / "mouse", REPOSITORY / "sample_data" / "human"]  # fmt: skip
    for folder in others:
        recording = load_recording(folder)
        alarms[folder.name] = sound_trials(recording.need_rig(), outlines_of(recording), sound)
    for label, count in alarms.items():
        print(f"sound, {label}: {count} alarms of {sound}", flush=True)
    wrong, unsure, everything, lines = sync_trials(data)
    print("\n".join(lines))
    print(f"vivarig sync: {wrong} of {everything} offsets wrong and sure, {unsure} cannot be told")
    found["camera_named"] = min(found["camera_named_own8"], found["camera_named_own4"])
    found["false_alarms"] = float(sum(alarms.values()))
    found["sync_wrong"] = float(wrong)
    found["sync_cannot_tell"] = unsure / everything
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS, help="cameras made wrong on purpose, per set of views")
    parser.add_argument("--sound", type=int, default=SOUND, help="sound choices of cameras, per recording")
    args = parser.parse_args()
    data = Path(os.environ.get("VIVARIG_DATA", REPOSITORY.parent / "shared" / "data"))
    print(json.dumps(camera_checks(data, args.trials, args.sound)))


if __name__ == "__main__":
    main()
