"""What each part of the tracker is worth: the crane sequence, 4 views, with one part changed at a time.

Frames 40 to 99 only, start at frame 60 with no pose given, so that the table takes a few minutes on 2 cores.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.crane.compared_solvers import ByDescent, OnManifold
from benchmarks.crane.runs import CRANE, Case, CraneSubject, run_cases
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameSolver
from tracking.sequence.settings import TrackerSettings

__all__ = ["ablation_table"]

FIRST, LAST = 40, 100


def ablation_table(
    subject: CraneSubject, folder: Path, only: str = "", frames: tuple[int, int] = (FIRST, LAST)
) -> dict[str, dict[str, float]]:
    """Run all cases (or those whose name holds ``only``), print the table, return the figures by case."""
    usual = CRANE

    def case(
        name: str,
        settings: Settings = usual,
        *,
        use_prior: bool = True,
        tracker: TrackerSettings | None = None,
        field: bool = False,
        solver: type[FrameSolver] = FrameSolver,
    ) -> Case:
        return Case(name, "4view", *frames, settings, tracker, use_prior, field=field, solver=solver)

    cases = [
        case("gradient descent (Adam)", solver=ByDescent),
        case("hull, two-sided", replace(usual, hull=True)),
        case("hull, one-sided", replace(usual, hull=True, one_sided=True)),
        case("hull's field, two-sided", replace(usual, hull=True), field=True),
        case("hull's field, one-sided", replace(usual, hull=True, one_sided=True), field=True),
        case("as it is"),
        case("no prior, no neighbours", use_prior=False),
        case("no neighbours' Gaussians", replace(usual, pair_weight=0.0)),
        case("no variance term", replace(usual, variance_weight=0.0)),
        case("no local adjustment", solver=OnManifold),
        case("outlines, one-sided", replace(usual, one_sided=True)),
        case("no second attempts", tracker=TrackerSettings(restarts=False)),
        case("no smoothing", tracker=TrackerSettings(smooth_sweeps=0)),
    ]
    runs = run_cases({"own": subject}, [one for one in cases if only in one.name], folder)
    title = f"crane, 4 views, frames {frames[0]}-{frames[1] - 1}"
    print(f"{title:<30}{'vertex mm':>10}{'joint mm':>10}{'max':>8}{'cpu s/frame':>13}")
    for name, figures in runs.items():
        print(
            f"{name:<30}{figures['vertex_mm']:10.1f}{figures['joint_mm']:10.1f}{figures['joint_max_mm']:8.1f}"
            f"{figures['cpu_s_per_frame']:13.3f}"
        )
    return runs
