"""People nobody here built, tracked from their videos with nothing set. ``python -m benchmarks.strangers``.

Offset-free joint errors, frames in which a wrong limb is called trusted, and whether the stated sigma is true.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.measuring.stranger_recordings import Scores, run_stranger, write_points

#: What is run: recording, cameras, with plates, true masks.
RUNS: dict[str, tuple[str, int, bool, bool]] = {
    "walk4": ("walk", 4, True, False),
    "walk8": ("walk", 8, True, False),
    "walk4_noplate": ("walk", 4, False, False),
    "dark4": ("walk_dark_shadow", 4, True, False),
    "box4": ("box", 4, True, False),
    "box4_true_masks": ("box", 4, True, True),
    "box4_points": ("box", 4, True, False),
}
#: With 2D points of the true joints besides: what share of them is wrong.
POINTS = {"box4_points": 0.1, "box4_wrong_points": 1.0}
#: Beside the contract: what silhouettes cost, and points that are all wrong.
BESIDE: dict[str, tuple[str, int, bool, bool]] = {
    "box4_wrong_points": ("box", 4, True, False),
    "walk4_true_masks": ("walk", 4, True, True),
    "walk8_true_masks": ("walk", 8, True, True),
    "dark4_true_masks": ("walk_dark_shadow", 4, True, True),
}


def row(name: str, scores: Scores) -> str:
    """Return one line of the table."""
    return (
        f"{name:<18}{scores.free_mm:9.1f}{scores.raw.mean():8.1f}{scores.wrong:8d}{scores.wrong_trusted:9d}"
        f"{scores.within:9.2f}{scores.trusted_share:10.2f}{scores.frame_trusted.mean():10.2f}"
    )


def main() -> None:
    """Run all, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", default=",".join(RUNS), help=f"some of {', '.join({**RUNS, **BESIDE})}")
    parser.add_argument("--keep", type=Path, help="folder to leave the recordings in (default: none)")
    args = parser.parse_args()
    result: dict[str, float] = {}
    every: list[Scores] = []
    print("recording          free mm  raw mm   wrong  trusted  within   trusted    frames", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        for name in args.runs.split(","):
            recording, cameras, plates, true = {**RUNS, **BESIDE}[name]
            place = (args.keep or Path(temporary)) / name
            points = None
            if name in POINTS:
                points = write_points(place / "points", recording, cameras, wrong=POINTS[name])
            scores = run_stranger(place, recording, cameras, plates=plates, true_masks=true, points=points)
            print(row(name, scores), flush=True)
            result[f"{name}_mm"] = scores.free_mm
            every.append(scores)
    result["wrong_trusted"] = sum(scores.wrong_trusted for scores in every)
    result["within_sigma_min"] = min(scores.within for scores in every)
    result["within_sigma_max"] = max(scores.within for scores in every)
    result["trusted_share"] = sum(scores.trusted_share for scores in every) / len(every)
    print(json.dumps({key: round(value, 4) for key, value in result.items()}))


if __name__ == "__main__":
    main()
