"""Gait: contacts against force plates and studio truth, rhythm from silhouettes, feet that stand after cleaning.

    python -m benchmarks.gait [part ...]

Parts: plates, studio, cmu, speed. All of them by default.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from benchmarks.walking import contacts, plates

PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "plates": plates.plate_scores,
    "studio": contacts.studio_scores,
    "cmu": contacts.cmu_scores,
    "speed": contacts.speed_score,
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
    print(json.dumps({key: float(f"{value:.6g}") for key, value in numbers.items()}))


if __name__ == "__main__":
    main()
