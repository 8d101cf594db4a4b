"""Gaps of walks and of fast clips against linear and cubic Hermite interpolation."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.pose_space_parts.clips import Clip, load_clip, without_hands
from calibration.geometry.transforms import vector_from_rotation
from skeleton.pose_spaces.gap_filling import Motion, fill_gaps, gap_process, learn_gap_model
from skeleton.pose_spaces.gap_mixing import bent_and_straight
from skeleton.pose_spaces.posing import HandleSet
from skeleton.pose_spaces.rotation_tree import place_rotations
from skeleton.pose_spaces.seen_points import with_seen_points

WALKS, FAST = ("07_01", "07_02", "08_01", "35_01"), ("17_10", "85_12")


def _turns(truth: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Rotation vectors (g, J - 1, 3) from true to shown rotations, without the root, degrees."""
    return np.degrees(vector_from_rotation(np.swapaxes(truth, -1, -2) @ shown))[:, 1:]


def _one(clip: Clip, gap: tuple[int, int], seen: bool, rng: np.random.Generator) -> dict[str, object]:
    """Fill one gap; errors in degrees, and errors over sigma."""
    known = np.ones(len(clip.root), np.bool_)
    known[slice(*gap)] = False
    motion = Motion(clip.rotations, clip.root)
    model = learn_gap_model(motion, known, clip.tree.names, body="cmu", rate_hz=clip.rate_hz, gaps=[gap])
    process = gap_process(model, motion, known, gap)
    truth = clip.rotations[slice(*gap)]
    out: dict[str, object] = {}
    rotations, _, sigma, _ = process.shown()
    errors = _turns(truth, rotations)
    out["gp"] = errors
    out["score"] = np.abs(errors) / np.maximum(np.degrees(sigma[:, 1:]), 1e-9)
    out["moved"] = sigma[:, 1:] > 0
    hermite, linear = bent_and_straight(clip.rotations, gap)
    out["linear"], out["hermite"] = _turns(truth, linear), _turns(truth, hermite)
    if seen:
        places = place_rotations(clip.tree, truth, clip.root[slice(*gap)]).positions
        half = np.sort(rng.choice(len(clip.tree.names), len(clip.tree.names) // 2, replace=False))
        points = places[:, half] + rng.normal(0.0, 2.0, (len(places), len(half), 3))
        handles = HandleSet(half, np.zeros((len(half), 3)))
        with_points = with_seen_points(process, clip.tree, handles, points, np.full(len(half), 2.0))
        out["seen"] = _turns(truth, with_points.shown()[0])
    return out


def _rms(parts: list[np.ndarray]) -> float:
    return float(np.sqrt(np.mean(np.concatenate([part.ravel() for part in parts]) ** 2)))


def gaps(count: int = 6) -> dict[str, float]:
    """Random gaps of 0.10, 0.25 and 0.50 s in walks and in fast clips."""
    out: dict[str, float] = {}
    scores: list[np.ndarray] = []
    for kind, names, tries in (("walk", WALKS, count), ("fast", FAST, 2 * count)):
        for seconds in (0.10, 0.25, 0.50):
            rng = np.random.default_rng(0)
            rows: list[dict[str, object]] = []
            for name in names:
                clip = without_hands(load_clip(name))
                length = round(seconds * clip.rate_hz)
                for _ in range(tries):
                    first = int(rng.integers(24, len(clip.root) - length - 24))
                    rows.append(_one(clip, (first, first + length), kind == "walk" and seconds == 0.5, rng))
            values = {key: _rms([row[key] for row in rows]) for key in ("gp", "linear", "hermite")}  # type: ignore[misc]
            better = min(values["linear"], values["hermite"])
            tag = f"{round(100 * seconds):03d}"
            out |= {f"gap_{kind}_{key}_{tag}_deg": value for key, value in values.items()}
            out[f"gap_{kind}_ratio_{tag}"] = values["gp"] / better
            if kind == "walk" and seconds == 0.5:
                out["gap_seen_half_ratio_050"] = _rms([row["seen"] for row in rows]) / better  # type: ignore[misc]
            for row in rows:
                scores.append(row["score"][row["moved"]])  # type: ignore[index, call-overload]
            share = np.concatenate([row["score"][row["moved"]] for row in rows])  # type: ignore[index, call-overload]
            out[f"gap_{kind}_within_{tag}"] = float((share < 1).mean())
            out[f"gap_{kind}_within_2_{tag}"] = float((share < 2).mean())
    every = np.concatenate(scores)
    out["gap_ratio_025"], out["gap_ratio_050"] = out["gap_walk_ratio_025"], out["gap_walk_ratio_050"]
    out["gap_within_1_sigma"], out["gap_within_2_sigma"] = float((every < 1).mean()), float((every < 2).mean())
    return out


def long_motion() -> dict[str, float]:
    """Fill 20 gaps in 10,000 frames; and ask the process for frames that are known."""
    clip = without_hands(load_clip("85_12"))
    times = -(-10_000 // len(clip.root))
    rotations = np.tile(clip.rotations, (times, 1, 1, 1))[:10_000]
    root = np.tile(clip.root, (times, 1))[:10_000]
    known = np.ones(10_000, np.bool_)
    for first in range(200, 10_000, 490):
        known[first : first + 30] = False
    motion = Motion(rotations, root)
    begin = time.process_time()
    filled = fill_gaps(motion, known, clip.tree.names, body="cmu", rate_hz=clip.rate_hz, most_s=0.3)
    seconds = time.process_time() - begin
    model = learn_gap_model(motion, known, clip.tree.names, body="cmu", rate_hz=clip.rate_hz, gaps=[(200, 230)])
    # Frames that are known, asked for as if they were a gap.
    met = gap_process(model, motion, known, (190, 200))
    apart = _turns(rotations[190:200], met.motion(met.mean).rotations)
    return {
        "gap_10000_frames_s": seconds, "gap_filled_frames": float(filled.filled.sum()),
        "gap_known_met_rad": float(np.radians(np.abs(apart).max())),
    }  # fmt: skip
