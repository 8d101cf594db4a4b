"""The steps of the command line as functions, for notebooks and scripts.

A stage function takes the recording folder and, as keywords, the options of its verb (``--no-scaling`` becomes
``no_scaling=True``); it writes the stage's result file and returns its `CommandReport`.
"""

from __future__ import annotations

from pathlib import Path

from capture.recordings.recording import Recording, load_recording
from skeleton.analysis.scoring import JointScores, score_joints
from vivarig.console.reporting import CommandReport
from vivarig.evaluation.scores import common_joints, load_estimate, load_joint_map, load_truth
from vivarig.jobs.cutting import LENGTH
from vivarig.pipeline import RunOptions, StageOutcome, run_recording
from vivarig.pipeline.stages import options_of, run_stage
from vivarig.results.findings import Findings, load_findings

__all__ = [
    "evaluate",
    "hull",
    "load_results",
    "open_recording",
    "report",
    "run",
    "silhouettes",
    "skeleton_fit",
    "track",
]


def open_recording(folder: Path | str) -> Recording:
    """Read and check a recording folder."""
    return load_recording(folder)


def _words(options: dict[str, object]) -> dict[str, str]:
    kept = {key.replace("_", "-"): value for key, value in options.items() if value is not None and value is not False}
    return {key: "true" if value is True else str(value) for key, value in kept.items()}


def _stage(name: str, folder: Path | str, options: dict[str, object]) -> CommandReport:
    return run_stage(name, options_of(name, _words(options), Path(folder)))


def silhouettes(folder: Path | str, **options: object) -> CommandReport:
    """Cut the subject out of the videos (``vivarig silhouettes``)."""
    return _stage("silhouettes", folder, options)


def hull(folder: Path | str, **options: object) -> CommandReport:
    """Reconstruct the visual hulls (``vivarig hull``)."""
    return _stage("hull", folder, options)


def track(folder: Path | str, **options: object) -> CommandReport:
    """Fit the template surface (``vivarig track``)."""
    return _stage("track", folder, options)


def skeleton_fit(folder: Path | str, **options: object) -> CommandReport:
    """Recover the skeleton (``vivarig skeleton``; named so because `skeleton` is a package)."""
    return _stage("skeleton", folder, options)


def report(folder: Path | str, **options: object) -> CommandReport:
    """Make the HTML report (``vivarig report``)."""
    return _stage("report", folder, options)


def run(
    folder: Path | str,
    *,
    until: str = "report",
    workers: int | None = None,
    part_frames: int = LENGTH,
    **stage_options: dict[str, object],
) -> list[StageOutcome]:
    """Run all stages up to ``until``, keeping what is done; options per stage: ``hull={"voxel": 2}``.

    ``workers``: processes to use, None for one per core. ``part_frames``: most frames of the parts that the work is cut
    into; the track depends on it a little, on the workers not at all.
    """
    options = {stage: _words(dict(given)) for stage, given in stage_options.items()}
    return run_recording(load_recording(folder), RunOptions(until, options, workers, part_frames=part_frames))


def load_results(folder: Path | str) -> Findings:
    """Read the arrays of everything that the results hold."""
    return load_findings(load_recording(folder))


def evaluate(folder: Path | str, truth: Path | str | None = None, joint_map: Path | str | None = None) -> JointScores:
    """Score the skeleton against truth (default: the recording's truth.h5), mm, no alignment."""
    recording = load_recording(folder)
    path = Path(truth) if truth is not None else recording.folder / "truth.h5"
    pairs = load_joint_map(Path(joint_map) if joint_map is not None else None)
    return score_joints(*common_joints(load_estimate(recording.results), load_truth(path), pairs))
