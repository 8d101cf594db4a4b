"""Springs graded by anatomy against the best uniform stiffness, and missing and wrong markers.

    python -m benchmarks.springs

Studio actors (soft tissue, own lengths) with 1 mm noise on their virtual markers, two per body, in every motion that
the body has; the actor's own skeleton and marker places at rest are given, so that only the springs differ. Mean error
of the landmark joints, mm. Springs were set on actors of other seeds.
"""

from __future__ import annotations

import json

import numpy as np

from skeleton.actors.actor import Actor, sample_actor
from skeleton.bodies.marker_sets import MarkerSet, builtin_markers
from skeleton.inverse_kinematics.spring_ik import fit_skeleton
from skeleton.inverse_kinematics.spring_window import fit_smoothly
from skeleton.motions import make_motion, motion_names
from skeleton.tree.joint_tree import Pose

NOISE_MM, RATE_HZ, FRAMES = 1.0, 50.0, 30
#: Uniform standard deviations of the sweep, for a mouse; larger bodies in proportion.
SWEEP = (0.05, 0.4, 0.7, 1.0, 1.3, 1.7, 2.2)
SIZE = {"mouse": 1.0, "rat": 2.16, "human": 4.0}
WRONG_MM = {"mouse": 15.0, "rat": 30.0, "human": 200.0}


def own_markers(actor: Actor) -> MarkerSet:
    """Return the built-in set with the actor's own places at rest."""
    generic = builtin_markers(actor.body)
    skin = actor.rest_vertices[actor.marker_vertices]
    joints = actor.skeleton.forward(actor.skeleton.rest()).positions[0]
    places = [
        skin[actor.marker_names.index(name)] - joints[actor.skeleton.index(segment)]
        for name, segment in zip(generic.names, generic.segments, strict=True)
    ]
    return generic.with_offsets(np.array(places))


def filmed(actor: Actor, motion_name: str, seed: int, frames: int = FRAMES) -> tuple[Pose, np.ndarray]:
    """Return an actor's pose over time and its noisy markers (T, M, 3)."""
    rng = np.random.default_rng(seed)
    motion = make_motion(actor.skeleton, motion_name, frames=frames, rate_hz=RATE_HZ, rng=rng)
    pose = actor.skeleton.forward(motion.coordinates)
    skin = actor.skin(pose, motion.time_s)[:, actor.marker_vertices]
    return pose, skin + rng.normal(0.0, NOISE_MM, skin.shape)


def spoil(points: np.ndarray, wrong_mm: float, seed: int) -> np.ndarray:
    """Return the markers with 5 % of them far off and 30 % missing."""
    rng = np.random.default_rng(seed)
    spoiled = points.copy()
    wrong = rng.random(points.shape[:2]) < 0.05
    spoiled[wrong] += rng.normal(0.0, wrong_mm, (int(wrong.sum()), 3))
    spoiled[rng.random(points.shape[:2]) < 0.3] = np.nan
    return spoiled


def measure(body: str) -> dict[str, float]:
    """Return mean joint errors of one body."""
    errors: dict[str, list[float]] = {}
    for seed in (3, 8):
        actor = sample_actor(body, seed)
        for number, motion_name in enumerate(motion_names(actor.skeleton)):
            _add_errors(errors, actor, motion_name, 100 * seed + number)
    mean = {key: float(np.mean(values)) for key, values in errors.items()}
    out = {}
    for mode in ("frame", "window"):
        out[f"{mode}_graded_mm"] = mean[f"graded {mode}"]
        out[f"{mode}_best_uniform_mm"] = min(mean[f"uniform {spread} {mode}"] for spread in SWEEP)
        out[f"{mode}_hard_mm"] = mean[f"uniform {SWEEP[0]} {mode}"]
        out[f"{mode}_spoiled_ratio"] = mean[f"spoiled {mode}"] / mean[f"graded {mode}"]
    return out


def _add_errors(errors: dict[str, list[float]], actor: Actor, motion_name: str, seed: int) -> None:
    """Append the mean joint errors of one motion to those of each kind of fit."""
    pose, points = filmed(actor, motion_name, seed)
    markers, names, sigma = own_markers(actor), actor.marker_names, np.full(len(actor.marker_names), NOISE_MM)
    body, truth = actor.skeleton, actor.skeleton.landmarks(pose)[1]

    def note(key: str, values: np.ndarray, springs: MarkerSet, sigma: np.ndarray | None) -> None:
        single = fit_skeleton(body, names, values, sigma, marker_set=springs)
        smooth = fit_smoothly(
            body, names, values, sigma, marker_set=springs, rate_hz=RATE_HZ, time_s=0.03, start=single
        )
        for mode, fit in (("frame", single), ("window", smooth)):
            found = body.landmarks(body.forward(fit.coordinates))[1]
            errors.setdefault(f"{key} {mode}", []).append(float(np.linalg.norm(found - truth, axis=2).mean()))

    note("graded", points, markers, sigma)
    note("spoiled", spoil(points, WRONG_MM[actor.body], seed), markers, sigma)
    for spread in SWEEP:
        note(f"uniform {spread}", points, markers.with_sd(spread * SIZE[actor.body]), None)


def main() -> None:
    """Measure and print."""
    numbers: dict[str, float] = {}
    print(f"{'':16}{'graded':>9}{'best uniform':>14}{'hard':>9}{'30 % missing, 5 % wrong':>26}")
    for body in SIZE:
        found = measure(body)
        for mode in ("frame", "window"):
            print(
                f"{body + ', ' + mode:16}{found[mode + '_graded_mm']:9.3f}{found[mode + '_best_uniform_mm']:14.3f}"
                f"{found[mode + '_hard_mm']:9.3f}{found[mode + '_spoiled_ratio']:25.2f}x"
            )
        numbers |= {f"{body}_{key}": round(value, 4) for key, value in found.items()}
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
