"""Give damaged files to every reader, each in a child with limits: `python tests/fuzz/driver.py --files 20000`."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "helpers"), str(HERE.parents[1])]

import numpy as np  # noqa: E402
from corpus import READERS, Reader  # noqa: E402
from mutations import copied, damage  # noqa: E402

from calibration.foundation.arrays import HUGE  # noqa: E402
from calibration.foundation.errors import VivarigError  # noqa: E402

CPU_SECONDS, WALL_SECONDS, MEMORY = 10, 90, 2 << 30
#: "not damaged": the library that does the damage stumbled; no file was tried.
GOOD = ("read", "refused", "not damaged")
#: Fields in which infinite means without bounds.
UNBOUNDED = ("limits", "bounds", "lower", "upper", "time_range")


def nonsense(value: Any, depth: int = 0) -> str:
    """Return what is wrong with something that was read: a number that is infinite or absurd; empty if nothing.

    In arrays NaN means not observed; a single number must be one.
    """
    if depth > 6 or value is None or isinstance(value, str | bytes | bool | type | Path):
        return ""
    if isinstance(value, int | float | np.number):
        return "" if abs(value) <= HUGE else f"{value}"
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiuc" or not value.size:
            return ""
        worst = np.abs(value[~np.isnan(value)].astype(float)).max(initial=0.0)
        return "" if worst <= HUGE else f"{worst}"
    if isinstance(value, list | tuple):
        parts = dict(enumerate(value[:50]))
    elif isinstance(value, dict):
        parts = value
    elif dataclasses.is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    else:
        parts = getattr(value, "__dict__", {})
    inner = ((name, nonsense(one, depth + 1)) for name, one in parts.items() if name not in UNBOUNDED)
    return next((f"{name}: {said}" for name, said in inner if said), "")


def outcome(reader: Reader, path: Path) -> tuple[str, str]:
    """Read a file in this process; return what became of it and what is worth knowing."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = reader.read(path)
        wrong = nonsense(value)
        return ("nonsense", wrong) if wrong else ("read", "")
    except VivarigError as error:
        return ("refused", str(error)) if "\n" not in str(error) else ("traceback", "message of several lines")
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            return "refused", str(error)
        return "traceback", traceback.format_exc()
    except BaseException:  # noqa: BLE001
        return "traceback", traceback.format_exc()


def tried(reader: Reader, path: Path, spoil: Callable[[Path], str] | None = None) -> tuple[str, str, str]:
    """Damage a file and read it in a child with limits of time and memory; return what became of it, and how it was damaged.

    The damage is done there as well: the libraries that it is done with may stumble over a file that is damaged twice.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            how = spoil(path) if spoil is not None else ""
            os.write(writing, how.encode("utf-8", "replace")[:5000] + b"\0")
            what, said = outcome(reader, path)
            os.write(writing, f"{what}\0{said}".encode("utf-8", "replace")[:50000])
        finally:
            os._exit(0)
    os.close(writing)
    content = b""
    deadline = time.monotonic() + WALL_SECONDS
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        block = os.read(reading, 65536)
        if not block:
            break
        content += block
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    how, *rest = content.decode("utf-8", "replace").split("\0", 2)
    if not rest:
        return "not damaged", "", ""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        what, said = (
            ("hang", "") if number in (signal.SIGKILL, signal.SIGXCPU) else ("crash", signal.Signals(number).name)
        )
        return what, said, how
    return (rest[0], rest[1], how) if len(rest) == 2 else ("crash", "nothing said", how)


def imported(modules: list[str]) -> None:
    """Import what a reader imported when it was first called, so that not each child has to."""
    for module in modules:
        if module not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(module)


def seeds(folder: Path, names: list[str]) -> dict[str, Path]:
    """Write the sound file of each reader, and check that it is read."""
    found = {}
    for name in names:
        place = folder / name
        place.mkdir(parents=True)
        found[name] = place / READERS[name].file
        # in a child: threads that a writer starts would not survive the forks to come
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                READERS[name].make(found[name])
                outcome(READERS[name], found[name])  # compiled code is made and kept now, outside the limits
                os.write(writing, " ".join(sys.modules)[:60000].encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as stream:
            imported(stream.read().split())
        os.waitpid(child, 0)
        what, said, _ = tried(READERS[name], found[name])
        if what != "read":
            raise RuntimeError(f"{name}: the sound file is not read: {what}: {said}")
    return found


def damaged(name: str, seed: int, number: int) -> Callable[[Path], str]:
    """Return what does the damage of a number: the same each time."""
    rng = np.random.default_rng([seed, number, sum(name.encode())])

    def spoil(path: Path) -> str:
        return "; ".join(damage(path, rng) for _ in range(int(rng.choice([1, 1, 2]))) if path.exists())

    return spoil


def fuzz(
    names: list[str], files: int, seed: int, keep: Path | None = None, log: Path | None = None
) -> dict[str, Counter[str]]:
    """Try so many damaged files of each reader; bad ones are kept in a folder, with what happened.

    Each round, a file of each reader, adds a line to the log: a run that is ended loses nothing.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    with TemporaryDirectory() as scratch:
        sound = seeds(Path(scratch) / "seeds", names)
        for number in range(files):
            this: dict[str, str] = {}
            began = time.monotonic()
            for name in names:
                reader = READERS[name]
                if reader.slow and number % 10:
                    continue
                path = Path(scratch) / reader.file
                copied(sound[name], path)
                what, said, how = tried(reader, path, damaged(name, seed, number))
                counts[name][what] += 1
                this[name] = what
                if what not in GOOD:
                    sys.stderr.write(f"{name} {number}: {what}: {how}: {said.strip().splitlines()[-1:]}\n")
                    sys.stderr.flush()
                    if keep is not None:
                        keep.mkdir(parents=True, exist_ok=True)
                        place = keep / f"{name.replace(' ', '_')}-{seed}-{number}"
                        copied(path, place)
                        (keep / f"{place.name}.txt").write_text(f"{what}\n{how}\n{said}")
            if log is not None:
                with log.open("a") as file:
                    took = round(time.monotonic() - began, 2)
                    file.write(json.dumps({"seed": seed, "number": number, "seconds": took, "found": this}) + "\n")
    return counts


def main() -> int:
    """Fuzz from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20000, help="damaged files over all readers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="readers whose name holds this")
    parser.add_argument("--names", default="", help="these readers alone, separated by commas")
    parser.add_argument("--keep", type=Path, default=None, help="folder for the files that did harm")
    parser.add_argument("--log", type=Path, default=None, help="file to which each round adds a line")
    args = parser.parse_args()
    names = [name for name in READERS if args.only in name]
    if args.names:
        names = args.names.split(",")
    counts = fuzz(names, max(1, args.files // len(names)), args.seed, args.keep, args.log)
    total: Counter[str] = sum(counts.values(), Counter())
    for name, one in counts.items():
        print(f"{name:24} {dict(one)}")
    print(json.dumps({"files": total.total(), **total}))
    return 0 if set(total) <= set(GOOD) else 1


if __name__ == "__main__":
    sys.exit(main())
