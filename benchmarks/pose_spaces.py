"""Pose spaces on CMU motion, split by subject: modes, compression, few points, natural posing, gaps.

    python -m benchmarks.pose_spaces [modes] [compression] [few] [posing] [fitc] [gaps] [long]

Without names all parts run, in some minutes on 2 cores. Published figures beside ours: Tournier et al. 2009 (modes,
compression), the FITC posing of 2011 (IEEE CG&A), Courty 2013 (gaps).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.pose_space_parts.coding import compression
from benchmarks.pose_space_parts.few_points import few_points
from benchmarks.pose_space_parts.gaps import gaps, long_motion
from benchmarks.pose_space_parts.gplvm_posing import fitc_against_full
from benchmarks.pose_space_parts.manifold import jacobian_error, modes, turned_frames
from benchmarks.pose_space_parts.natural_posing import natural_posing


def manifold() -> dict[str, object]:
    """Jacobian, joint axes, modes."""
    return {"jacobian_error": jacobian_error(), **turned_frames(), **modes()}


PARTS: dict[str, Callable[[], Mapping[str, object]]] = {
    "modes": manifold, "compression": compression, "few": few_points, "fitc": fitc_against_full,
    "gaps": gaps, "long": long_motion, "posing": natural_posing,
}  # fmt: skip


def _show(key: str, value: object, indent: str = "") -> None:
    if isinstance(value, dict):
        print(f"{indent}{key}:")
        for name, inner in value.items():
            _show(str(name), inner, indent + "  ")
    else:
        print(f"{indent}{key:42s} {value:.5g}" if isinstance(value, float) else f"{indent}{key:42s} {value}")


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.6g}")
    return int(value) if isinstance(value, np.integer) else value


def main() -> None:
    """Run the parts asked for and print their numbers."""
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"unknown part '{unknown[0]}'; known are {', '.join(PARTS)}")
    numbers: dict[str, object] = {}
    for name in wanted:
        print(f"-- {name}", flush=True)
        found = PARTS[name]()
        for key, value in found.items():
            _show(key, value)
        numbers |= found
    print(json.dumps(_plain(numbers)))


if __name__ == "__main__":
    main()
