"""Memory of the stages that look at a whole recording, at lengths that no test can track.

    python -m benchmarks.long_results [--frames 100000]

The track, silhouette and hull files of a short run are played again and again into files of several lengths, as if a
long recording had been tracked; then `vivarig skeleton` and `vivarig report` run on them, each in a process of its own,
and the most memory that it held is printed. (What comes before works in parts of at most 160 frames.)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py

from benchmarks.memory_watch import watch_memory
from benchmarks.recording_cuts import cut_recording, there_and_back
from vivarig.pipeline import RunOptions, run_recording

_SHORT = 60
_CODE = "import sys; from vivarig.cli import main; sys.exit(main(sys.argv[1:]) == 2)"


def _repeated(source: h5py.Group, target: h5py.Group, frames: int, length: int) -> None:
    """Copy a result file; datasets with one row per frame get ``frames`` rows. Pictures (chunked) stay empty."""
    for key, value in source.attrs.items():
        target.attrs[key] = value
    for name, item in source.items():
        if isinstance(item, h5py.Group):
            _repeated(item, target.create_group(name), frames, length)
        elif item.shape[:1] != (length,):
            source.copy(name, target)
        else:
            data = target.create_dataset(name, (frames, *item.shape[1:]), item.dtype, chunks=item.chunks)
            if item.chunks is None:
                block = item[:]
                for first in range(0, frames, length):
                    data[first : first + length] = block[: frames - first]


def lengthened(source: Path, target: Path, frames: int) -> None:
    """Make a recording whose results look like those of so many frames."""
    (target / "results").mkdir(parents=True)
    for name in ("recording.toml", "rig.toml", "videos"):
        (target / name).symlink_to(source / name)
    for name in ("track.h5", "silhouettes.h5"):
        with h5py.File(source / "results" / name) as old, h5py.File(target / "results" / name, "w") as new:
            _repeated(old, new, frames, _SHORT)


def peak_mb(verb: str, folder: Path) -> float:
    """Run one verb in a process of its own and return the most memory it held, MB."""
    with subprocess.Popen([sys.executable, "-c", _CODE, verb, str(folder)], stdout=subprocess.DEVNULL) as child:
        with watch_memory(lambda: [child.pid], every_s=0.05, own=False) as memory:
            child.wait()
        if child.returncode:
            raise RuntimeError(f"vivarig {verb} {folder} failed")
    return memory.peak_mb


def main() -> None:
    """Run, print the table and the JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=100_000, help="the longest recording")
    args = parser.parse_args()
    peaks: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        short = Path(folder) / "short"
        run_recording(
            cut_recording(short, frames=there_and_back(_SHORT, _SHORT), cameras=4), RunOptions("track"), show=False
        )
        print("frames   skeleton MB  report MB")
        for frames in sorted({args.frames // 100, args.frames // 10, args.frames}):
            place = Path(folder) / str(frames)
            lengthened(short, place, frames)
            peak = peaks[str(frames)] = {verb: peak_mb(verb, place) for verb in ("skeleton", "report")}
            print(f"{frames:7d}  {peak['skeleton']:10.0f}  {peak['report']:9.0f}", flush=True)
    print(json.dumps({"peak_mb": peaks}))


if __name__ == "__main__":
    main()
