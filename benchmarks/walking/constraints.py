"""Geometric constraints: plants of a synthetic walk, run and walk; the jaw's joint."""

from __future__ import annotations

import numpy as np

from benchmarks.walking.plates import data_folder
from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import rotation_from_vector
from skeleton.analysis.constraints import Template, find_constraints
from skeleton.analysis.joint_types import joint_motion

__all__ = ["constraint_scores", "walk_run_walk"]


def walk_run_walk(seed: int) -> tuple[Floats, list[tuple[int, int]]]:
    """Return 350 frames at 25 Hz of a foot that goes 17 m: four plants of a walk and six of a run, less still."""
    rng = np.random.default_rng(seed)
    plants = [(34, 42), (66, 74), (98, 106), *((140 + 16 * k, 145 + 16 * k) for k in range(6)), (300, 308)]
    loose = [1.0] * 3 + [8.0] * 6 + [1.0]
    stops = np.linspace(0.0, 17000.0, 11)[1:]
    place, tilt = np.zeros((350, 3)), np.zeros(350)
    before, where = 0, 0.0
    for (start, end), stop, soft in zip(plants, stops, loose, strict=True):
        share = np.linspace(0.0, 1.0, start - before + 1)[:-1]
        place[before:start, 0] = where + (stop - where) * share
        place[before:start, 2] = 200.0 * np.sin(np.pi * share)
        tilt[before:start] = 0.8 * np.sin(2 * np.pi * share + 0.4) - 0.8 * np.sin(0.4) + 0.3 * share
        place[start:end, 0] = stop
        place[start:end] += soft * rng.uniform(-0.5, 0.5, (end - start, 3))
        tilt[start:end] = 0.3 + 0.004 * soft * rng.uniform(-0.5, 0.5, end - start)
        before, where = end, stop
    share = np.linspace(0.0, 1.0, 350 - before)
    place[before:, 0], place[before:, 2], tilt[before:] = where + 900 * share, 200 * np.sin(np.pi * share), 0.8 * share
    poses = np.broadcast_to(np.eye(4), (350, 4, 4)).copy()
    poses[:, :3, :3] = rotation_from_vector(np.stack([0 * tilt, tilt, 0 * tilt], axis=1))
    poses[:, :3, 3] = place
    return poses, plants


def constraint_scores() -> dict[str, float]:
    """Count the plants found within a frame, of ten each, over ten seeds; and look at the jaw."""
    both = [Template("space", 34, 41), Template("space", 156, 160), Template("space", 300, 307)]
    ways: dict[str, list[int]] = {"templates": [], "no_template": [], "walk_only": [], "global": []}
    for seed in range(10):
        poses, plants = walk_run_walk(seed)
        ways["templates"].append(_right(poses, plants, templates=both))
        ways["no_template"].append(_right(poses, plants))
        ways["walk_only"].append(_right(poses, plants, templates=both[:1]))
        ways["global"].append(_right(poses, plants, templates=both[:1], local=False))
    out = {f"plants_{name}": float(np.mean(counts)) for name, counts in ways.items()}
    out["plants_templates_least"] = float(min(ways["templates"]))
    bones = []
    for name in ("RigidBody001_Upper", "RigidBody002_lower"):
        rows = np.genfromtxt(data_folder() / "jaw_xray" / f"{name}_transformation.csv", delimiter=",", skip_header=1)
        poses = np.swapaxes(rows.reshape(-1, 4, 4), 1, 2)
        poses[:, :3, 3] *= 10.0
        bones.append(poses)
    jaw = joint_motion(*bones)
    print(f"  the jaw: {jaw.kind}{' that slides' if jaw.slides else ''}")
    return out | {
        "jaw_about_axis": jaw.about_axis, "jaw_range_deg": jaw.range_deg, "jaw_slide_mm": jaw.slide_mm,
        "jaw_hinge_with_sliding": float(jaw.kind == "hinge" and jaw.slides),
    }  # fmt: skip


def _right(poses: Floats, plants: list[tuple[int, int]], **options: object) -> int:
    found = [one for one in find_constraints(poses, 25.0, **options) if one.kind == "space"]  # type: ignore[arg-type]
    return sum(any(abs(one.first - a) <= 1 and abs(one.last + 1 - b) <= 1 for one in found) for a, b in plants)
