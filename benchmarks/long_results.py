"""Memory of the stages that look at a whole recording, at lengths that no test can track.

    python -m benchmarks.long_results [--frames 20000]

The results of a short run are played again and again into files of several lengths, as if a long recording had been
tracked; then `vivarig skeleton` and `vivarig report` run on them, each in a process of its own, and the most memory
that it held is printed. The report, which costs little, is made of recordings ten times as long. (What comes before
works in parts of at most 160 frames.)
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import h5py

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import cut_recording, there_and_back
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


def lengthened(source: Path, target: Path, frames: int, files: Sequence[str]) -> None:
    """Make a recording with some of the results that so many frames would have."""
    (target / "results").mkdir(parents=True)
    for name in ("recording.toml", "rig.toml", "videos"):
        (target / name).symlink_to(source / name)
    for name in files:
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
    parser.add_argument("--frames", type=int, default=20_000, help="longest recording of the skeleton")
    args = parser.parse_args()
    peaks: dict[str, dict[int, float]] = {"skeleton": {}, "report": {}}
    with tempfile.TemporaryDirectory() as folder:
        short = Path(folder) / "short"
        run_recording(
            cut_recording(short, frames=there_and_back(_SHORT, _SHORT), cameras=4), RunOptions("skeleton"), show=False
        )
        for verb, files, longest in (
            ("skeleton", ("track.h5",), args.frames),
            ("report", ("silhouettes.h5", "track.h5", "skeleton.h5"), 10 * args.frames),
        ):
            for frames in (longest // 100, longest // 10, longest):
                place = Path(folder) / f"{verb}{frames}"
                lengthened(short, place, frames, files)
                peaks[verb][frames] = peak_mb(verb, place)
                shutil.rmtree(place)
                print(f"{verb:<9} {frames:7d} frames  {peaks[verb][frames]:6.0f} MB", flush=True)
    print(json.dumps({"peak_mb": peaks}))


if __name__ == "__main__":
    main()
