"""The run of a recording that has X-ray cameras alone: grid, cube, beads, motion, report, each kept when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.foundation.digests import digest_of_path
from calibration.foundation.errors import InputError
from capture.recordings.recording import Recording
from vivarig.console.reporting import CommandReport
from vivarig.jobs.fingerprints import Ledger, digest_of_inputs, digest_of_words
from vivarig.jobs.lock import results_lock

if TYPE_CHECKING:
    from calibration.xray.attenuation import Polarity
    from vivarig.xray.recording import XrayFolder

__all__ = ["XRAY_STEPS", "run_beads", "xray_alone"]

#: Steps of such a run, with what each leaves in results/.
XRAY_STEPS = {
    "undistort": "xray/distortion.h5",
    "calibrate": "xray/rig.toml",
    "beads": "xray/tracks.h5",
    "triangulate": "beads.h5",
    "report": "report.html",
}


def xray_alone(recording: Recording) -> bool:
    """Whether all cameras are X-ray ones: there is no skin to track then."""
    return bool(recording.footage) and all(footage.kind == "xray" for footage in recording.footage)


def run_beads(
    recording: Recording, tell: Callable[[str, str], None]
) -> list[tuple[str, str, float, CommandReport | None, str]]:
    """Bring the bead steps of a recording up to date; return of each its name, status, seconds, words and shortcoming.

    Grid and cube are left out where the session has no pictures of them: then the recording's own rig is used.
    """
    from vivarig.xray.recording import XrayFolder

    folder = XrayFolder.of(recording)
    steps = dict(XRAY_STEPS)
    if not (folder.session / "grid").is_dir():
        steps.pop("undistort")
    if not (folder.session / "cube").is_dir():
        steps.pop("calibrate")
        if recording.rig is None:
            raise InputError(
                f"{recording.folder}: X-ray cameras without a calibration; wanted pictures of the bead cube in "
                f"{folder.session / 'cube'}/CAMERA and cube.csv, or rig = ... in recording.toml"
            )
    outcomes: list[tuple[str, str, float, CommandReport | None, str]] = []
    with results_lock(recording.results):
        ledger = Ledger(recording.results)
        session = digest_of_path(folder.session) if folder.session.is_dir() else ""
        rests_on = digest_of_words("xray", digest_of_inputs(recording), session, options={})
        for name, output in steps.items():
            rests_on = digest_of_words(name, rests_on, options={})
            path = recording.results / output
            if ledger.is_done(f"xray {name}", rests_on, path):
                tell(name, "done before, kept")
                outcomes.append((name, "kept", 0.0, None, ledger.reason(f"xray {name}")))
                continue
            tell(name, "running")
            begun = time.perf_counter()
            report = _step(name, folder, path)
            ledger.record(f"xray {name}", rests_on, path, report.reason)
            outcomes.append((name, "done", time.perf_counter() - begun, report, report.reason))
    return outcomes


def _step(name: str, folder: XrayFolder, path: Path) -> CommandReport:
    # Here, not above: every run asks whether it is one of beads, few are, and these take a second to import.
    from vivarig.report.build import build_report
    from vivarig.xray.calibrate import calibrate
    from vivarig.xray.recording import BONES, LABELS
    from vivarig.xray.track import track
    from vivarig.xray.triangulate import triangulate
    from vivarig.xray.undistort import undistort

    polarity: Polarity = "dark"
    if name == "undistort":
        return undistort(folder, model=None)
    if name == "calibrate":
        return calibrate(folder, unit="mm", guess=False, references=None, polarity=polarity)
    if name == "beads":
        return track(
            folder, cameras=None, start=folder.given(LABELS), corrections=None, one_based=False, y_up=False,
            bead_sigma=None, polarity=polarity,
        )  # fmt: skip
    if name == "triangulate":
        return triangulate(
            folder, names=None, bones=folder.given(BONES), method="butterworth", cutoff_hz=None, max_gap=8
        )
    return CommandReport([f"report: {path}"], build_report(folder.recording, path))
