"""One long recording: what of its work many workers can share, and what one of them must do alone.

    python -m benchmarks.scale [--frames 50000] [--workers 2] [--keep FOLDER]

A studio film of the mouse in small images, played there and back, is run from its videos to the report at a fifth of
the length and at the whole, by processes on this machine. Every task is timed by the processor time of its worker. What
is done once per recording (learning, joining, the report) is *serial*; an hour of 120 Hz on 100 workers is reckoned of
the two lengths: its serial tasks by a straight line in the number of frames, its parts as their sum over the workers.
Memory is what all processes together hold at once; with ``--keep`` a run that was stopped goes on (its times are then
those of what was left to do, and the JSON line says so).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import there_and_back
from capture.recordings.recording import Recording, load_recording
from capture.recordings.video import read_frames, write_video
from capture.studio.films.simulation import Plan, RingPlan, simulate
from vivarig.pipeline import RunOptions, run_recording
from vivarig.pipeline.workers import LocalWorkers

FILM = Plan(name="long", frames=120, ring=RingPlan(cameras=4, size=(320, 240)))
HOUR = 432_000
"""Frames of an hour at 120 Hz."""
HANDS = 100
"""Workers of the cluster that the hour is reckoned for."""
SERIAL = ("prepare", "join", "whole")


@dataclass
class WatchedWorkers:
    """Local workers, and the processor time of every task by (stage, what is done)."""

    inner: LocalWorkers
    spent: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def capacity(self) -> int:
        """How many tasks run at a time."""
        return self.inner.capacity

    def submit(self, function: Any, /, *args: Any) -> Future[Any]:
        """Run a task and note what it took."""
        what, stage = args[0].__name__, args[2]
        future = self.inner.submit(function, *args)

        def note(done: Future[Any]) -> None:
            if not done.cancelled() and done.exception() is None:
                with self.lock:
                    self.spent[stage, what] += done.result().cpu_seconds

        future.add_done_callback(note)
        return future


@dataclass(frozen=True)
class Length:
    """One run: frames, times of its tasks (s), of the process that hands them out, memory and disk (MB)."""

    frames: int
    spent: dict[tuple[str, str], float]
    handing_out: float
    seconds: float
    peak_rss_mb: float
    disk_mb: float

    @property
    def serial(self) -> dict[str, float]:
        """Tasks that one worker does alone, and the handing out."""
        alone = {f"{stage} {what}": took for (stage, what), took in self.spent.items() if what in SERIAL}
        return {**alone, "handing out": self.handing_out}

    @property
    def shared(self) -> float:
        """Seconds of all parts."""
        return sum(took for (_, what), took in self.spent.items() if what not in SERIAL)


def lengthened(recording: Recording, frames: int) -> None:
    """Play each video of a recording there and back until it has so many frames."""
    for one in recording.footage:
        assert one.source is not None
        images = [image for _, image in read_frames(one.source, gray=True)]
        if len(images) < frames:
            write_video(one.source, (images[k] for k in there_and_back(len(images), frames)), recording.rate_hz)


def long_recording(place: Path, frames: int) -> Recording:
    """Make the film of so many frames, unless it is there."""
    if not (place / "recording.toml").is_file():
        lengthened(simulate(FILM, place).recording, frames)
        (place / "truth.h5").unlink()  # of the frames before they were played there and back
    return load_recording(place)


def run_length(place: Path, frames: int, count: int) -> Length:
    """Run all stages on so many frames."""
    recording = long_recording(place, frames)
    workers = WatchedWorkers(LocalWorkers(count))
    began, own = time.monotonic(), time.process_time()
    try:
        with watch_memory(lambda: workers.inner.pids, 0.5) as memory:
            run_recording(recording, RunOptions(), workers=workers, show=False)
    finally:
        workers.inner.shutdown()
    disk = sum(path.stat().st_size for path in recording.results.rglob("*") if path.is_file()) / 1e6
    handing_out = time.process_time() - own
    return Length(frames, dict(workers.spent), handing_out, time.monotonic() - began, memory.peak_mb, disk)


def reckoned(short: Length, long: Length, frames: int) -> dict[str, float]:
    """Serial tasks of a recording of so many frames, by a line through two lengths, s."""
    found = {}
    for name, at_long in long.serial.items():
        at_short = short.serial.get(name, 0.0)
        slope = (at_long - at_short) / (long.frames - short.frames)
        found[name] = max(at_long, at_long + slope * (frames - long.frames))
    return found


def main() -> None:
    """Run both lengths, print what each task took and the hour reckoned from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=50_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="folder for the recordings (default: one that is removed)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        short, long = (
            run_length(folder / f"long{frames}", frames, args.workers) for frames in (args.frames // 5, args.frames)
        )
    for run in (short, long):
        alone = sum(run.serial.values())
        print(
            f"{run.frames:7d} frames: {run.seconds:7.0f} s by the clock, parts {run.shared:7.0f} s of processor time, "
            f"serial {alone:6.1f} s ({100 * alone / (alone + run.shared):.1f} %), memory {run.peak_rss_mb:.0f} MB, "
            f"disk {run.disk_mb:.0f} MB"
        )
    hour = reckoned(short, long, HOUR)
    print(f"{'serial task':<22}{short.frames:>10}{long.frames:>10}{'an hour':>10}   s")
    for name, took in sorted(hour.items(), key=lambda item: -item[1]):
        print(f"{name:<22}{short.serial.get(name, 0.0):10.1f}{long.serial[name]:10.1f}{took:10.1f}")
    parts = long.shared / long.frames * HOUR / HANDS
    print(
        f"an hour of 120 Hz on {HANDS} workers: parts {parts / 60:.1f} minutes, serial {sum(hour.values()) / 60:.1f} "
        f"minutes in all, the longest {max(hour.values()) / 60:.1f} minutes ({max(hour, key=lambda n: hour[n])})"
    )
    numbers = {
        "serial_minutes_hour_100_workers": sum(hour.values()) / 60,
        "longest_serial_minutes": max(hour.values()) / 60,
        "parts_minutes_hour_100_workers": parts / 60,
        "rss_growth": long.peak_rss_mb / short.peak_rss_mb,
        "peak_rss_mb": long.peak_rss_mb,
        "disk_mb_per_1000_frames": 1e3 * long.disk_mb / long.frames,
        "frames": long.frames,
        "serial_s": long.serial,
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
