"""The stages of a recording, in order: what each needs, makes and is run by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from threadpoolctl import threadpool_limits

from calibration.foundation.errors import InputError
from calibration.foundation.spans import Span
from capture.recordings.recording import Recording
from vivarig.console.reporting import CommandReport
from vivarig.jobs.first_looks import Looked
from vivarig.jobs.job import Job
from vivarig.stages.options import (
    STAGE_OPTIONS,
    HullOptions,
    ReportOptions,
    SilhouetteOptions,
    SkeletonOptions,
    StageOptions,
)

__all__ = ["STAGES", "CutStage", "SharedStage", "Stage", "cut_stage", "run_whole", "shared_stage"]


@dataclass(frozen=True)
class Stage:
    """One stage.

    Attributes:
        name: as its verb.
        output: the file it makes in ``results/``.
        needs: the stages whose outputs it reads.
        phases: what is done with each part, one after the other; none: the stage is done as a whole.
        shared: whether its parts share something that is made first.
    """

    name: str
    output: str
    needs: tuple[str, ...]
    phases: tuple[str, ...] = ()
    shared: bool = False

    @property
    def options(self) -> type[StageOptions]:
        """Its options."""
        return STAGE_OPTIONS[self.name]


STAGES: tuple[Stage, ...] = (
    Stage("silhouettes", "silhouettes.h5", (), ("masks",), shared=True),
    Stage("hull", "hull.h5", ("silhouettes",), ("hulls",)),
    Stage("track", "track.h5", ("silhouettes",), ("track", "mend"), shared=True),
    Stage("skeleton", "skeleton.h5", ("track",)),
    Stage("report", "report.html", ("silhouettes", "hull", "track", "skeleton")),
)


class CutStage(Protocol):
    """A stage that is done in parts."""

    def work(self, job: Job, phase: str, span: Span) -> None:
        """Do one part."""
        ...

    def join(self, job: Job) -> CommandReport:
        """Put the parts together."""
        ...


class SharedStage(Protocol):
    """A stage whose parts share something."""

    def prepare(self, job: Job, threads: int, looked: Looked) -> object:
        """Make what they share from some of the silhouettes; None if those show too little."""
        ...


def cut_stage(name: str) -> CutStage:
    """Return a stage that is done in parts. (Imported where it is needed: a worker has use for one or two.)"""
    if name == "silhouettes":
        from vivarig.stages import silhouettes

        return silhouettes
    if name == "hull":
        from vivarig.stages import hull

        return hull
    from vivarig.track_stage import track

    return track


def shared_stage(name: str) -> SharedStage:
    """Return a stage whose parts share something."""
    if name == "silhouettes":
        from vivarig.stages import silhouettes

        return silhouettes
    from vivarig.track_stage import track

    return track


def run_whole(recording: Recording, options: StageOptions, workers: int | None = None) -> CommandReport:
    """Run a stage on a whole recording in this process; which stage, its options tell."""
    with threadpool_limits(limits=1, user_api="blas"):  # the same bytes on any number of cores
        if isinstance(options, SilhouetteOptions):
            from vivarig.stages import silhouettes

            return silhouettes.run(recording, options, workers)
        if isinstance(options, HullOptions):
            from vivarig.stages import hull

            return hull.run(recording, options, workers)
        if isinstance(options, SkeletonOptions):
            from vivarig.stages import skeleton

            return skeleton.run(recording, options)
        if isinstance(options, ReportOptions):
            from vivarig.stages import report

            return report.run(recording, options)
    raise InputError(f"{type(options).__name__}: this stage is done in parts; use `run_one_stage`")
