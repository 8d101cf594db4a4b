"""Fingerprints: what a stage rests on, and what it made, as short digests.

A stage is done when its output is there, unharmed, and made from the same inputs with the same options. All of that is
told by content, never by time stamps, so that a copied folder is still done and an undisturbed run and a resumed one
leave the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from calibration.foundation.digests import digest_of_path, digest_of_result
from calibration.foundation.files import write_text
from capture.recordings.recording import STAGES, Recording
from skeleton.bodies import BODIES
from vivarig.console.reporting import plain_json
from vivarig.edits.edit_file import edits_file, load_edits
from vivarig.version import __version__

__all__ = ["Ledger", "digest_of_inputs", "digest_of_more", "digest_of_words"]

_BESIDE = {"track": ("redrawn.h5",)}
"""Stage -> further files in ``results/`` that it may make; without them, or with harmed ones, it is not done."""
_READ_AT_ONCE = 8
"""Videos that are read at a time."""


def digest_of_inputs(recording: Recording) -> str:
    """Return a digest of what every stage rests on: description, rig, footage, backgrounds, masks."""
    paths: list[Path | None] = [recording.rig_file]
    for footage in recording.footage:
        paths += [path for path in (footage.source, *footage.backgrounds, footage.masks) if path is not None]
    return _digest_of_paths(paths, _description(recording))


def _description(recording: Recording) -> str:
    """Return what recording.toml says, less the stages' own settings and tracking's points: those are theirs alone."""
    content = tomllib.loads((recording.folder / "recording.toml").read_text(encoding="utf-8"))
    content.pop("point_names", None)
    for camera in content.get("cameras", {}).values():
        camera.pop("points", None)
    return json.dumps({key: value for key, value in content.items() if key not in STAGES}, sort_keys=True, default=str)


def digest_of_more(recording: Recording, stage: str, options: Mapping[str, Any]) -> str:
    """Return a digest of the files that one stage reads besides: the subject's folder, beads, truth."""
    paths: list[Path | None] = []
    if stage in ("track", "skeleton"):
        name = options.get("subject") or options.get("body") or recording.subject
        places = () if name is None or name in BODIES else (recording.folder / str(name), Path(str(name)))
        paths.append(next((place for place in places if place.is_dir()), None))
    if stage == "track":
        paths += [recording.point_names, *(footage.points for footage in recording.footage)]
    if stage == "skeleton":
        paths.append(recording.results / "beads.h5")
    if stage == "report":
        paths += [recording.results / "beads.h5", recording.folder / "truth.h5"]
    return _digest_of_paths(paths, _edits_of(recording, stage, options))


def _edits_of(recording: Recording, stage: str, options: Mapping[str, Any]) -> str:
    """Return a digest of the edits that a stage follows; those of silhouettes and track are laid over their results."""
    if stage not in ("skeleton", "report"):
        return ""
    edits = load_edits(edits_file(recording.folder))
    if stage == "report":
        described = edits.described()
        return json.dumps(described) if described else ""
    words = edits.digest("masks", "drops", "lost", "key_poses", "bead_names")
    if options.get("clean"):
        words += edits.digest("holds") + json.dumps(recording.settings.get("clean", {}), sort_keys=True, default=str)
    return words


def _digest_of_paths(paths: Iterable[Path | None], words: str = "") -> str:
    state = hashlib.blake2b(words.encode(), digest_size=16)
    there = [path if path is not None and path.exists() else None for path in paths]
    with ThreadPoolExecutor(_READ_AT_ONCE) as threads:  # an hour's videos: reading them is all that happens meanwhile
        for digest in threads.map(lambda path: "" if path is None else digest_of_path(path), there):
            state.update(f"{digest}|".encode())
    return state.hexdigest()


class Ledger:
    """The list of stages done in a results folder, ``stages.json``: what each rested on and what it made."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "stages.json"
        self._entries: dict[str, dict[str, Any]] = {}
        if self._path.is_file():
            try:
                content = json.loads(self._path.read_text())
            except ValueError:
                content = {}  # unreadable: everything is checked again, nothing is believed
            if isinstance(content, dict):
                self._entries = {k: v for k, v in content.items() if isinstance(v, dict)}

    def is_done(self, stage: str, rests_on: str, output: Path) -> bool:
        """Return whether ``output`` is the unharmed result of ``stage`` from the same inputs."""
        entry = self._entries.get(stage, {})
        if entry.get("rests_on") != rests_on or not output.is_file():
            return False
        return bool(entry.get("made") == self._made(stage, output))

    def is_damaged(self, stage: str, rests_on: str, output: Path) -> bool:
        """Return whether ``output`` was made from the same inputs but is no longer what was made."""
        entry = self._entries.get(stage, {})
        same = entry.get("rests_on") == rests_on and output.is_file()
        return same and entry.get("made") != self._made(stage, output)

    def reason(self, stage: str) -> str:
        """Return which quality threshold the kept result of ``stage`` missed; empty where it missed none."""
        return str(self._entries.get(stage, {}).get("reason", ""))

    def made_from(self, stage: str, rests_on: str) -> bool:
        """Return whether ``stage`` was finished from these inputs with these options, whatever became of its result."""
        return self._entries.get(stage, {}).get("rests_on") == rests_on

    def given(self, stage: str) -> list[tuple[dict[str, str], str]]:
        """Return options that were given for ``stage``, other than its recording's, as text, and what each rested on.

        Those of a run that was not finished come first.
        """
        entry = self._entries.get(stage, {})
        found = []
        for one in (entry.get("begun"), entry):
            if isinstance(one, dict) and isinstance(one.get("given"), dict):
                words = {str(name): str(value) for name, value in one["given"].items()}
                found.append((words, str(one.get("rests_on"))))
        return found

    def begin(self, stage: str, rests_on: str, given: Mapping[str, str]) -> None:
        """Note the options given for a stage that is about to be made; a finished result takes their place."""
        entry = self._entries.setdefault(stage, {})
        begun = {"rests_on": rests_on, "given": dict(given)} if given else None
        if entry.get("begun") != begun:
            entry["begun"] = begun
            self._write()

    def record(
        self, stage: str, rests_on: str, output: Path, reason: str, given: Mapping[str, str] | None = None
    ) -> None:
        """Note that ``stage`` made ``output``, with which options, and which quality threshold it missed, if any."""
        self._entries[stage] = {
            "rests_on": rests_on, "made": self._made(stage, output), "reason": reason, "given": dict(given or {}),
        }  # fmt: skip
        self._write()

    def laid_over(self) -> tuple[str, str]:
        """Return what the edits that lie over the results rested on, and what they made; empty words for none."""
        entry = self._entries.get("edits", {})
        return str(entry.get("rests_on", "")), str(entry.get("made", ""))

    def note_edits(self, rests_on: str, made: str) -> None:
        """Note that edits were laid over the results."""
        self._entries["edits"] = {"rests_on": rests_on, "made": made}
        self._write()

    def _made(self, stage: str, output: Path) -> str:
        """Return a digest of a result, with what its stage may have made beside it."""
        beside = (self._path.with_name(name) for name in _BESIDE.get(stage, ()))
        return " ".join(digest_of_result(path) for path in (output, *beside) if path == output or path.is_file())

    def _write(self) -> None:
        write_text(self._path, json.dumps(self._entries, indent=1, sort_keys=True) + "\n")


def digest_of_words(*words: str, options: Mapping[str, Any]) -> str:
    """Return a digest of words and options, with the program's version."""
    text = json.dumps([__version__, *words, plain_json(options)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
