"""A real laboratory recording by the clock: mouse_cylinder, 5 cameras 1328x1048, no plates, from videos to report.

    python -m benchmarks.real_recording [--frames 600] [--workers 2] [--before CHECKOUT | --timeline]

``vivarig run`` in a process of its own, nothing set but the last frame; start-up and learning the backgrounds are
counted. Memory is what all its processes hold at once. With ``--before`` another checkout of this repository runs the
same first, and the ratio of the two is printed. ``--timeline`` prints which worker did what when, and the same by
processor time, as cores of their own would have done it: for a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.crane.sequence import data_folder
from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import linked_recording
from benchmarks.measuring.timeline import WatchedWorkers, laid_out, print_timelines
from capture.recordings.recording import load_recording
from vivarig.pipeline import RunOptions, run_recording

HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Timing:
    """One run: time by the clock, s, most memory and the size of the silhouettes, MB."""

    seconds: float
    peak_rss_mb: float
    silhouettes_mb: float


def family(process: int) -> list[int]:
    """Return a process and all that it started (Linux)."""
    found = [process]
    for one in found:
        try:
            tasks = list(Path(f"/proc/{one}/task").iterdir())
            found += [int(word) for task in tasks for word in (task / "children").read_text().split()]
        except OSError:
            continue  # it has ended meanwhile
    return found


def timed(checkout: Path, place: Path, frames: int, workers: int) -> Timing:
    """Run the first frames of a recording with the program of a checkout."""
    words = ["run", str(place), "--workers", str(workers), "--set", f"silhouettes.stop={frames}"]
    start = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "vivarig.cli", *words],
        env={**os.environ, "PYTHONPATH": str(checkout)}, cwd=checkout, stdout=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        with watch_memory(lambda: family(process.pid), own=False) as memory:
            code = process.wait()
    seconds = time.monotonic() - start
    if code not in (0, 1):  # 1: done, and a figure is below its limit
        raise SystemExit(f"vivarig run ended with {code}")
    return Timing(seconds, memory.peak_mb, (place / "results" / "silhouettes.h5").stat().st_size / 1e6)


def watched(place: Path, frames: int, workers: int) -> dict[str, float]:
    """Run the first frames of a recording and print which worker did what when; return times and what was idle."""
    pool = WatchedWorkers(workers)
    try:
        options = RunOptions(changes={"silhouettes": {"stop": str(frames)}})
        run_recording(load_recording(place), options, workers=pool, show=False)
        seconds = time.monotonic() - pool.made
    finally:
        pool.shutdown()
    assert pool.job is not None
    return print_timelines(pool.log, laid_out(pool.log, pool.job, workers), workers, seconds)


def main() -> None:
    """Run, print and end with the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--before", type=Path, help="another checkout, to be compared with")
    parser.add_argument("--timeline", action="store_true", help="print who did what when, and no more")
    args = parser.parse_args()
    runs: dict[str, Timing] = {}
    with tempfile.TemporaryDirectory() as folder:
        if args.timeline:
            place = linked_recording(data_folder() / "mouse_cylinder", Path(folder) / "now")
            print(json.dumps(watched(place, args.frames, args.workers)))
            return
        for name, checkout in (("before", args.before), ("now", HERE)):
            if checkout is not None:
                place = linked_recording(data_folder() / "mouse_cylinder", Path(folder) / name)
                runs[name] = timed(checkout.resolve(), place, args.frames, args.workers)
                print(
                    f"{name:<7} {args.frames} frames: {runs[name].seconds:6.0f} s, "
                    f"{args.frames / runs[name].seconds:.2f} frames per second, {runs[name].peak_rss_mb:.0f} MB, "
                    f"silhouettes {runs[name].silhouettes_mb:.1f} MB",
                    flush=True,
                )
    now = runs["now"]
    numbers = {
        "fps": args.frames / now.seconds,
        "peak_rss_mb": now.peak_rss_mb,
        "silhouettes_mb": now.silhouettes_mb,
        "frames": args.frames,
    }
    if "before" in runs:
        numbers["speed_vs_before"] = runs["before"].seconds / now.seconds
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
