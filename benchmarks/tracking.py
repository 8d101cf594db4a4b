"""Tracking: speed of the kernels and of the tracker, accuracy on the crane sequence and the samples.

    python -m benchmarks.tracking                 # everything in the contract of DESIGN.md
    python -m benchmarks.tracking --crane 4view   # only some crane runs (names, or "none")
    python -m benchmarks.tracking --ablations     # the table of ablations instead
    python -m benchmarks.tracking --priors        # the table of priors instead
    python -m benchmarks.tracking --drill         # the failure drill instead

Two processes of one thread each share the runs. ``fps`` is the whole tracker, second attempts and smoothing included,
the search for the start excluded, on 2 cores as `vivarig track` uses them: two parts of the sequence side by side.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.crane.ablations import ablation_table
from benchmarks.crane.builtin import CONDITIONS as BUILTIN_CONDITIONS
from benchmarks.crane.builtin import builtin_table
from benchmarks.crane.drill import failure_drill
from benchmarks.crane.priors import prior_table
from benchmarks.crane.runs import (
    CONDITIONS,
    Case,
    CraneSubject,
    crane_subjects,
    make_crane_subject,
    representation_mm,
    run_cases,
)
from benchmarks.crane.sequence import Crane
from benchmarks.crane.speed import tracking_fps
from benchmarks.gplvm import gplvm_against_gpy
from benchmarks.measuring.sample_priors import linear_priors
from calibration.foundation.arrays import Floats
from tracking.quads.deformation import CageRig
from tracking.quads.green import green_coordinates
from vivarig.api import evaluate, run

SAMPLES = Path(__file__).resolve().parent.parent / "sample_data"


def green_by_numpy(points: Floats, vertices: Floats, faces: np.ndarray) -> tuple[Floats, Floats]:
    """The same closed forms, a numpy loop over faces: the reference of the speed claim."""
    phi, psi = np.zeros((len(points), len(vertices))), np.zeros((len(points), len(faces)))
    for j, face in enumerate(faces):
        r = vertices[face][None] - points[:, None]
        distance = np.linalg.norm(r, axis=2)
        normal = np.cross(vertices[face[1]] - vertices[face[0]], vertices[face[2]] - vertices[face[0]])
        doubled = float(np.linalg.norm(normal))
        normal /= doubled
        height = r[:, 0] @ normal
        below = distance.prod(axis=1)
        for e in range(3):
            a, b = (e + 1) % 3, (e + 2) % 3
            below = below + np.sum(r[:, a] * r[:, b], axis=1) * distance[:, e]
        angle = 2 * np.arctan2(height * doubled, below)
        single = -height * angle
        total = np.zeros((len(points), 3))
        hats = []
        for e in range(3):
            a, b = (e + 1) % 3, (e + 2) % 3
            edge = vertices[face[b]] - vertices[face[a]]
            length = float(np.linalg.norm(edge))
            out = np.cross(edge, normal) / length
            log = np.log((distance[:, a] + distance[:, b] + length) / (distance[:, a] + distance[:, b] - length))
            along = r[:, a] @ out
            single = single + along * log
            total += log[:, None] * out
            hats.append((out, along, length / doubled))
        psi[:, j] = single / (4 * np.pi)
        for e, (out, along, share) in enumerate(hats):
            phi[:, face[e]] += (along * share * angle + height * (total @ out) * share) / (4 * np.pi)
    return phi, psi


def best_time(action: Any, repeats: int = 5) -> float:
    """Shortest of a few runs, s."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def kernels(crane: Crane, cage_rig: CageRig) -> dict[str, float]:
    """Speed of Green coordinates against a numpy loop over faces, and of the deformation on one core."""
    points, cage = crane.vertices[0][:10000], cage_rig.cage
    green_coordinates(points[:10], cage.vertices, cage.faces)
    ours = best_time(lambda: green_coordinates(points, cage.vertices, cage.faces), 3)
    loop = best_time(lambda: green_by_numpy(points, cage.vertices, cage.faces), 1)
    binding = np.hstack(green_coordinates(points, cage.vertices, cage.faces)).astype(np.float32)
    deform = best_time(lambda: cage_rig.deform(binding, cage_rig.quads.rest), 20)
    return {"green_speed_vs_numpy": loop / ours, "deform_hz": 1.0 / deform}


def sample_errors(name: str, workers: int | None = None) -> dict[str, float]:
    """Mean joint errors of a sample recording through silhouettes, track and skeleton, all frames, mm."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / name
        shutil.copytree(SAMPLES / name, place, ignore=shutil.ignore_patterns("results", "calibration"))
        run(place, until="skeleton", workers=workers)
        scores = evaluate(place)
    joints = dict(zip(scores.names, scores.per_joint, strict=True))
    found = {"joint_mm": scores.mean}
    if name == "mouse":
        paws = [value for joint, value in joints.items() if joint.endswith(("wrist", "ankle"))]
        found |= {"tail_tip_mm": joints["tail_tip"], "paws_mm": float(np.mean(paws))}
    return found


def sample_prior_table() -> dict[str, dict[str, float]]:
    """The samples with the built-in GPLVMs, and with linear priors of the same poses and dimension; mean joint mm."""
    found: dict[str, dict[str, float]] = {"GPLVM": {}, "linear": {}}
    for name in ("mouse", "human"):
        found["GPLVM"][name] = sample_errors(name)["joint_mm"]
        with linear_priors():
            found["linear"][name] = sample_errors(name, workers=1)[
                "joint_mm"
            ]  # here: other processes know only their own
    for kind, errors in found.items():
        print(f"samples, {kind:<8}" + "".join(f"{name:>8} {error:.2f} mm" for name, error in errors.items()))
    return found


def crane_numbers(subjects: dict[str, CraneSubject], wanted: list[str], folder: Path) -> dict[str, Any]:
    """Run crane conditions and name their figures as the contract does."""
    cases = [Case(name, name, last=90 if name == "offprior" else 175) for name in CONDITIONS if name in wanted]
    runs = run_cases(subjects, cases, folder)
    print("crane          vertex mm  joint mm  median     max  unflagged  trusted   cpu s")
    numbers: dict[str, Any] = {}
    for name, figures in runs.items():
        print(
            f"{name:<14}{figures['vertex_mm']:10.2f}{figures['joint_mm']:10.2f}{figures['joint_median_mm']:8.1f}"
            f"{figures['joint_max_mm']:8.1f}{figures['lost_unflagged']:11d}{figures['trusted_share']:9.3f}"
            f"{figures['cpu_s_per_frame']:8.3f}",
            flush=True,
        )
        numbers[f"crane_{name}_joint_mm"] = figures["joint_mm"]
        numbers[f"crane_{name}_vertex_mm"] = figures["vertex_mm"]
        numbers[f"crane_{name}_trusted_share"] = figures["trusted_share"]
    if runs:
        numbers["lost_unflagged"] = int(sum(figures["lost_unflagged"] for figures in runs.values()))
        numbers["trusted_share"] = min(figures["trusted_share"] for figures in runs.values())
    return numbers


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crane", default=",".join(CONDITIONS), help="which crane runs, or none")
    parser.add_argument("--ablations", action="store_true", help="the table of ablations instead")
    parser.add_argument("--priors", action="store_true", help="the table of priors instead")
    parser.add_argument("--rows", default="", metavar="TEXT", help="only rows of a table whose name holds this")
    parser.add_argument("--frames", default="40:100", metavar="A:B", help="frames of a table, 60 among them")
    parser.add_argument("--drill", action="store_true", help="the failure drill instead")
    args = parser.parse_args()
    crane = Crane.load()
    first, last = map(int, args.frames.split(":"))
    if args.drill:
        print(json.dumps(failure_drill(crane, make_crane_subject(crane))))
        return
    with tempfile.TemporaryDirectory() as folder:
        if args.ablations:
            print(json.dumps(ablation_table(make_crane_subject(crane), Path(folder), args.rows, (first, last))))
            return
        if args.priors:
            chosen = tuple(name for name in CONDITIONS if name in args.crane.split(","))
            subjects = crane_subjects(("own", "offprior"))
            rows = prior_table(subjects, Path(folder), chosen, args.rows, (first, last))
            print(json.dumps(rows if args.rows else {**rows, "samples": sample_prior_table()}))
            return
        subjects = crane_subjects(("own", "offprior", "small"))
        subject = subjects["own"]
        result: dict[str, Any] = kernels(crane, subject.cage_rig)
        result["representation_mm"] = representation_mm(crane, subject)
        result["fps"] = tracking_fps(subjects["small"], "4view", Path(folder))
        result["fps_8view"] = tracking_fps(subjects["small"], "8view", Path(folder))
        result |= crane_numbers(subjects, args.crane.split(","), Path(folder))
        result |= builtin_table([name for name in BUILTIN_CONDITIONS if name in args.crane.split(",")])
    result["gplvm_speed_vs_gpy"] = gplvm_against_gpy()["speed_vs_gpy"]
    for name in ("mouse", "human"):
        result |= {f"{name}_{key}": value for key, value in sample_errors(name).items()}
    for key, value in result.items():
        print(f"{key:<36} {value:.4g}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
