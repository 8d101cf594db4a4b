"""Memory and temporary disk at the extremes: 64 cameras, 20,000 frames, images of 3840x2160.

    python -m benchmarks.extremes [--case cameras frames pixels]

Each case is run at an ordinary size and at the extreme, by `vivarig run --workers 1` in a process of its own. Counted
are the most memory that it held, the most that lay in `results` beyond what is there in the end (parts of an unfinished
run), and the processor time. Size and shape of the subject are given. The 20,000 frames are masks alone, those of a
short film in small images played there and back, to their hulls (tracking is done in parts of at most 160 frames;
`benchmarks.long_results` has the rest).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import masks_there_and_back
from capture.recordings.recording import save_recording
from capture.studio.films.simulation import Plan, RingPlan, simulate

#: Size and shape of the subject take a minute and hold no more than the frames that they are found in.
_GIVEN = {"track": {"scale": 1.06, "adapt": False}}
_FILM = Plan(name="extreme", frames=4, ring=RingPlan(cameras=4, size=(320, 240)))
#: Case -> its films, ordinary and extreme, how many frames each is to have, and the last stage.
CASES: dict[str, tuple[list[Plan], list[int], str]] = {
    "cameras": (
        [replace(_FILM, ring=RingPlan(cameras=count, size=(160, 120))) for count in (8, 64)], [4, 4], "skeleton",
    ),
    "frames": ([replace(_FILM, frames=20, ring=RingPlan(cameras=3, size=(64, 48)))] * 2, [2_000, 20_000], "hull"),
    "pixels": (
        [replace(_FILM, ring=RingPlan(cameras=4, size=size)) for size in ((960, 540), (3840, 2160))], [4, 4],
        "skeleton",
    ),
}  # fmt: skip


def run_watched(folder: Path, until: str) -> dict[str, float]:
    """Run a recording; return the most memory and the most temporary disk it held, MB, and its processor time, s."""
    call = [sys.executable, "-m", "vivarig.cli", "run", str(folder), "--until", until, "--workers", "1"]
    before, most, over = resource.getrusage(resource.RUSAGE_CHILDREN), 0, threading.Event()

    def look() -> None:
        nonlocal most
        while not over.wait(0.5):
            most = max(most, _bytes(folder / "results"))

    with subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        with watch_memory(lambda: [process.pid], 0.4, own=False) as watch:
            process.wait()
        over.set()
        thread.join()
    if process.returncode not in (0, 1):
        raise RuntimeError(f"vivarig run ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    left = _bytes(folder / "results")
    return {
        "memory_mb": round(watch.peak_mb, 1),
        "temporary_mb": round((max(most, left) - left) / 1e6, 2),
        "results_mb": round(left / 1e6, 2),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
    }


def _bytes(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                total += (Path(place) / name).stat().st_size
    return total


def measured(case: str) -> list[dict[str, Any]]:
    """Run one case at both sizes."""
    films, lengths, until = CASES[case]
    rows = []
    for plan, frames in zip(films, lengths, strict=True):
        with tempfile.TemporaryDirectory() as scratch:
            recording = simulate(plan, Path(scratch) / "film").recording
            if frames > plan.frames:
                masks_there_and_back(recording, frames)
            else:
                save_recording(replace(recording, settings=_GIVEN))
            size = "x".join(map(str, plan.ring.size))
            rows.append({"cameras": plan.ring.cameras, "size": size, "frames": frames, "until": until}
                        | run_watched(recording.folder, until))  # fmt: skip
        one = rows[-1]
        print(
            f"{plan.ring.cameras:3d} cameras of {size:>9}, {frames:6d} frames to {until:<9}"
            f" memory {one['memory_mb']:7.0f} MB, temporary disk {one['temporary_mb']:7.1f} MB,"
            f" results {one['results_mb']:7.1f} MB, {one['cpu_s']:.0f} s",
            flush=True,
        )
    return rows


def main() -> None:
    """Print the table and the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs="+", default=list(CASES), choices=list(CASES))
    args = parser.parse_args()
    print(json.dumps({case: measured(case) for case in args.case}))


if __name__ == "__main__":
    main()
