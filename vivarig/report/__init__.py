"""The report: one self-contained HTML page that opens from disk and shows what to trust."""

from vivarig.report.build import build_report

__all__ = ["build_report"]
