"""Kill runs, the group, the parent or one worker, at any moment of their processor time, and resume them."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from small_recordings import differences
from starting import SIGNALS, Running, fork, start, verdict

Log = Callable[..., None]
Words = tuple[str, ...]


def kills(folder: Path, sound: Path, words: Words, count: int, rng: np.random.Generator, log: Log) -> Counter[str]:
    """Kill so many runs, every tenth one started cold and with two workers; what comes through is compared."""
    found: Counter[str] = Counter()
    _undisturbed(folder, sound, words)
    whole = _whole_run(folder, words)
    done = 0
    while done < count:
        cold = done % 10 == 9
        # from its first moment on: a cold start has imports of its own, and those of two workers
        moment = float(rng.uniform(0.0, 0.6 * whole + 5.0) if cold else rng.uniform(0.0, 0.5 * whole))
        which, whom = SIGNALS[int(rng.integers(len(SIGNALS)))], str(rng.choice(["group", "parent", "worker"]))
        running = start((*words, "--workers", "2"), folder) if cold else fork((*words, "--workers", "1"), folder)
        killed = _kill(running, moment, which, whom if cold else "group", rng)
        code, said = running.wait()
        wrong = verdict(code, said) or ("" if running.gone() else "processes left")
        if killed:
            done += 1
        finished = code in (0, 1)
        if not wrong and not killed and not finished:
            wrong = f"ended with {code}"
        if not wrong and finished:
            wrong = _other_bytes(folder, sound)
            found[wrong or "same bytes"] += 1
            shutil.rmtree(folder / "results")
        what = wrong or (f"{'cold' if cold else 'warm'}: {killed}" if killed else "came through")
        if not wrong and finished and killed and "worker" not in killed:
            what = "was done"
        found[what] += 1
        log(
            drill="kill", number=done, cold=cold, moment=round(moment, 2), code=code, finished=finished, what=what,
            said=said[-500:],
        )  # fmt: skip
    found[_through(folder, sound, words)] += 1
    return found


def headway(folder: Path, sound: Path, words: Words, count: int, rng: np.random.Generator, log: Log) -> Counter[str]:
    """Kill a run so many times in a row, each a little after it kept something new; then let it through."""
    _undisturbed(folder, sound, words)
    found: Counter[str] = Counter()
    for number in range(count):
        before = _kept(folder)
        running = fork((*words, "--workers", "1"), folder)
        while not running.ended() and not _kept(folder) - before:
            time.sleep(0.02)
        _kill(running, running.cpu_seconds() + float(rng.uniform(0.0, 0.05)), signal.SIGKILL, "group", rng)
        code, _ = running.wait()
        if code in (0, 1):
            found[f"done before kill {number + 1}"] += 1
            break
        after = _kept(folder)
        what = "headway" if before <= after and len(after) > len(before) else "no headway"
        found[what] += 1
        log(drill="headway", number=number, kept=len(after), what=what)
    found[_through(folder, sound, words)] += 1
    return found


def _undisturbed(folder: Path, sound: Path, words: Words) -> None:
    """Make the undisturbed results; after that all is compiled, and imported in this process."""
    from vivarig.cli import main

    for place in (sound, folder):
        shutil.rmtree(place / "results", ignore_errors=True)
    main([word.replace("{}", str(sound)) for word in (*words, "--workers", "1")])


def _whole_run(folder: Path, words: Words) -> float:
    """Return the processor time that a run takes, s."""
    running = fork((*words, "--workers", "1"), folder)
    most = 0.0
    while not running.ended():
        most = max(most, running.cpu_seconds())
        time.sleep(0.05)
    running.wait()
    shutil.rmtree(folder / "results")
    return most


def _kill(running: Running, moment: float, which: signal.Signals, whom: str, rng: np.random.Generator) -> str:
    """Kill when the processor time has come; return who was killed, empty if the command had ended."""
    while running.cpu_seconds() < moment:
        if running.ended():
            return ""
        time.sleep(0.01)
    if running.ended():
        return ""
    others = running.processes()[1:]
    try:
        if whom == "worker" and others:
            os.kill(others[int(rng.integers(len(others)))], signal.SIGKILL)
            return "worker by SIGKILL"
        elif whom == "group":
            os.killpg(running.pid, which)
        else:
            whom = "parent"
            os.kill(running.pid, which)
    except ProcessLookupError:
        return ""
    return f"{whom} by {which.name}"


def _kept(folder: Path) -> set[str]:
    """Return the names of what a run has kept so far; folders may go while they are looked at."""
    return {
        str(Path(place) / name) for place, _, names in os.walk(folder / "results") for name in names if name[0] != "."
    }


def _other_bytes(folder: Path, sound: Path) -> str:
    other = differences(folder, sound)
    return f"other bytes: {other[:3]}" if other else ""


def _through(folder: Path, sound: Path, words: Words) -> str:
    code, said = fork((*words, "--workers", "1"), folder).wait()
    wrong = verdict(code, said) or ("" if code in (0, 1) else f"ended with {code}")
    return wrong or _other_bytes(folder, sound) or "same bytes"
