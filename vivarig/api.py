"""The steps of the command line as functions, for notebooks and scripts.

A stage function takes the recording folder and the stage's typed options; it writes the stage's result file and returns
its `CommandReport`. Without options, those of recording.toml hold.
"""

from __future__ import annotations

from pathlib import Path

from calibration.accuracy.report import CalibrationOutcome
from capture.recordings.recording import Recording, load_recording
from skeleton.analysis.cycles import CycleCurve
from skeleton.analysis.scoring import JointScores, score_joints
from vivarig.calibration_stage.board_calibration import calibrate_session
from vivarig.calibration_stage.options import CalibrateOptions, WorldOptions
from vivarig.console.reporting import CommandReport
from vivarig.evaluation.scores import common_joints, load_estimate, load_joint_map, load_truth
from vivarig.export.files import ExportOptions, export_file
from vivarig.jobs.cutting import LENGTH
from vivarig.pipeline import RunOptions, StageOutcome, run_recording
from vivarig.pipeline.standalone import run_one_stage
from vivarig.report.gait_section import recording_cycles
from vivarig.report.motion import motion_curves
from vivarig.results.findings import Findings, load_findings
from vivarig.stages.options import (
    HullOptions,
    ReportOptions,
    SilhouetteOptions,
    SkeletonOptions,
    StageOptions,
    TrackOptions,
    own_options,
)

__all__ = [
    "CalibrateOptions",
    "CalibrationOutcome",
    "CommandReport",
    "CycleCurve",
    "ExportOptions",
    "Findings",
    "HullOptions",
    "JointScores",
    "Recording",
    "ReportOptions",
    "SilhouetteOptions",
    "SkeletonOptions",
    "StageOutcome",
    "TrackOptions",
    "WorldOptions",
    "calibrate",
    "evaluate",
    "export",
    "gait_curves",
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


def calibrate(session: Path | str, options: CalibrateOptions | None = None) -> CalibrationOutcome:
    """Turn board videos into rig.toml (``vivarig calibrate``); the outcome holds the rig and how good it is."""
    return calibrate_session(Path(session), options or CalibrateOptions())[0]


def silhouettes(
    folder: Path | str, options: SilhouetteOptions | None = None, *, workers: int | None = None
) -> CommandReport:
    """Cut the subject out of the videos (``vivarig silhouettes``)."""
    recording = load_recording(folder)
    return run_one_stage("silhouettes", recording, options or own_options(recording, SilhouetteOptions), workers)


def hull(folder: Path | str, options: HullOptions | None = None, *, workers: int | None = None) -> CommandReport:
    """Reconstruct the visual hulls (``vivarig hull``)."""
    recording = load_recording(folder)
    return run_one_stage("hull", recording, options or own_options(recording, HullOptions), workers)


def track(folder: Path | str, options: TrackOptions | None = None, *, workers: int | None = None) -> CommandReport:
    """Fit the template surface (``vivarig track``)."""
    recording = load_recording(folder)
    return run_one_stage("track", recording, options or own_options(recording, TrackOptions), workers)


def skeleton_fit(folder: Path | str, options: SkeletonOptions | None = None) -> CommandReport:
    """Recover the skeleton (``vivarig skeleton``; named so because `skeleton` is a package)."""
    recording = load_recording(folder)
    return run_one_stage("skeleton", recording, options or own_options(recording, SkeletonOptions))


def report(folder: Path | str, options: ReportOptions | None = None) -> CommandReport:
    """Make the HTML report (``vivarig report``)."""
    recording = load_recording(folder)
    return run_one_stage("report", recording, options or own_options(recording, ReportOptions))


def run(
    folder: Path | str,
    *,
    until: str = "report",
    workers: int | None = None,
    part_frames: int = LENGTH,
    silhouettes: SilhouetteOptions | None = None,
    hull: HullOptions | None = None,
    track: TrackOptions | None = None,
    skeleton: SkeletonOptions | None = None,
    report: ReportOptions | None = None,
) -> list[StageOutcome]:
    """Run all stages up to ``until``, keeping what is done: ``run("mouse_07", hull=HullOptions(voxel_mm=2))``.

    Args:
        folder: of the recording.
        until: last stage to run.
        workers: processes to use, None for one per core.
        part_frames: most frames of the parts that the work is cut into; the track depends on it a little, on the
            workers not at all.
        silhouettes, hull, track, skeleton, report: options of the stages; None: those of recording.toml.
    """
    given: dict[str, StageOptions | None] = {
        "silhouettes": silhouettes, "hull": hull, "track": track, "skeleton": skeleton, "report": report,
    }  # fmt: skip
    chosen = {stage: options for stage, options in given.items() if options is not None}
    return run_recording(load_recording(folder), RunOptions(until, chosen, workers=workers, part_frames=part_frames))


def load_results(folder: Path | str) -> Findings:
    """Read the arrays of everything that the results hold."""
    return load_findings(load_recording(folder))


def gait_curves(folder: Path | str) -> list[CycleCurve]:
    """Return joint angles, ankle heights and wrist reaches over the gait cycle as mean and spread, as in the report.

    Left and right by the touch-downs of their own foot, slow strides before fast ones where there are two speeds; none
    where the subject did not walk.
    """
    recording = load_recording(folder)
    skeleton = load_findings(recording).skeleton
    return [] if skeleton is None else recording_cycles(skeleton, motion_curves(skeleton), recording)


def evaluate(folder: Path | str, truth: Path | str | None = None, joint_map: Path | str | None = None) -> JointScores:
    """Score the skeleton against truth (default: the recording's truth.h5), mm, no alignment."""
    recording = load_recording(folder)
    path = Path(truth) if truth is not None else recording.folder / "truth.h5"
    pairs = load_joint_map(Path(joint_map) if joint_map is not None else None)
    return score_joints(*common_joints(load_estimate(recording.results), load_truth(path), pairs))


def export(folder: Path | str, target: Path | str, options: ExportOptions | None = None) -> str:
    """Write results for another program, by the suffix of ``target`` (``vivarig export``); return what it holds."""
    return export_file(load_results(folder), Path(target), options or ExportOptions())
