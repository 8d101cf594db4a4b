"""``vivarig film``: films of a recording with what was found drawn over it."""

from __future__ import annotations

import argparse
from pathlib import Path

from calibration.foundation.spans import Span
from capture.recordings.recording import load_recording
from vivarig.commands.stage_arguments import real
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport
from vivarig.films.writing import FilmOptions, write_films
from vivarig.jobs.job import span_of
from vivarig.results.findings import load_findings

__all__ = ["EXAMPLE", "HELP", "add_arguments", "run"]

HELP = (
    "Write results/films: an mp4 per camera and one of all cameras with the skeleton in space beside them. Surface, "
    "markers and bones are drawn over the images; bones are white where they are trusted, orange where doubtful, red "
    "where lost. Plays in a browser."
)
EXAMPLE = """  vivarig film mouse_07
  vivarig film mouse_07 --frames 100:400 --slow 4 --surface"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("recording", type=Path, help="recording folder")
    parser.add_argument("--frames", metavar="A:B", help="only frames A to B - 1")
    parser.add_argument("--slow", type=real(above=0), default=1.0, metavar="N", help="N times slower than life")
    parser.add_argument("--surface", action="store_true", help="shade the surface; else its outline")
    parser.add_argument("--only-all", action="store_true", help="no films of single cameras")
    parser.add_argument("--output", type=Path, metavar="DIR", help="where to write (default: results/films)")


def run(args: argparse.Namespace) -> CommandReport:
    """Write the films."""
    findings = load_findings(load_recording(args.recording))
    span = None if args.frames is None else span_of(args.frames, Span(0, findings.frames))
    options = FilmOptions(span, args.slow, args.surface, not args.only_all)
    folder = args.output or findings.recording.results / "films"
    with progress_callback("films") as on_progress:
        paths = write_films(findings, folder, options, on_progress)
    return CommandReport([f"wrote {path}" for path in paths], {"films": [str(path) for path in paths]})
