"""Memory of silhouettes and hulls against the length of a recording.

    python -m benchmarks.hull_memory [--frames 50 200]

The sample mouse's first four cameras, played there and back. Each command runs in a process of its own; what is counted
is the most memory that the process held (its own pages, and its share of shared ones).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import cut_recording, there_and_back

COMMANDS = ("silhouettes", "hull")


def peak_mb(command: str, folder: Path, *options: str) -> float:
    """Run a command on a recording and return the most memory it held, MB."""
    call = [sys.executable, "-m", "vivarig.cli", command, str(folder), *options]
    with subprocess.Popen(call, stdout=subprocess.DEVNULL) as process:
        with watch_memory(lambda: [process.pid], 0.05, own=False) as watch:
            process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"vivarig {command} ended with {process.returncode}")
    return watch.peak_mb


def main() -> None:
    """Print the table and the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[50, 200])
    lengths = parser.parse_args().frames
    peaks: dict[str, list[float]] = {name: [] for name in (*COMMANDS, "silhouettes --matte")}
    with tempfile.TemporaryDirectory() as scratch:
        for frames in lengths:
            folder = Path(scratch) / str(frames)
            cut_recording(folder, frames=there_and_back(100, frames))
            for command in COMMANDS:
                peaks[command].append(peak_mb(command, folder))
            peaks["silhouettes --matte"].append(peak_mb("silhouettes", folder, "--matte"))
    print(f"{'most memory held, MB':<24}" + "".join(f"{frames:>8} frames" for frames in lengths))
    for name, row in peaks.items():
        print(f"{name:<24}" + "".join(f"{value:>15.0f}" for value in row))
    figures = {f"{name.replace(' --', '_')}_mb": [round(value, 1) for value in row] for name, row in peaks.items()}
    print(json.dumps({"frames": lengths, **figures}))


if __name__ == "__main__":
    main()
