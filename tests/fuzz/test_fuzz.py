"""A small seeded run over every reader, and a check that every reader is in it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from corpus import READERS

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("calibration", "skeleton", "capture", "tracking", "vivarig")
#: Functions with such a name and a path that read no file by themselves, and why.
NOT_READERS = {
    "require_file", "require_ordinary", "reading",  # look at its kind only
    "is_ours", "load_object", "load_object_anew",  # kept objects: signed (tests/vivarig/pipeline/test_single_stages.py)
    "open_session", "open_sequence", "find_sequences", "load_background",  # through readers in it
    "stored_outlines", "left_outlines",  # through the readers of masks
    "read_storage",  # OpenCV's through rigs, OpenSim's through motions
    "load_subject", "load_truth", "load_findings", "load_track", "open_track",  # through subject, truth and results
}  # fmt: skip


def reading_functions(root: Path) -> set[str]:
    """Return the names of public functions that read what their first argument, a path, names."""
    found = set()
    for package in PACKAGES:
        for file in (root / package).rglob("*.py"):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if not isinstance(node, ast.FunctionDef) or not node.args.args:
                    continue
                kind = node.args.args[0].annotation
                verb = node.name.split("_")[0]
                if (
                    kind is not None
                    and "Path" in ast.unparse(kind)
                    and verb in ("read", "load", "open", "probe", "user")
                ):
                    found.add(node.name)
    return found


def unregistered(root: Path) -> set[str]:
    covered = {name for reader in READERS.values() for name in reader.covers}
    return reading_functions(root) - covered - NOT_READERS


def test_every_reader_is_registered(tmp_path: Path) -> None:
    assert not unregistered(ROOT), "register it in tests/fuzz/corpus.py, with a sound file to start from"
    for package in PACKAGES:
        (tmp_path / package).mkdir()
    (tmp_path / "vivarig" / "new.py").write_text("def read_holograms(path: Path) -> None: ...\n")
    assert unregistered(tmp_path) == {"read_holograms"}


@pytest.mark.parametrize("share", range(4))
def test_damaged_files_do_no_harm(tmp_path: Path, share: int) -> None:
    """In a process of its own: one that has run threads (OpenMP) must not fork."""
    names = sorted(name for name, reader in READERS.items() if not reader.slow)[share::4]
    words = ["--names", ",".join(names), "--files", str(3 * len(names)), "--seed", "20261117"]
    driver = Path(__file__).with_name("driver.py")
    done = subprocess.run(
        [sys.executable, str(driver), *words, "--keep", str(tmp_path / "harmful")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"files and what they did are in {tmp_path / 'harmful'}: {done.stderr[-3000:]}"
    assert json.loads(done.stdout.splitlines()[-1])["files"] == 3 * len(names)


_HARMFUL = """
import json, os, sys
from pathlib import Path
import driver
from corpus import Reader

def read(path):
    number = int(path.read_text())
    if number == 1: os.abort()
    if number == 2:
        while True: pass
    if number == 3: return float("inf")
    if number == 4: raise KeyError("x")
    if number == 5: return bytearray(3 << 30)

driver.CPU_SECONDS = 2
sound = Path(sys.argv[1]) / "a.txt"
sound.write_text("0")
spoils = [lambda path, n=n: str(path.write_text(str(n))) for n in (0, 1, 2, 3, 4, 5, 0)]
told = []
counts = driver.tried(Reader("a.txt", None, read), sound, spoils, lambda number, one: told.append(number))
print(json.dumps([counts, told]))
"""


def test_the_driver_notices_what_happens(tmp_path: Path) -> None:
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here, here.parent / "helpers", ROOT)))
    words = [sys.executable, "-c", _HARMFUL, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": paths})
    counts, told = json.loads(done.stdout)
    assert counts == {"read": 2, "crash": 1, "hang": 1, "nonsense": 1, "traceback": 2}
    assert told == [1, 2], "what did not end the child is told inside it"
