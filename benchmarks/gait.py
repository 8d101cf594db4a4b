"""Gait: contacts against force plates and studio truth, rhythm from silhouettes, feet that stand after cleaning.

    python -m benchmarks.gait [part ...]

Parts: plates, studio, cmu, wheels, speed, constraints, rhythm, tracked, clean, hierarchy. All of them by default. The
sample recordings are tracked first, which takes minutes; ``GAIT_SAMPLES=FOLDER`` keeps them in a folder, or finds them
there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from benchmarks.walking import cleaning, constraints, contacts, plates, rhythm, wheels

PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "plates": plates.plate_scores,
    "studio": contacts.studio_scores,
    "cmu": contacts.cmu_scores,
    "wheels": wheels.wheel_scores,
    "speed": contacts.speed_score,
    "constraints": constraints.constraint_scores,
    "rhythm": rhythm.rhythm_scores,
    "tracked": lambda: contacts.tracked_scores(cleaning.sample_folders()),
    "clean": cleaning.clean_scores,
    "hierarchy": cleaning.hierarchy_scores,
}


def main() -> None:
    """Measure and print."""
    numbers: dict[str, float] = {}
    for name in sys.argv[1:] or PARTS:
        found = PARTS[name]()
        print(name)
        for key, value in found.items():
            print(f"  {key:28} {value:.4g}")
        numbers |= found
    f1s = [value for key, value in numbers.items() if key == "studio_f1_min" or key.startswith("tracked_f1")]
    if f1s:
        numbers["f1_min"] = min(f1s)
    print(json.dumps({key: float(f"{value:.6g}") for key, value in numbers.items()}))


if __name__ == "__main__":
    main()
