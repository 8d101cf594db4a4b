"""Edits in a run: laid over what silhouettes, hull and track made, once, before the stages that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from capture.recordings.recording import Recording
from vivarig.edits.edit_file import Edits, edits_file, load_edits
from vivarig.jobs.fingerprints import Ledger, digest_of_words
from vivarig.jobs.job import StagePlan
from vivarig.mending.unedited import FILES, as_made, mended_digest, take_off

__all__ = ["EditsInRun"]

_NAME = "edits"


class EditsInRun:
    """The edits of a recording that is being run."""

    def __init__(self, recording: Recording, plans: Mapping[str, StagePlan], ledger: Ledger) -> None:
        self._recording, self._ledger = recording, ledger
        self._edits: Edits = load_edits(edits_file(recording.folder))
        before = [plan.rests_on for name, plan in plans.items() if name in FILES]
        told = self._edits.digest("masks", "drops", "lost", "key_poses")
        self._rests_on = digest_of_words(_NAME, told, *before, options={})
        self.pending = self._edits.touches_track

    def prepare(self) -> None:
        """Find out whether they are laid over the results as they are; take old ones off where they are not."""
        results = self._recording.results
        entry = (self._rests_on, mended_digest(results))
        if self.pending and self._ledger.laid_over() == entry and entry[1] != "nothing":
            self.pending = False
            return
        self.begin_again()

    def begin_again(self) -> None:
        """Take them off: a result that they lie over is made again."""
        self.pending = self._edits.touches_track
        take_off(self._recording.results)

    def output(self, name: str) -> Path:
        """Return a stage's result as the stage made it."""
        return as_made(self._recording.results, name)

    def lay(self, tell: Callable[[str, str], None]) -> None:
        """Lay them over the results."""
        from vivarig.pipeline.laying_edits import apply_edits  # the whole tracker, which runs without edits never need

        with ExitStack() as undo:
            undo.callback(take_off, self._recording.results)  # a wrong edit leaves the results as they were made
            said = apply_edits(self._recording, self._edits)
            undo.pop_all()
        for line in said:
            tell(_NAME, line)
        self._ledger.note_edits(self._rests_on, mended_digest(self._recording.results))
