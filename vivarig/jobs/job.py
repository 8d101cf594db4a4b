"""One recording being worked on in parts: where its parts lie, which are done, and where their silhouettes are read."""

from __future__ import annotations

import contextlib
import json
import shutil
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from calibration.foundation.arrays import Bools
from calibration.foundation.digests import digest_of_path
from calibration.foundation.errors import InputError
from calibration.foundation.files import write_text
from calibration.foundation.result_files import open_results
from calibration.foundation.spans import Span
from capture.recordings.masks import LikeliestMasks
from capture.recordings.recording import Recording, load_recording
from vivarig.jobs.cutting import LENGTH, cut, cut_finer
from vivarig.jobs.kept_objects import is_ours, load_object, load_object_anew, save_object

__all__ = ["Job", "PartMasks", "StagePlan"]

O = TypeVar("O")  # noqa: E741
_FEW = 16
"""Stretches of a recording whose silhouettes are cut finer."""


@dataclass(frozen=True, eq=False)
class StagePlan:
    """How one stage of a recording is done.

    Attributes:
        name: the stage.
        options: the stage's own, typed (`vivarig.stages.options`).
        rests_on: digest of everything that its result depends on.
    """

    name: str
    options: Any
    rests_on: str


@dataclass(frozen=True, eq=False)
class Job:
    """One recording and the plans of its stages; small, and the same on every worker.

    Attributes:
        folder: of the recording.
        whole: its frames.
        plans: by stage.
        length: most frames of a part.
    """

    folder: Path
    whole: Span
    plans: dict[str, StagePlan] = field(default_factory=dict)
    length: int = LENGTH

    @cached_property
    def recording(self) -> Recording:
        """The recording, read where it is needed."""
        return load_recording(self.folder)

    def options(self, kind: type[O]) -> O:
        """Return the options of the stage whose options are of this kind."""
        return next(plan.options for plan in self.plans.values() if isinstance(plan.options, kind))

    @property
    def parts(self) -> Path:
        """Folder of the parts; gone when the run is done."""
        return self.folder / "results" / "parts"

    def __getstate__(self) -> dict[str, Any]:
        """Leave the read recording behind."""
        return {"folder": self.folder, "whole": self.whole, "plans": self.plans, "length": self.length}

    def spans(self, stage: str) -> tuple[Span, ...]:
        """Return the parts of a stage, in order."""
        chosen = getattr(self.plans[stage].options, "frames", None) if stage in self.plans else None
        spans = cut(span_of(chosen, self.whole), self.length) if chosen else self.stretches
        # A long recording has parts enough to keep all workers busy, and each file of silhouettes is put together.
        finer = stage == "hull" or (stage == "silhouettes" and len(spans) <= _FEW)
        return cut_finer(spans) if finer else spans

    @property
    def stretches(self) -> tuple[Span, ...]:
        """The frames cut into lengths that are tracked in one go."""
        return cut(self.whole, self.length)

    def check_start(self) -> None:
        """Refuse to start the track at a frame that is not tracked: no part would see it, and none would say so."""
        asked = self.plans["track"].options.start if "track" in self.plans else None
        spans = self.spans("track")
        if asked is not None and not spans[0].first <= asked < spans[-1].stop:
            raise InputError(
                f"track --start {asked}: frames {spans[0].first} to {spans[-1].stop - 1} are to be tracked"
            )

    def path(self, stage: str, phase: str, span: Span) -> Path:
        """Return the file of one part."""
        return self.parts / stage / f"{phase}-{span}.h5"

    def beside(self, stage: str, phase: str, span: Span, what: str) -> Path:
        """Return a second file of one part; it is made, checked and removed with the first."""
        path = self.path(stage, phase, span)
        return path.with_name(f"{path.stem}+{what}{path.suffix}")

    def is_done(self, stage: str, phase: str, span: Span) -> bool:
        """Return whether a part is there, unharmed, and rests on the same inputs."""
        path = self.path(stage, phase, span)
        try:
            note = json.loads(path.with_suffix(".json").read_text())
        except (OSError, ValueError):
            return False
        if not isinstance(note, dict) or note.get("rests_on") != self._rests_on(stage):
            return False
        return bool(note.get("made") == self._made(path))

    def record(self, stage: str, phase: str, span: Span) -> None:
        """Note that a part is done; one that leaves no file had nothing to do."""
        path = self.path(stage, phase, span)
        note = {"rests_on": self._rests_on(stage), "made": self._made(path)}
        write_text(path.with_suffix(".json"), json.dumps(note))

    def remove(self, stage: str, phase: str, span: Span) -> None:
        """Remove what a part left, to make it again."""
        path = self.path(stage, phase, span)
        for file in (path, *_beside(path)):
            file.unlink(missing_ok=True)

    def _made(self, path: Path) -> str:
        """Return a digest of a part's files, "nothing" where there is none."""
        return " ".join(digest_of_path(file) for file in (path, *_beside(path)) if file.is_file()) or "nothing"

    def _rests_on(self, stage: str) -> str:
        return self.plans[stage].rests_on if stage in self.plans else ""

    def _kept(self, stage: str, name: str) -> Path:
        return self.parts / stage / f"{name.replace('/', ' ')}.kept"

    def keep(self, stage: str, prepared: object) -> None:
        """Keep what the parts of a stage share, for the workers of this run and for one that resumes it."""
        save_object(self._kept(stage, "prepared"), prepared, self._rests_on(stage))

    def is_prepared(self, stage: str) -> bool:
        """Return whether that was kept."""
        return self._kept(stage, "prepared").is_file()

    def prepared(self, stage: str) -> Any:
        """Return what was kept."""
        return load_object(self._kept(stage, "prepared"))

    def once(self, stage: str, name: str, make: Callable[[], Any]) -> Any:
        """Return what ``make`` makes; made once, also by runs that are killed and resumed."""
        path = self._kept(stage, name)
        if path.is_file():
            return load_object(path)
        made = make()
        save_object(path, made, self._rests_on(stage))
        return made

    def keep_step(self, stage: str, name: str, made: object) -> None:
        """Keep what was made on the way to what a stage's parts share, until that is kept."""
        save_object(self._kept(stage, name), made, self._rests_on(stage))

    def kept_step(self, stage: str, name: str) -> Any:
        """Return what was kept on the way, None where it was not."""
        path = self._kept(stage, name)
        return load_object_anew(path) if path.is_file() else None

    def forget(self, stage: str) -> None:
        """Remove the steps of what a stage's parts share, which is kept by now."""
        for path in self.parts.joinpath(stage).glob("*.kept"):
            if path != self._kept(stage, "prepared"):
                path.unlink(missing_ok=True)

    def drop_strange(self) -> None:
        """Remove kept objects that this user did not write, or that rest on other inputs, before any is read."""
        for path in self.parts.glob("*/*.kept"):
            if not is_ours(path, self._rests_on(path.parent.name)):
                path.unlink(missing_ok=True)

    def clear(self, *stages: str) -> None:
        """Remove the parts of some stages, and their folder when it is empty."""
        for stage in stages:
            shutil.rmtree(self.parts / stage, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.parts.rmdir()


def _beside(path: Path) -> list[Path]:
    """Return the further files of a part (`Job.beside`)."""
    return sorted(path.parent.glob(f"{path.stem}+*{path.suffix}"))


def span_of(words: str, whole: Span) -> Span:
    """Return the frames that ``A:B`` names."""
    start, colon, stop = words.partition(":")
    try:
        first, last = int(start or whole.first), int(stop or whole.stop)
    except ValueError:
        raise InputError(f"--frames wants A:B, e.g. 100:400, got {words!r}") from None
    if not colon or not whole.first <= first < last <= whole.stop:
        raise InputError(f"--frames {words}: the recording has frames {whole.first} to {whole.stop - 1}")
    return Span(first, last)


class PartMasks:
    """Silhouettes of any frame, read from the parts they were made in."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._spans = job.spans("silhouettes")
        self._files: dict[Span, LikeliestMasks] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> PartMasks:
        """Open on demand."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close what was opened."""
        self._stack.close()

    def __call__(self, names: tuple[str, ...], frame: int) -> list[Bools]:
        """Return the silhouettes (H, W) of one frame, one per camera, with their most likely edges."""
        span = self._spans[bisect_right(self._spans, frame, key=lambda one: one.stop)]
        if span not in self._files:
            path = self._job.path("silhouettes", "masks", span)
            self._files[span] = LikeliestMasks(self._stack.enter_context(open_results(path, stage="silhouettes")))
        return [self._files[span](name, frame - span.first) for name in names]
