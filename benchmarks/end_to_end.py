"""The whole pipeline on the sample mouse: 8 cameras of 640x480, from videos to report.

    python -m benchmarks.end_to_end

The first run compiles and is not counted; the second is timed stage by stage.
"""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
from pathlib import Path

from benchmarks.reference_kernel import reference_kernel_s
from capture.recording import load_recording
from vivarig.pipeline import RunOptions, run_recording
from vivarig.report.findings import load_findings

SAMPLE = Path(__file__).resolve().parent.parent / "sample_data" / "mouse"


def main() -> None:
    """Run, print the share of each stage and the JSON line."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "mouse"
        shutil.copytree(SAMPLE, place, ignore=shutil.ignore_patterns("results", "calibration"))
        run_recording(load_recording(place))
        shutil.rmtree(place / "results")
        outcomes = run_recording(load_recording(place))
        frames = load_findings(load_recording(place)).frames
        assert RunOptions().until == outcomes[-1].name
    total = sum(outcome.seconds for outcome in outcomes)
    for outcome in outcomes:
        print(f"{outcome.name:<12} {outcome.seconds:8.1f} s  {100 * outcome.seconds / total:5.1f} %")
    numbers = {
        "fps": frames / total,
        "stage_share": {outcome.name: outcome.seconds / total for outcome in outcomes},
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "frames": frames,
        "cameras": 8,
        "reference_kernel_s": reference_kernel_s(),
    }
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
