"""Damage of files on purpose: bytes, text by its words, and tables, archives and HDF5 by their structure; all seeded."""

from __future__ import annotations

import io
import json
import re
import shutil
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import tomli_w

__all__ = ["damage"]

#: What no number of a file should be.
NUMBERS = ("nan", "inf", "-inf", "1e300", "-1e300", "1e16", "0", "-1", "99999999999999999999", "1e-320", "4294967296",
           "2147483648", "-2147483649", "0x41", "1_0", "٣", "", "abc", "1,5", "true", "[]", "--1", "1e", "NaN")  # fmt: skip
WORDS = (b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"../../x", b"/etc/passwd", b"%s%n", b"\n", b"{", b"}" * 50, b"[" * 3000,
         b"<!ENTITY a 'b'>", b"&a;", b'"', b"'", b"\\", b"A" * 5000, "é".encode("latin-1"), b"\x00\x00\x00\x80",
         b"\xff\xff\xff\xff\xff\xff\xff\x7f")  # fmt: skip

Rng = np.random.Generator


def damage(path: Path, rng: Rng) -> str:
    """Damage a file, or one file of a folder, in place; return how."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        if not files:
            return "nothing left to damage"
        chosen = files[rng.integers(len(files))]
        if rng.random() < 0.08:
            chosen.unlink()
            return f"{chosen.name} removed"
        return f"{chosen.name}: {damage(chosen, rng)}"
    ways: list[Callable[[Path, Rng], str]] = [flip, flip, cut, splice, words, empty, swap]
    head = path.read_bytes()[:8]
    if head.startswith(b"\x89HDF"):
        ways += [hdf5] * 8 + [blocks] * 4
    elif head.startswith(b"VPG"):
        ways += [sealed] * 8
    elif head.startswith(b"PK"):
        ways += [archive] * 8
    elif path.suffix == ".json" or path.suffix == ".toml":
        ways += [tree] * 8 + [text] * 2
    elif not any(byte > 127 or byte == 0 for byte in path.read_bytes()[:500]):
        ways += [text] * 10 + [lines] * 3
    else:
        ways += [sizes] * 4
    way = ways[rng.integers(len(ways))]
    try:
        return way(path, rng)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile):
        return flip(path, rng)  # what cannot be damaged by its structure


def flip(path: Path, rng: Rng) -> str:
    content = bytearray(path.read_bytes()) or bytearray(b"x")
    count = int(rng.choice([1, 1, 2, 8, 64]))
    for place in rng.integers(0, len(content), count):
        content[place] = int(rng.choice([0, 255, 127, 128, int(rng.integers(256))]))
    path.write_bytes(content)
    return f"{count} bytes"


def cut(path: Path, rng: Rng) -> str:
    content = path.read_bytes()
    at = int(rng.integers(0, len(content) + 1))
    path.write_bytes(content[:at])
    return f"cut at {at}"


def empty(path: Path, rng: Rng) -> str:
    path.write_bytes(b"" if rng.random() < 0.5 else b"\n" * 3)
    return "emptied"


def splice(path: Path, rng: Rng) -> str:
    content = path.read_bytes()
    a, b, c = sorted(int(n) for n in rng.integers(0, len(content) + 1, 3))
    path.write_bytes(content[:b] + content[a:b] * int(rng.integers(0, 4)) + content[c:])
    return "spliced"


def words(path: Path, rng: Rng) -> str:
    content = path.read_bytes()
    at, word = int(rng.integers(0, len(content) + 1)), WORDS[rng.integers(len(WORDS))]
    path.write_bytes(content[:at] + word + content[at + int(rng.choice([0, len(word)])) :])
    return f"{word[:12]!r} put in"


def swap(path: Path, rng: Rng) -> str:
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(content[half:] + content[:half])
    return "halves swapped"


def sizes(path: Path, rng: Rng) -> str:
    """Write a huge or odd number where binary formats keep sizes: aligned, near the beginning."""
    content = bytearray(path.read_bytes())
    width = int(rng.choice([1, 2, 4, 8]))
    at = int(rng.integers(0, max(1, min(len(content), 2000) // width))) * width
    value = int(rng.choice([0, 1, 2 ** (8 * width) - 1, 2 ** (8 * width - 1), 2 ** (8 * width - 1) - 1, 65535]))
    content[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, str(rng.choice(["little", "big"])))  # type: ignore[arg-type]
    path.write_bytes(content)
    return f"{width} bytes at {at} set to {value}"


def blocks(path: Path, rng: Rng) -> str:
    """Write a huge or odd number into a block by which HDF5 finds its objects: heaps, trees, tables, headers."""
    content = bytearray(path.read_bytes())
    found = list(re.finditer(b"GCOL|TREE|SNOD|HEAP|OHDR|OCHK|FRHP|FHDB|FHIB|BTHD|BTLF|BTIN|FSHD|FSSE", content))
    block = found[rng.integers(len(found))]
    width = int(rng.choice([1, 2, 4, 8]))
    at = block.end() + int(rng.integers(0, 256 // width)) * width
    if rng.random() < 0.3:  # address of some block, by which the structure may lead to itself
        width, value = 8, found[rng.integers(len(found))].start()
    else:
        value = int(rng.choice([0, 1, 2, 128, 255, 4096]))
        value = int(rng.choice([value, 2 ** (8 * width) - 16, 2 ** (8 * width) - 1], p=[0.6, 0.2, 0.2]))
    content[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    path.write_bytes(content)
    return f"{block.group().decode()} at {block.start()}: {width} bytes at {at} set to {value}"


def sealed(path: Path, rng: Rng) -> str:
    """Damage a file that ends with a check sum, and set that right."""
    how = flip(path, rng)
    content = path.read_bytes()[:-4]
    path.write_bytes(content + zlib.crc32(content).to_bytes(4, "little"))
    return f"{how}, check sum right"


def text(path: Path, rng: Rng) -> str:
    """Replace a number, or a word, of a text."""
    content = path.read_text("utf-8", errors="replace")
    pattern = r"-?\d+\.?\d*(?:[eE][-+]?\d+)?" if rng.random() < 0.7 else r"\w+"
    found = list(re.finditer(pattern, content))
    if not found:
        return flip(path, rng)
    for match in sorted((found[k] for k in set(rng.integers(0, len(found), int(rng.choice([1, 1, 3]))))),
                        key=lambda m: -m.start()):  # fmt: skip
        new = NUMBERS[rng.integers(len(NUMBERS))]
        content = content[: match.start()] + new + content[match.end() :]
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-8", "utf-16", "latin-1"]))
    path.write_bytes(content.encode(encoding, errors="replace"))
    return f"numbers or words replaced, {encoding}"


def lines(path: Path, rng: Rng) -> str:
    """Remove, double or shuffle lines."""
    rows = path.read_text("utf-8", errors="replace").splitlines(keepends=True)
    way = rng.integers(3)
    at = int(rng.integers(0, len(rows)))
    if way == 0:
        del rows[at]
    elif way == 1:
        rows.insert(int(rng.integers(0, len(rows))), rows[at])
    else:
        rng.shuffle(rows)  # type: ignore[arg-type]
    path.write_text("".join(rows), "utf-8")
    return "lines"


def _odd(rng: Rng) -> Any:
    nested: list[Any] = []
    for _ in range(200):
        nested = [nested]
    odd = [None, True, -1, 0, 1e300, float("inf"), float("nan"), 10**40, "", "x" * 5000, "../x", [], {}, [[]], [1, "a"],
           {"a": {"b": []}}, nested, [1e16] * 3, "nan", -0.5, [None]]  # fmt: skip
    return odd[rng.integers(len(odd))]


def _places(tree: Any) -> list[tuple[Any, Any]]:
    found = []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found.append((tree, key))
        found += _places(value)
    return found


def tree(path: Path, rng: Rng) -> str:
    """Replace, remove or rename a value of a JSON or TOML file."""
    content = path.read_text("utf-8")
    toml = path.suffix == ".toml"
    values = tomllib.loads(content) if toml else json.loads(content)
    places = _places(values)
    holder, key = places[rng.integers(len(places))]
    way = rng.random()
    if way < 0.2:
        del holder[key]
    elif way < 0.3 and isinstance(holder, dict):
        holder[str(_odd(rng))[:40]] = holder.pop(key)
    else:
        value = _odd(rng)
        holder[key] = "none" if toml and value is None else value
    path.write_text(tomli_w.dumps(values) if toml else json.dumps(values), "utf-8")
    return f"{key} changed"


def archive(path: Path, rng: Rng) -> str:
    """Replace, remove or misdeclare an array of an .npz."""
    with zipfile.ZipFile(path) as source:
        entries = {name: source.read(name) for name in source.namelist()}
    name = list(entries)[rng.integers(len(entries))]
    way = rng.integers(5)
    if way == 0:
        del entries[name]
    elif way == 1:
        entries[name] = re.sub(rb"'shape': \([^)]*\)", b"'shape': (99999999999, 7)", entries[name])
    elif way == 2:
        arrays = [np.zeros(0), np.full((3, 3), np.nan), np.full(4, np.inf), np.array("x"), np.array(-1), np.zeros((2, 2, 2)),
                  np.array([1e300]), np.arange(7), np.array(["a", "b"]), np.array([True])]  # fmt: skip
        stream = io.BytesIO()
        np.save(stream, arrays[rng.integers(len(arrays))])
        entries[name] = stream.getvalue()
    elif way == 3:
        spoilt = bytearray(entries[name])
        spoilt[int(rng.integers(len(spoilt)))] ^= 1 << int(rng.integers(8))
        entries[name] = bytes(spoilt)
    else:
        other = list(entries)[rng.integers(len(entries))]
        entries[name], entries[other] = entries[other], entries[name]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for key, content in entries.items():
            target.writestr(key, content)
    return f"{name} changed"


def hdf5(path: Path, rng: Rng) -> str:
    """Change, remove, link out of or misdeclare an object of an HDF5 file."""
    names: list[str] = []
    with h5py.File(path, "r+") as file:
        file.visit(names.append)
        name = names[rng.integers(len(names))]
        way = int(rng.integers(9))
        holder = file[name].parent
        last = name.rsplit("/", 1)[-1]
        if way == 0:
            del file[name]
        elif way == 1:
            del file[name]
            holder[last] = h5py.ExternalLink("/etc/hostname", "/")
        elif way == 2:
            del file[name]
            holder[last] = h5py.SoftLink("/" + names[rng.integers(len(names))])
        elif way == 3:
            del file[name]
            holder.create_dataset(last, (1 << 40, 3), "f8", chunks=(1024, 3))
        elif way == 4:
            del file[name]
            odd = [np.zeros(0), np.full((5, 2, 3), np.inf), np.array(b"x"), np.array([b"a", b"b"]), -1, np.full((4, 4), 1e300),
                   np.arange(6).reshape(2, 3), np.zeros((1, 1, 1, 1, 1)), "text"]  # fmt: skip
            holder[last] = odd[rng.integers(len(odd))]
        elif way == 5 and isinstance(file[name], h5py.Dataset) and file[name].size and file[name].dtype.kind in "fiu":
            values = file[name][()]
            flat = np.atleast_1d(values).ravel()
            flat[rng.integers(len(flat))] = (
                rng.choice([np.inf, 1e300, np.nan, -1e18]) if flat.dtype.kind == "f" else rng.choice([0, 1, 127])
            )
            file[name][()] = flat.reshape(np.shape(values))
        elif way == 6:
            node = file[name] if rng.random() < 0.5 else file
            keys = list(node.attrs)
            if keys:
                key = keys[rng.integers(len(keys))]
                odd = ["", "x", -1, np.inf, np.zeros(3), "{", 10**12, b"\xff"]
                del node.attrs[key]
                if rng.random() < 0.7:
                    node.attrs[key] = odd[rng.integers(len(odd))]
        elif way == 7:
            file[f"{holder.name}/loop"] = file["/"]
        else:
            other = names[rng.integers(len(names))]
            if not other.startswith(name) and not name.startswith(other):
                del file[name]
                file[name] = file[other]
    return f"{name}: way {way}"


def copied(source: Path, target: Path) -> None:
    """Copy a file or a folder over whatever lies at the target."""
    if target.is_dir():
        shutil.rmtree(target)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)
