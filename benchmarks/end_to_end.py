"""The whole pipeline, 640x480, from videos to report, on all cores of this machine.

    python -m benchmarks.end_to_end [--frames 320] [--workers N] [--peers | --peers-alone | --timeline]

The sample mouse is played there and back for longer recordings. A small run first fills the compiler's cache and is not
counted. The same recording is then run at several lengths and with half of its cameras, and a straight line is fitted:
seconds = start-up + frames x (per frame + per camera and frame x cameras). ``fps`` is that of the longest, everything
counted from the start of the processes to the report; ``fps_no_hull`` is that of the same frames up to the skeleton,
for which no hull is made. The shares are of the time spent by all workers. The middle one
is also run by one worker, which says what the second one brings. Memory is what all processes together hold at once.
The processor time per frame is what the estimate of docs/measured/speed-and-memory.md rests on. With ``--peers`` robust
triangulation by aniposelib runs in its own environment on as many points a frame as we have markers; the network on a
GPU that must find these points in the images is not counted. DANNCE needs a GPU: its line is quoted. ``--timeline``
runs the longest alone and prints which worker did what when, and the same by processor time, as cores of their own
would have done it: for a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import cut_recording, there_and_back
from benchmarks.measuring.reference_kernel import reference_kernel_s
from benchmarks.measuring.timeline import TaskTime, WatchedWorkers, laid_out, print_timelines
from benchmarks.triangulation import PEER_ROBUST_POINTS, detections, peer_of, ring_rig
from calibration.cameras.triangulation import triangulate
from vivarig.pipeline import RunOptions, StageOutcome, run_recording

MARKERS = 56
"""Virtual markers of the mouse."""
DANNCE_FPS = 10.5
DANNCE = (
    f"DANNCE (Dunn et al. 2021), 6 views, a network on a Titan V: {DANNCE_FPS} frames per second as published, not run"
)
LENGTH = 100
"""Frames of the sample."""


@dataclass(frozen=True)
class Timing:
    """One run: its size, time by the clock, processor time and memory, what its stages took, and its tasks.

    ``quiet`` are the tasks laid out by their processor time.
    """

    frames: int
    cameras: int
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float
    outcomes: list[StageOutcome]
    tasks: list[TaskTime]
    quiet: list[TaskTime]


def timed_run(place: Path, frames: int, cameras: int, workers: int, until: str = "report") -> Timing:
    """Make a recording and run all stages on it, or those that one needs."""
    recording = cut_recording(place, frames=there_and_back(LENGTH, frames), cameras=cameras)
    pool = WatchedWorkers(workers)
    try:
        with watch_memory(lambda: pool.pids) as memory:
            outcomes = run_recording(recording, RunOptions(until), workers=pool, show=False)
        seconds = time.monotonic() - pool.made
    finally:
        pool.shutdown()
    cpu = sum(outcome.cpu_seconds for outcome in outcomes)
    assert pool.job is not None
    quiet = laid_out(pool.log, pool.job, workers)
    return Timing(frames, cameras, seconds, cpu, memory.peak_mb, outcomes, pool.log, quiet)


def fitted(runs: list[Timing], values: list[float]) -> tuple[np.ndarray, float]:
    """Return start-up, per frame, per camera and frame (s), and the largest misfit as a share of the value."""
    rows = np.array([[1.0, run.frames, run.frames * run.cameras] for run in runs])
    wanted = np.array(values)
    line = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    return line, float(np.abs(rows @ line / wanted - 1.0).max())


def peers() -> dict[str, float]:
    """Run aniposelib's robust triangulation, 8 cameras, beside ours on the same points; print and return the figures.

    By processor time, frames per second of one core.
    """
    rig = ring_rig()
    _, clean, wrong = detections(rig, np.random.default_rng(1))
    peer = peer_of(rig, clean, wrong)
    triangulate(rig, wrong[:, :100])  # compile
    some = wrong[:, :PEER_ROBUST_POINTS]
    begun = time.process_time()
    triangulate(rig, some)
    ours = time.process_time() - begun
    theirs = float(peer["robust_cpu_s"])
    frames = PEER_ROBUST_POINTS / MARKERS
    print(DANNCE)
    print(
        f"robust triangulation alone of {MARKERS} points a frame that others found, 8 cameras, frames per second of "
        f"one core: aniposelib {frames / theirs:.2f}, ours {frames / ours:.0f}"
    )
    return {
        "aniposelib_triangulation_fps": frames / theirs,
        "triangulation_fps": frames / ours,
        "dannce_fps_quoted": DANNCE_FPS,
    }


def main() -> None:
    """Run, print the share of each stage and the JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=320, help="frames of the longest recording")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peers", action="store_true", help="run aniposelib beside it")
    parser.add_argument("--peers-alone", action="store_true", help="run aniposelib and nothing else")
    parser.add_argument("--timeline", action="store_true", help="run the longest alone and print who did what when")
    args = parser.parse_args()
    if args.peers_alone:
        print(json.dumps(peers()))
        return
    sizes = [(args.frames, 8), (args.frames // 2, 8), (args.frames // 4, 8), (args.frames // 2, 4)]
    with tempfile.TemporaryDirectory() as folder:
        timed_run(Path(folder) / "warm", 6, 8, args.workers)
        if args.timeline:
            run = timed_run(Path(folder) / "r", *sizes[0], args.workers)
            print(json.dumps(print_timelines(run.tasks, run.quiet, args.workers, run.seconds)))
            return
        runs = [timed_run(Path(folder) / f"r{k}", *size, args.workers) for k, size in enumerate(sizes)]
        bare = timed_run(Path(folder) / "bare", *sizes[0], args.workers, "skeleton")
        alone = timed_run(Path(folder) / "alone", *sizes[1], 1)
    print("frames  cameras  seconds  processor s  frames/s  memory MB")
    for run in runs:
        print(
            f"{run.frames:6d}  {run.cameras:7d}  {run.seconds:7.1f}  {run.cpu_seconds:11.1f}  "
            f"{run.frames / run.seconds:8.2f}  {run.peak_rss_mb:9.0f}"
        )
    line, misfit = fitted(runs, [run.cpu_seconds for run in runs])
    clock, clock_misfit = fitted(runs, [run.seconds for run in runs])
    for what, (start, frame, camera), off in (("processor", line, misfit), ("clock", clock, clock_misfit)):
        print(
            f"{what} time: {start:.1f} s + {1e3 * frame:.0f} ms per frame + {1e3 * camera:.1f} ms per camera and frame "
            f"(largest misfit {100 * off:.0f} %)"
        )
    hour = 120 * 3600 * float(line[1] + 8 * line[2]) / 3600
    print(f"one hour of 8 cameras at 120 Hz: {hour:.0f} core hours, {0.6 * hour:.0f} minutes on 100 workers")
    speedup = alone.seconds / runs[1].seconds
    print(
        f"{alone.frames} frames by one worker: {alone.seconds:.1f} s ({alone.cpu_seconds:.1f} s processor), by "
        f"{args.workers}: {runs[1].seconds:.1f} s, {speedup:.2f} times as fast"
    )
    print(f"up to the skeleton, without hulls: {bare.frames / bare.seconds:.2f} frames per second")
    longest = runs[0]
    total = sum(outcome.seconds for outcome in longest.outcomes)
    for outcome in longest.outcomes:
        per_frame = 1e3 * outcome.cpu_seconds / longest.frames
        share = 100 * outcome.seconds / total
        print(f"{outcome.name:<12} {outcome.seconds:8.1f} s  {share:5.1f} %  {per_frame:7.1f} ms processor per frame")
    numbers = {
        "fps": longest.frames / longest.seconds,
        "fps_no_hull": bare.frames / bare.seconds,
        "stage_share": {outcome.name: outcome.seconds / total for outcome in longest.outcomes},
        "peak_rss_mb": max(run.peak_rss_mb for run in runs),
        "frames": longest.frames,
        "cameras": longest.cameras,
        "workers": args.workers,
        "cpu_s_per_frame": longest.cpu_seconds / longest.frames,
        "speedup_of_workers": speedup,
        "core_hours_per_hour": hour,
        "marginal_fps": 1.0 / float(clock[1] + 8 * clock[2]),
        "fit_cpu_s": {"start": line[0], "frame": line[1], "camera_frame": line[2], "misfit": misfit},
        "stage_cpu_s": {outcome.name: outcome.cpu_seconds for outcome in longest.outcomes},
        "reference_kernel_s": reference_kernel_s(),
    }
    if args.peers:
        numbers |= peers()
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
