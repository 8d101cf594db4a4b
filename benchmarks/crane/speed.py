"""Frames per second of the whole tracker on the crane sequence, two parts of it side by side."""

from __future__ import annotations

import pickle
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.crane.runs import CRANE, CraneSubject, crane_observations, one_thread
from benchmarks.crane.sequence import UP, Crane
from tracking.fitting.solver import FrameSolver
from tracking.sequence.tracker import Tracker

__all__ = ["tracking_fps"]

PARTS = (55, 88)
"""Key frames where the parts start; their fitted poses are the first guess."""

FRAMES = 30


def tracking_fps(subject: CraneSubject, condition: str, folder: Path) -> float:
    """Wall-clock frames per second: second attempts and smoothing included, start search and compilation not."""
    path = folder / "speed_subject.pickle"
    path.write_bytes(pickle.dumps(subject))
    context = get_context("spawn")
    together, answers = context.Barrier(len(PARTS)), context.Queue()
    processes = [context.Process(target=_part, args=(str(path), condition, key, together, answers)) for key in PARTS]
    for process in processes:
        process.start()
    spans = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    return FRAMES * len(PARTS) / (max(end for _, end in spans) - min(start for start, _ in spans))


def _part(path: str, condition: str, key: int, together: Any, answers: Any) -> None:
    one_thread()
    crane = Crane.load()
    subject: CraneSubject = pickle.loads(Path(path).read_bytes())
    rig, looks = crane_observations(crane, condition, key, key + FRAMES)
    prior = subject.prior()
    sizes = [camera.size for camera in rig]
    tracker = Tracker(
        FrameSolver(subject.cage_rig, subject.template, rig.packed(), sizes, prior, settings=CRANE), rig, up=UP
    )
    pose = subject.keys[crane.protocol["key_frames"].index(key)]
    guess = (pose, prior.back(prior.chart.to_vector(pose.rotations, pose.centres)[1]))
    tracker.track(lambda frame: looks[frame], 3, start=0, guess=guess)  # compiles
    together.wait()
    start = time.time()
    tracker.track(lambda frame: looks[frame], FRAMES, start=0, guess=guess)
    answers.put((start, time.time()))
