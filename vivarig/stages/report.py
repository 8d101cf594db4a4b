"""The report of a recording."""

from __future__ import annotations

from capture.recordings.recording import Recording
from vivarig.console.reporting import CommandReport
from vivarig.report.build import build_ahead, build_report
from vivarig.stages.options import ReportOptions

__all__ = ["build_ahead", "run"]


def run(recording: Recording, options: ReportOptions) -> CommandReport:
    """Write the report."""
    path = options.output or recording.results / "report.html"
    numbers = build_report(recording, path)
    lines = [f"report: {path}"]
    if "mean_joint_error_mm" in numbers:
        lines.append(f"mean joint error against the truth: {numbers['mean_joint_error_mm']:.2f} mm")
    return CommandReport(lines, numbers)
