"""What looks at a whole recording, at lengths that no test can track: memory, and the time that one worker takes.

    python -m benchmarks.long_results [--frames 20000] [--of RECORDING]

The results of a short run (the sample mouse with four cameras, or those of ``--of``) are played again and again, as
parts of a long recording: they are put together as such parts are; then `vivarig skeleton` and `vivarig report` run on
them, each in a process of its own. Printed are the most memory that it held and its processor time; of the skeleton
also what remains when its chunks, which many workers can fit, are taken off. The line through two lengths says what a
frame costs. (What comes before works in parts of at most 160 frames.)
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py

from benchmarks.measuring.memory_watch import watch_memory
from benchmarks.measuring.recording_cuts import cut_recording, there_and_back
from calibration.foundation.result_files import create_results, read_parameters
from calibration.foundation.spans import Span
from capture.recordings.mask_copying import copy_masks
from capture.recordings.masks import mask_cameras
from capture.recordings.recording import load_recording
from tracking.sequence.track_file import joined_track, open_track
from vivarig.pipeline import RunOptions, run_recording

_SHORT = 100
_CODE = """
import sys, time
from vivarig.cli import main
from vivarig.stages import skeleton, skeleton_chunks
spent = [0.0]
def timed(fit, *more, real=skeleton_chunks.fit_chunk, **named):
    begun = time.process_time()
    try:
        return real(fit, *more, **named)
    finally:
        spent[0] += time.process_time() - begun
skeleton_chunks.fit_chunk = timed
failed = main(sys.argv[1:]) == 2
print("chunks took", spent[0])
sys.exit(failed)
"""


def _repeated(source: h5py.Group, target: h5py.Group, frames: int, length: int) -> None:
    """Copy a result file; datasets with one row per frame get ``frames`` rows."""
    for key, value in source.attrs.items():
        target.attrs[key] = value
    for name, item in source.items():
        if isinstance(item, h5py.Group):
            _repeated(item, target.create_group(name), frames, length)
        elif item.shape[:1] != (length,):
            source.copy(name, target)
        else:
            data, block = target.create_dataset(name, (frames, *item.shape[1:]), item.dtype), item[:]
            for first in range(0, frames, length):
                data[first : first + length] = block[: frames - first]


def lengthened(source: Path, target: Path, frames: int) -> dict[str, float]:
    """Make a recording with the results that so many frames would have; return what putting together took, s."""
    results = source / "results"
    (target / "results").mkdir(parents=True)
    for one in source.iterdir():
        if one.name not in ("results", "truth.h5"):
            (target / one.name).symlink_to(one)
    length = mask_cameras(results / "silhouettes.h5")[1]
    rows = [slice(first, min(first + length, frames)) for first in range(0, frames, length)]
    took, begun = {}, time.process_time()
    masks = [(results / "silhouettes.h5", Span(0, here.stop - here.start)) for here in rows]
    copy_masks(masks, target / "results" / "silhouettes.h5", {}, look=False)
    took["silhouettes"], begun = time.process_time() - begun, time.process_time()
    with open_track(results / "track.h5") as file:
        told, start = file.parameters, file.start_frame
    parts = [(results / "track.h5", slice(0, here.stop - here.start), here) for here in rows]
    with joined_track(target / "results" / "track.h5", parts, frames, start_frame=start, parameters=told):
        pass
    took["track"] = time.process_time() - begun
    path = target / "results" / "skeleton.h5"
    with (
        h5py.File(results / "skeleton.h5") as old,
        create_results(path, stage="skeleton", parameters=read_parameters(old)) as new,
    ):
        _repeated(old, new, frames, length)
    return took


def measured(verb: str, folder: Path) -> dict[str, float]:
    """Run one verb in a process of its own; return the most memory it held, MB, and its processor times, s."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen([sys.executable, "-c", _CODE, verb, str(folder)], stdout=subprocess.PIPE, text=True) as child:
        with watch_memory(lambda: [child.pid], every_s=0.2, own=False) as memory:
            said, _ = child.communicate()
        if child.returncode:
            raise RuntimeError(f"vivarig {verb} {folder} failed")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"memory_mb": memory.peak_mb, "cpu_s": cpu, "alone_s": cpu - float(said.split("chunks took")[1])}


def main() -> None:
    """Run, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20_000, help="longest recording")
    parser.add_argument("--of", type=Path, help="a recording with results up to the skeleton (default: the sample)")
    parser.add_argument("--verbs", default="skeleton,report", help="which")
    args = parser.parse_args()
    rows: list[dict[str, float | str]] = []
    with tempfile.TemporaryDirectory() as folder:
        short = args.of.resolve() if args.of else Path(folder) / "short"
        if args.of is None:
            recording = cut_recording(short, frames=there_and_back(_SHORT, _SHORT), cameras=4)
            run_recording(recording, RunOptions("skeleton"), show=False)
        cameras = len(load_recording(short).footage)
        for frames in (args.frames // 5, args.frames):
            place = Path(folder) / f"long{frames}"
            for what, took in lengthened(short, place, frames).items():
                rows.append({"what": f"joining {what}", "frames": frames, "alone_s": took})
            for verb in args.verbs.split(","):
                rows.append({"what": verb, "frames": frames, **measured(verb, place)})
            shutil.rmtree(place)
    print(f"{cameras} cameras; processor time of what one worker does alone")
    costs = {}
    for one in rows[: len(rows) // 2]:
        other = next(row for row in rows if row["what"] == one["what"] and row["frames"] == args.frames)
        first, last = float(one["alone_s"]), float(other["alone_s"])
        costs[str(one["what"])] = 1e3 * (last - first) / (args.frames - args.frames // 5)
        print(
            f"{one['what']:<20} {first:7.1f} s {last:7.1f} s: {costs[str(one['what'])]:.3f} ms a frame more, memory "
            f"{one.get('memory_mb', 0):.0f} and {other.get('memory_mb', 0):.0f} MB"
        )
    print(json.dumps({"cameras": cameras, "ms_per_frame": costs, "rows": rows}))


if __name__ == "__main__":
    main()
