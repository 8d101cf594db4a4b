"""One long recording: what of its work many workers can share, and what one of them must do alone.

    python -m benchmarks.scale [--frames 50000] [--workers 2] [--keep FOLDER] [--dask 1000]

A legless animal of few vertices in three small images is run from its silhouettes to the report at a fifth of the
length and at the whole, by processes on this machine. Every task is timed by the processor time of its worker. What is
done once per recording (learning, joining, the report) is *serial*; an hour of 120 Hz on 100 workers is reckoned of the
two lengths: its serial tasks by a straight line in the number of frames, its parts as their sum over the workers. Which
of the serial tasks all others wait for, and which go on beside the tracking, is told. Memory is what all processes
together hold at once. With ``--keep`` a run that was stopped goes on, and the times of its tasks are added up. With
``--dask`` so many frames are also run by two workers of a Dask scheduler, and the results compared byte for byte.

A real hour has more bytes (eight cameras, a surface of 1,900 vertices, feet and their gait): what these cost one worker
is measured by `benchmarks.long_results`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.small_animal import small_recording
from calibration.foundation.digests import digest_of_path
from calibration.foundation.files import write_text
from vivarig.pipeline import RunOptions, run_recording
from vivarig.pipeline.workers import LocalWorkers

HOUR = 432_000
"""Frames of an hour at 120 Hz."""
HANDS = 100
"""Workers of the cluster that the hour is reckoned for."""
SERIAL = ("prepare", "join", "whole")
BESIDE = ("silhouettes join", "hull join")
"""Serial tasks that go on beside what many workers do: nothing but the report waits for them."""
_NOTED_EVERY = 40


@dataclass
class WatchedWorkers:
    """Local workers, and the processor time of every task by (stage, what is done)."""

    inner: LocalWorkers
    notes: Path
    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0

    def __post_init__(self) -> None:
        """Go on from what a run before noted."""
        if self.notes.is_file():
            self.spent.update(json.loads(self.notes.read_text()))

    def save(self) -> None:
        """Note the times so far."""
        write_text(self.notes, json.dumps(self.spent))

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
                    self.spent[f"{stage} {what}"] += done.result().cpu_seconds
                    self.count += 1
                    if self.count % _NOTED_EVERY == 0:
                        self.save()

        future.add_done_callback(note)
        return future


@dataclass(frozen=True)
class Length:
    """One run: frames, times of its tasks (s), of the process that hands them out, memory and disk (MB)."""

    frames: int
    spent: dict[str, float]
    handing_out: float
    seconds: float
    peak_rss_mb: float
    disk_mb: float

    @property
    def serial(self) -> dict[str, float]:
        """Tasks that one worker does alone, and the handing out."""
        alone = {name: took for name, took in self.spent.items() if name.split()[1] in SERIAL}
        return {**alone, "handing out": self.handing_out}

    @property
    def shared(self) -> float:
        """Seconds of all parts."""
        return sum(took for name, took in self.spent.items() if name.split()[1] not in SERIAL)


def run_length(place: Path, frames: int, count: int) -> Length:
    """Run all stages on so many frames."""
    recording = small_recording(place, frames)
    workers = WatchedWorkers(LocalWorkers(count), place / "times.json")
    began, own = time.monotonic(), time.process_time()
    try:
        with watch_memory(lambda: workers.inner.pids, 0.5) as memory:
            run_recording(recording, RunOptions(), workers=workers, show=False)
    finally:
        workers.inner.shutdown()
        workers.save()
    handing_out = time.process_time() - own - memory.cpu_s
    seconds = time.monotonic() - began
    disk = sum(path.stat().st_size for path in recording.results.rglob("*") if path.is_file()) / 1e6
    return Length(frames, dict(workers.spent), handing_out, seconds, memory.peak_mb, disk)


def same_bytes_with_dask(folder: Path, frames: int) -> bool:
    """Run so many frames here and by two workers of a Dask scheduler; return whether all results are the same bytes."""
    from dask.distributed import LocalCluster

    from vivarig.pipeline.cluster import dask_workers

    made = []
    for name in ("here", "dask"):
        recording = small_recording(folder / name / "newt_recording", frames)
        if name == "here":
            run_recording(recording, RunOptions(workers=2), show=False)
        else:
            with (
                LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
                dask_workers(cluster.scheduler_address) as workers,
            ):
                run_recording(recording, RunOptions(), workers=workers, show=False)
        files = sorted(path for path in recording.results.rglob("*") if path.is_file())
        made.append({path.relative_to(recording.folder).as_posix(): digest_of_path(path) for path in files})
    for name in sorted({*made[0], *made[1]}):
        if made[0].get(name) != made[1].get(name):
            print(f"not the same bytes: {name}")
    return made[0] == made[1]


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
    parser.add_argument("--dask", type=int, default=0, metavar="FRAMES", help="compare with a Dask run of so many")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        same = same_bytes_with_dask(Path(temporary) / "bytes", args.dask) if args.dask else None
        lengths = (args.frames // 5, args.frames)
        runs = [run_length(folder / f"long{frames}", frames, args.workers) for frames in lengths]
    short, long = runs
    for run in runs:
        alone = sum(run.serial.values())
        print(
            f"{run.frames:7d} frames: {run.seconds:7.0f} s by the clock, parts {run.shared:7.0f} s of processor time, "
            f"serial {alone:6.1f} s ({100 * alone / (alone + run.shared):.1f} %), memory {run.peak_rss_mb:.0f} MB, "
            f"disk {run.disk_mb:.0f} MB"
        )
    hour = reckoned(short, long, HOUR)
    waited = {name: took for name, took in hour.items() if name not in BESIDE}
    print(f"{'serial task':<22}{short.frames:>10}{long.frames:>10}{'an hour':>10}   s")
    for name, took in sorted(hour.items(), key=lambda item: -item[1]):
        beside = "  (beside the parts)" if name in BESIDE else ""
        print(f"{name:<22}{short.serial.get(name, 0.0):10.1f}{long.serial[name]:10.1f}{took:10.1f}{beside}")
    parts = long.shared / long.frames * HOUR / HANDS
    print(
        f"an hour of 120 Hz on {HANDS} workers: parts {parts / 60:.1f} minutes, serial {sum(hour.values()) / 60:.1f} "
        f"minutes in all, {sum(waited.values()) / 60:.1f} of them waited for by all, the longest "
        f"{max(hour.values()) / 60:.1f} minutes ({max(hour, key=lambda n: hour[n])})"
    )
    numbers = {
        "serial_minutes_hour_100_workers": sum(hour.values()) / 60,
        "waited_minutes_hour_100_workers": sum(waited.values()) / 60,
        "longest_serial_minutes": max(hour.values()) / 60,
        "parts_minutes_hour_100_workers": parts / 60,
        "serial_share": sum(long.serial.values()) / (sum(long.serial.values()) + long.shared),
        "rss_growth": long.peak_rss_mb / short.peak_rss_mb,
        "peak_rss_mb": long.peak_rss_mb,
        "disk_mb_per_1000_frames": 1e3 * long.disk_mb / long.frames,
        "frames": long.frames,
        "serial_s": long.serial,
        "lengths": [asdict(run) for run in runs],
        **({} if same is None else {"same_bytes_with_dask": same}),
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
