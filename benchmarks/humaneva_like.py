"""The rendered set in HumanEva's layout, end to end. ``python -m benchmarks.humaneva_like``.

Four cameras as in HumanEva-II, captured motion of subjects that the human prior never saw, actors of other build,
silhouettes by the mixture model; the official error over frames 1-150 and 1-300. The images are rendered.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.crane.sequence import data_folder
from tracking.priors.cmu import load_cmu
from vivarig.api import run
from vivarig.evaluation.humaneva_like import ACTIONS, FRAMES
from vivarig.evaluation.humaneva_runs import run_action, table_lines, table_numbers
from vivarig.stages.options import SilhouetteOptions


def main() -> None:
    """Run some actions and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--actions", default=",".join(ACTIONS), help=f"some of {', '.join(ACTIONS)}")
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--keep", type=Path, help="folder to leave the set and the recordings in (default: none)")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    table = load_cmu(data_folder() / "cmu")
    scores = {}

    def mixture(place: Path) -> object:
        return run(place, until="skeleton", workers=args.workers, silhouettes=SilhouetteOptions(model="mixture"))

    with tempfile.TemporaryDirectory() as temporary:
        for name in args.actions.split(","):
            folder = args.keep or Path(temporary)
            scores[name] = run_action(table, name, folder, mixture, frames=args.frames, workers=args.workers)
            print(table_lines({name: scores[name]})[1], flush=True)
    print("\n".join(table_lines(scores)))
    print(json.dumps(table_numbers(scores)))


if __name__ == "__main__":
    main()
