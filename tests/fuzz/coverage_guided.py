"""Fuzz one parser written here, led by what it has not yet executed: `python tests/fuzz/coverage_guided.py "motion bvh" 300`.

Needs `pip install atheris` (wheels for Linux and macOS), which the tests do not. Ends at the first file that does harm,
which it leaves in the folder it was called in; otherwise after so many seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers"), str(HERE.parents[1])]

#: Instrumented; what they call in libraries and in compiled code is not.
PARSERS = ["skeleton.motion_files", "skeleton.model_files", "calibration.rig_formats", "tracking.beads.xmalab_files",
           "calibration.foundation.tables", "calibration.foundation.files"]  # fmt: skip
with atheris.instrument_imports(include=PARSERS):
    from corpus import READERS
    from driver import GOOD, outcome
    from mutations import copied

#: Parsers of Vivarig's own.
OWN = ("motion bvh", "motion amc", "motion trc", "motion mot", "motion csv", "motion anipose", "motion deeplabcut", "osim",
       "ik setup", "mujoco", "xmalab 2d", "xmalab 3d", "xmalab body", "rig dannce", "rig qualisys", "rig mayacam1",
       "rig mayacam2", "rig opencv", "rig jarvis", "rig dlt", "rig humaneva", "rig easymocap")  # fmt: skip


def main() -> None:
    """Fuzz the reader that the first argument names for as many seconds as the second says."""
    name, seconds = sys.argv[1], sys.argv[2]
    if name not in OWN:
        sys.exit(f"wanted one of {', '.join(OWN)}, got {name!r}")
    reader = READERS[name]
    with TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        scratch, seeds = Path(place), Path(place) / "seeds"
        sound, spoilt = scratch / "sound" / reader.file, scratch / "spoilt" / reader.file
        for folder in (seeds, sound.parent, spoilt.parent):
            folder.mkdir()
        reader.make(sound)
        copied(sound, spoilt)
        files = sorted(path for path in sound.rglob("*") if path.is_file()) if sound.is_dir() else [sound]
        for number, path in enumerate(files):
            (seeds / f"{number}").write_bytes(bytes([number]) + path.read_bytes())

        def once(data: bytes) -> None:
            """Read a folder, or a file, of which one file has this content; the first byte says which."""
            chosen = files[(data[0] if data else 0) % len(files)]
            target = spoilt if chosen == sound else spoilt / chosen.relative_to(sound)
            target.write_bytes(data[1:])
            what, said = outcome(reader, spoilt)
            target.write_bytes(chosen.read_bytes())
            if what not in GOOD:
                raise RuntimeError(f"{what}: {said}")

        limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2500", "-max_len=20000"]
        atheris.Setup([sys.argv[0], *limits, *sys.argv[3:], str(seeds)], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
