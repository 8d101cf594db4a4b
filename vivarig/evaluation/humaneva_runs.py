"""The rendered set in HumanEva's layout, end to end: filmed, run, scored, beside what was published on the real one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.trust import Trust
from capture.recordings.humaneva_folder import open_sequence
from capture.recordings.recording import load_recording
from tracking.priors.cmu import CmuTable
from vivarig.evaluation.humaneva_like import ACTIONS, FRAMES, RENDERED, film_action
from vivarig.evaluation.humaneva_recording import make_recording
from vivarig.evaluation.humaneva_scores import humaneva_scores
from vivarig.evaluation.scores import load_estimate

__all__ = ["PUBLISHED", "ActionScores", "run_action", "table_lines", "table_numbers"]

#: Published on the real HumanEva-II, subject S4: words and mean error, mm.
PUBLISHED = (
    ("Duveau et al. 2012, frames 1-150 / 1-300 (own template)", "38.6 / 85.2"),
    ("Gall et al. 2010, frames 2-1258", "32.0"),
    ("Corazza et al. 2010, frames 1-150", "80.0"),
)
SPANS = (150, 300)


@dataclass(frozen=True, eq=False)
class ActionScores:
    """Official error of each frame (T,), mm, and whether it is called trusted."""

    errors: Floats
    trusted: Bools

    def over(self, frames: int) -> tuple[float, float, float]:
        """Mean, median and SD over the first ``frames`` frames."""
        part = self.errors[:frames]
        return float(np.mean(part)), float(np.median(part)), float(np.std(part))


def run_action(
    table: CmuTable,
    name: str,
    folder: Path,
    run: Callable[[Path], object],
    *,
    frames: int = FRAMES,
    workers: int = 1,
) -> ActionScores:
    """Film an action unless its truth is there already, run it, and score it.

    Args:
        table: motions.
        name: one of `ACTIONS`.
        folder: holds the set (``HumanEva_like``) and a recording per action.
        run: runs a recording's folder up to its skeleton.
        frames: length.
        workers: processes that film.
    """
    root, subject = folder / "HumanEva_like", ACTIONS[name].subject
    if not (root / subject / "Mocap_Data" / f"{name}.c3d").is_file():
        film_action(table, name, root, frames=frames, workers=workers)
    sequence = open_sequence(root, subject, name)
    place = folder / f"{subject}_{name}"
    make_recording(sequence, place)
    run(place)
    estimate = load_estimate(load_recording(place).results)
    scores = humaneva_scores(sequence, estimate)
    return ActionScores(scores.per_frame, estimate.trust == Trust.TRUSTED)


def table_lines(scores: Mapping[str, ActionScores]) -> list[str]:
    """Return the table, each line of which says what its images are."""
    lines = ["official error, mm: mean (median, SD) over the first frames; frames trusted"]
    for name, one in scores.items():
        cells = [
            f"1-{frames} {mean:.1f} ({median:.1f}, {sd:.1f})"
            for frames in SPANS
            if frames <= len(one.errors)
            for mean, median, sd in [one.over(frames)]
        ] or ["too short"]
        lines.append(f"  {name:<10} {'; '.join(cells)}; {100 * one.trusted.mean():.0f} %; {RENDERED}")
    return lines + [f"  {words}: {value}; real images, published" for words, value in PUBLISHED]


def table_numbers(scores: Mapping[str, ActionScores]) -> dict[str, object]:
    """Return the figures by name."""
    numbers: dict[str, object] = {"images": RENDERED}
    for name, one in scores.items():
        for frames in SPANS:
            if frames <= len(one.errors):
                mean, _, sd = one.over(frames)
                numbers |= {f"{name}_1_{frames}_mm": mean, f"{name}_1_{frames}_sd_mm": sd}
        numbers[f"{name}_trusted_share"] = float(one.trusted.mean())
    return numbers
