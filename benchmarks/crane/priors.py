"""The published method and ours in one table: priors of the crane's 16 key poses, with and without each term.

The paper's set-up is the GPLVM of 10 dimensions with the variance term and without neighbours' Gaussians. Same frames
(40 to 99, start at 60 with no pose given) and settings in every row, nothing tuned per row.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.crane.compared_solvers import InTurn
from benchmarks.crane.runs import CONDITIONS, CRANE, Case, CraneSubject, run_cases

__all__ = ["prior_table"]

FIRST, LAST = 40, 100
PRIORS = {"GPLVM, 10-D": ("gplvm", 10), "GPLVM, 2-D": ("gplvm", 2), "linear, 14-D": ("linear", 14)}


def prior_table(
    subjects: dict[str, CraneSubject],
    folder: Path,
    conditions: tuple[str, ...] = CONDITIONS,
    only: str = "",
    frames: tuple[int, int] = (FIRST, LAST),
) -> dict[str, dict[str, float]]:
    """Run all (or the rows whose name holds ``only``, or other frames), print the table, return its figures, mm."""
    rows = {}
    for words, prior in PRIORS.items():
        for variance in (1.0, 0.0):
            for pairs in (CRANE.pair_weight, 0.0):
                name = f"{words}, {'variance' if variance else '-'}, {'neighbours' if pairs else '-'}"
                rows[name] = Case(
                    "", "", settings=replace(CRANE, variance_weight=variance, pair_weight=pairs), prior=prior
                )
    for words in ("linear, 14-D", "GPLVM, 10-D"):
        rows[f"{words}, pose and shape in turn"] = Case("", "", prior=PRIORS[words], solver=InTurn)
    first, last = frames
    cases = [
        replace(row, name=f"{name} | {condition}", condition=condition, first=first, last=last)
        for name, row in rows.items()
        for condition in conditions
        if only in name and (condition == "4view" or row.solver is not InTurn)
    ]
    runs = run_cases(subjects, cases, folder)
    print(
        f"{f'crane, frames {frames[0]}-{frames[1] - 1}':<42}"
        + "".join(f"{name:>16}" for name in conditions)
        + "   joint (vertex) mm"
    )
    for name in rows:
        cells = []
        for condition in conditions:
            found = runs.get(f"{name} | {condition}")
            cells.append("" if found is None else f"{found['joint_mm']:.1f} ({found['vertex_mm']:.1f})")
        print(f"{name:<42}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    return runs
