"""Give damaged files to every reader, each in a child with limits: `python tests/fuzz/driver.py --files 20000`."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import math
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
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

#: Of the clock: for what sleeps; on a busy machine 10 s of processor time take their time.
CPU_SECONDS, WALL_SECONDS, MEMORY = 10, 300, 2 << 30
#: "not damaged": the library that does the damage stumbled; no file was tried.
GOOD = ("read", "refused", "not damaged")
#: Files of one reader that a child reads: starting it costs as much as reading three.
AT_A_TIME = 20
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


@dataclasses.dataclass(frozen=True)
class Try:
    """What became of one file: how it was damaged, what its reader did, and what is worth knowing."""

    what: str
    said: str = ""
    how: str = ""


def tried(
    reader: Reader, sound: Path, spoils: Sequence[Callable[[Path], str]], harm: Callable[[int, Try], None]
) -> Counter[str]:
    """Damage a file and read it, again and again, in a child with limits of time and memory for each; count what happened.

    The damage is done there as well: the libraries that it is done with may stumble over a file that is damaged twice.
    A child that does not live to the end is followed by another, which begins with the next file.

    Args:
        reader: the reader.
        sound: its sound file.
        spoils: what damages a copy of that, one for each file to try.
        harm: told (which, what happened) of each file that did harm, while it still lies beside ``sound``.
    """
    counts: Counter[str] = Counter()
    place = sound.parent / "spoilt" / sound.name
    place.parent.mkdir(exist_ok=True)
    first = 0
    while first < len(spoils):
        for number, one in enumerate(_child(reader, sound, place, spoils[first:], harm, first), first):
            counts[one.what] += 1
            if one.what in ("hang", "crash"):
                harm(number, one)
        first = counts.total()
    return counts


def _child(
    reader: Reader, sound: Path, place: Path, spoils: Sequence[Callable[[Path], str]],
    harm: Callable[[int, Try], None], first: int,
) -> list[Try]:  # fmt: skip
    """Try files in one child; return what became of them, the last of which may have ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 1)
            used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for number, spoil in enumerate(spoils, first):
                copied(sound, place)
                how = spoil(place)
                os.write(writing, b"damaged\n")
                spent = math.ceil(time.process_time())
                resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_SECONDS, resource.RLIM_INFINITY))
                what, said = outcome(reader, place)
                if what not in GOOD:
                    harm(number, Try(what, said, how))
                os.write(writing, f"{what}\n".encode())
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
        deadline = time.monotonic() + WALL_SECONDS
    else:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    _, status = os.waitpid(child, 0)
    words = content.decode().split()
    found = [Try(word) for word in words[1::2]]
    if len(found) < len(spoils):
        slow = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "ended without a word"
        # not yet damaged: the library that does the damage stumbled, no file was tried
        found.append(Try("not damaged" if len(words) % 2 == 0 else "hang" if slow else "crash", name))
    return found


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
            except BaseException:  # noqa: BLE001  (of a writer: the sound file is then not read, which is said)
                sys.stderr.write(f"{name}: {traceback.format_exc()}")
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as stream:
            imported(stream.read().split())
        os.waitpid(child, 0)
        if not tried(READERS[name], found[name], [lambda path: ""], _said)["read"]:
            raise RuntimeError(f"{name}: the sound file is not read")
    return found


def _said(number: int, one: Try) -> None:
    sys.stderr.write(f"{one.what}: {one.said}\n")


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

    Each turn of a reader adds a line to the log: a run that is ended loses nothing.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    with TemporaryDirectory() as scratch:
        sound = seeds(Path(scratch) / "seeds", names)
        for first in range(0, files, AT_A_TIME):
            for name in names:
                numbers = range(first, min(first + AT_A_TIME, files))[:: 10 if READERS[name].slow else 1]

                def harm(which: int, one: Try, name: str = name, numbers: range = numbers) -> None:
                    number = numbers[which]
                    last = one.said.strip().splitlines()[-1:]
                    sys.stderr.write(f"{name} {number}: {one.what}: {one.how}: {last}\n")
                    sys.stderr.flush()
                    if keep is not None:
                        keep.mkdir(parents=True, exist_ok=True)
                        place = keep / f"{name.replace(' ', '_')}-{seed}-{number}"
                        copied(sound[name].parent / "spoilt" / sound[name].name, place)
                        (keep / f"{place.name}.txt").write_text(f"{one.what}\n{one.how}\n{one.said}")

                this = tried(READERS[name], sound[name], [damaged(name, seed, number) for number in numbers], harm)
                counts[name] += this
                if log is not None:
                    with log.open("a") as file:
                        file.write(json.dumps({"seed": seed, "first": first, "reader": name, "found": this}) + "\n")
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
