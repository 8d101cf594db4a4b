"""Bad luck on purpose: kills, full disks, two commands at once: `python tests/drills/drill.py --kills 300 --pairs 60`.

Every command must end well or be refused in one line, leave no process behind, and the results of a run that was
disturbed must be the bytes of one that was not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

#: A process that has used OpenMP cannot be forked.
os.environ["NUMBA_THREADING_LAYER"] = "workqueue"
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers"), str(ROOT)]

import numpy as np  # noqa: E402
from kills import Log, headway, kills  # noqa: E402
from small_recordings import cut_recording  # noqa: E402
from starting import fork, start, verdict  # noqa: E402

import vivarig.cli as vivarig  # noqa: E402
from benchmarks.measuring.recording_cuts import masks_there_and_back  # noqa: E402
from capture.studio.films.simulation import Plan, RingPlan, simulate  # noqa: E402
from vivarig.jobs.cutting import LENGTH  # noqa: E402

#: What is tried beside each other: every command that writes results, and some that read them.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run", "{}", "--until", "hull"), ("silhouettes", "{}"), ("hull", "{}"), ("track", "{}", "--frames", "0:4"),
    ("skeleton", "{}"), ("report", "{}"), ("export", "{}", "{}/out.csv"), ("evaluate", "{}"),
)  # fmt: skip
IN_PARTS = ("run", "track")


def pairs(folder: Path, count: int, rng: np.random.Generator, log: Log) -> Counter[str]:
    """Start two commands at about the same time; each ends well or is refused in one line.

    Results are there, partly there, or not at all. Every eighth pair is started cold, on two workers.
    """
    found: Counter[str] = Counter()
    every = list(itertools.product(COMMANDS, repeat=2))
    order = rng.permutation(len(every))
    for words in COMMANDS:  # everything is imported and compiled once, for the forks
        vivarig.main([word.replace("{}", str(folder)) for word in (*words, *_workers(words, 1))])
    complete = folder.parent / "complete"
    shutil.copytree(folder / "results", complete)
    for number in range(count):
        two = every[int(order[number % len(every)])]
        shutil.rmtree(folder / "results", ignore_errors=True)
        if state := int(rng.integers(4)):
            shutil.copytree(complete, folder / "results")
            if state > 1:
                files = sorted(path for path in (folder / "results").iterdir() if path.is_file())
                files[int(rng.integers(len(files)))].unlink()
        running = []
        for words in two:
            running.append(
                start((*words, *_workers(words, 2)), folder)
                if number % 8 == 7
                else fork((*words, *_workers(words, 1)), folder)
            )
            time.sleep(float(rng.uniform(0, 1.5)))
        for words, one in zip(two, running, strict=True):
            code, said = one.wait()
            wrong = verdict(code, said) or ("" if code in (0, 1, 2) else f"ended with {code}")
            what = f"{words[0]}: {wrong}" if wrong else "refused" if code == 2 else "done"
            found[what] += 1
            log(drill="pair", number=number, pair=[two[0][0], two[1][0]], command=words[0], what=what, said=said[-300:])
    return found


def _workers(words: tuple[str, ...], count: int) -> tuple[str, ...]:
    return ("--workers", str(count)) if words[0] in IN_PARTS else ()


def disks(folder: Path, count: int, rng: np.random.Generator, log: Log) -> Counter[str]:
    """Run commands on a disk that is full after so many bytes of a file; then again with room."""
    found: Counter[str] = Counter()
    suffixes = ("nwb", "usd", "c3d", "csv", "glb", "nc")
    writing = (*COMMANDS[:3], *(("export", "{}", f"{{}}/out.{suffix}") for suffix in suffixes))
    for number in range(count):
        words = writing[number % len(writing)]
        most = int(rng.choice([0, 100, 2000, 20000, 200000]))
        code, said = start(words, folder, most_bytes=most).wait()
        wrong = verdict(code, said)
        what = f"{words[0]} {words[-1][-4:]}: {wrong}" if wrong else "refused" if code == 2 else "done"
        found[what] += 1
        left = [path for path in folder.rglob(".*-*-*") if path.is_file()]
        found["half-written files left"] += len(left)
        log(drill="disk", number=number, command=words[0], to=words[-1][-4:], bytes=most, what=what)
    return found


GOOD = ("cold:", "warm:", "was done", "came through", "same bytes", "headway", "refused", "done", "half-written")


def drill(
    counts: dict[str, int], seed: int, log: Path | None = None, frames: int = 4, until: str = "skeleton"
) -> dict[str, Counter[str]]:
    """Do so many of each kind on a small recording; a log gets a line for each."""
    rng = np.random.default_rng(seed)

    def note(**words: object) -> None:
        if log is not None:
            with log.open("a") as file:
                file.write(json.dumps({"seed": seed, **words}) + "\n")

    with TemporaryDirectory() as scratch:
        sound, folder = Path(scratch) / "sound", Path(scratch) / "drilled"
        cut_recording(sound, frames=frames)
        shutil.copytree(sound, folder)
        outcome: dict[str, Counter[str]] = {}
        for name, kind in (("kills", kills), ("headway", headway)):
            if counts.get(name):
                if name == "headway":  # many parts, each quickly done: more steps than kills
                    sound, folder = Path(scratch) / "longer", Path(scratch) / "killed"
                    film = Plan(name="longer", frames=12, ring=RingPlan(cameras=3, size=(64, 48)))
                    masks_there_and_back(simulate(film, sound).recording, 2 * LENGTH * frames)
                    shutil.copytree(sound, folder)
                outcome[name] = kind(folder, sound, ("run", "{}", "--until", until), counts[name], rng, note)
        for name, other in (("pairs", pairs), ("disks", disks)):
            if counts.get(name):
                outcome[name] = other(folder, counts[name], rng, note)
    return outcome


def harm(outcome: dict[str, Counter[str]]) -> dict[str, int]:
    """Return what should not have happened."""
    every: Counter[str] = sum(outcome.values(), Counter())
    left = every.pop("half-written files left", 0)
    bad = {name: count for name, count in every.items() if not name.startswith(GOOD)}
    return bad | ({"half-written files left": left} if left else {})


def main() -> int:
    """Drill from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = ("kills", "headway", "pairs", "disks")
    for name in kinds:
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=4, help="of the recording that is drilled")
    parser.add_argument("--until", default="skeleton", help="last stage of the runs that are killed")
    parser.add_argument("--log", type=Path, default=None, help="file that gets a line for each")
    args = parser.parse_args()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored under nohup, and by all that is started there
    signal.signal(signal.SIGINT, signal.default_int_handler)  # likewise in the background of a script
    counts = {name: getattr(args, name) for name in kinds}
    outcome = drill(counts, args.seed, args.log, args.frames, args.until)
    for name, found in outcome.items():
        print(name, dict(found))
    bad = harm(outcome)
    print(json.dumps({**counts, "harm": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
