"""Bad luck on purpose: kills, full disks, two commands at once: `python tests/drills/drill.py --kills 300 --pairs 60`.

Every command must end well or be refused in one line, leave no process behind, and the results of a run that was
disturbed must be the bytes of one that was not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "helpers"), str(ROOT)]

import numpy as np  # noqa: E402
from small_recordings import cut_recording, differences  # noqa: E402

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: What is tried beside each other: every command that writes results, and some that read them.
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run", "{}", "--until", "hull", "--workers", "2"), ("silhouettes", "{}"), ("hull", "{}"),
    ("track", "{}", "--frames", "0:4"), ("skeleton", "{}"), ("report", "{}"), ("export", "{}", "{}/out.csv"),
    ("evaluate", "{}"),
)  # fmt: skip


def start(words: tuple[str, ...], folder: Path, most_bytes: int | None = None) -> subprocess.Popen[str]:
    """Start a command in a group of its own; with a limit on the size of files, as a full disk would set one."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    line = [sys.executable, "-m", "vivarig.cli", *(word.replace("{}", str(folder)) for word in words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment,
        preexec_fn=limit,
    )  # fmt: skip


def gone(group: int, patience: float = 30.0) -> bool:
    """Return whether all processes of a group have ended, waiting a little."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    return False


def verdict(code: int, said: str) -> str:
    """Return what is wrong with how a command ended; empty if nothing."""
    if "Traceback" in said:
        return "traceback"
    if code < 0 and -code not in SIGNALS:
        return f"crash by signal {-code}"
    if code == 2 and sum(line.startswith("vivarig ") for line in said.splitlines()) != 1:
        return f"not one line: {said[-200:]!r}"
    return ""


def kills(folder: Path, sound: Path, count: int, rng: np.random.Generator, longest: float) -> Counter[str]:
    """Kill runs, the group or one process, at any moment, and resume; every tenth is let through and compared."""
    words = COMMANDS[0]
    found: Counter[str] = Counter()
    for number in range(count):
        child = start(words, folder)
        time.sleep(float(rng.uniform(0, longest)))
        which = SIGNALS[int(rng.integers(len(SIGNALS)))]
        try:
            (os.killpg if rng.random() < 0.7 else os.kill)(child.pid, which)
        except ProcessLookupError:
            found["was done"] += 1
        _, said = child.communicate(timeout=120)
        wrong = verdict(child.returncode, said) or ("" if gone(child.pid) else "processes left")
        found[wrong or f"stopped by {which.name}"] += 1
        if number % 10 == 9:
            found[_through(folder, sound, words)] += 1
            shutil.rmtree(folder / "results", ignore_errors=True)
    found[_through(folder, sound, words)] += 1
    return found


def _through(folder: Path, sound: Path, words: tuple[str, ...]) -> str:
    child = start(words, folder)
    _, said = child.communicate(timeout=900)
    wrong = verdict(child.returncode, said) or ("" if child.returncode in (0, 1) else f"ended with {child.returncode}")
    if wrong:
        return wrong
    other = [name for name in differences(folder, sound) if not name.endswith(("stages.json", ".csv"))]
    return f"other bytes: {other[:3]}" if other else "same bytes"


def pairs(folder: Path, count: int, rng: np.random.Generator) -> Counter[str]:
    """Start two commands at about the same time; each ends well or is refused in one line."""
    found: Counter[str] = Counter()
    every = list(itertools.product(COMMANDS, repeat=2))
    for number in range(count):
        one, two = every[int(rng.integers(len(every)))] if count < len(every) else every[number % len(every)]
        first = start(one, folder)
        time.sleep(float(rng.uniform(0, 4)))
        second = start(two, folder)
        for name, child in ((one[0], first), (two[0], second)):
            _, said = child.communicate(timeout=900)
            wrong = verdict(child.returncode, said)
            found[f"{name}: {wrong}" if wrong else "refused" if child.returncode == 2 else "done"] += 1
    return found


def disks(folder: Path, count: int, rng: np.random.Generator) -> Counter[str]:
    """Run commands on a disk that is full after so many bytes of a file; then again with room."""
    found: Counter[str] = Counter()
    suffixes = ("nwb", "usd", "c3d", "csv", "glb", "nc")
    writing = (*COMMANDS[:3], *(("export", "{}", f"{{}}/out.{suffix}") for suffix in suffixes))
    for number in range(count):
        words = writing[number % len(writing)]
        child = start(words, folder, most_bytes=int(rng.choice([0, 100, 2000, 20000, 200000])))
        _, said = child.communicate(timeout=900)
        wrong = verdict(child.returncode, said)
        found[f"{words[0]} {words[-1][-4:]}: {wrong}" if wrong else "refused" if child.returncode == 2 else "done"] += 1
        left = [path for path in folder.rglob(".*-*-*") if path.is_file()]
        found["half-written files left"] += len(left)
    return found


GOOD = ("stopped by", "same bytes", "was done", "refused", "done", "half-written")


def drill(kill: int, pair: int, disk: int, seed: int, longest: float = 8.0) -> dict[str, Counter[str]]:
    """Do all of it on a small recording."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as scratch:
        sound, folder = Path(scratch) / "sound", Path(scratch) / "drilled"
        cut_recording(sound)
        shutil.copytree(sound, folder)
        outcome: dict[str, Counter[str]] = {}
        if kill:
            start(COMMANDS[0], sound).communicate(timeout=900)
            outcome["kills"] = kills(folder, sound, kill, rng, longest)
        if pair:
            outcome["pairs"] = pairs(folder, pair, rng)
        if disk:
            outcome["disks"] = disks(folder, disk, rng)
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
    for name in ("kills", "pairs", "disks"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=8.0, help="latest moment of a kill, s")
    args = parser.parse_args()
    outcome = drill(args.kills, args.pairs, args.disks, args.seed, args.longest)
    for name, counts in outcome.items():
        print(name, dict(counts))
    bad = harm(outcome)
    print(json.dumps({"kills": args.kills, "pairs": args.pairs, "disks": args.disks, "harm": bad}))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
