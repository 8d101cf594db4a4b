"""Springs graded by anatomy against the best uniform stiffness, and missing and wrong markers.

    python -m benchmarks.springs

Studio actors (soft tissue, own lengths) with 1 mm noise on their virtual markers; the actor's own skeleton
and marker
places at rest are given, so that only the springs differ. Mean error of the landmark joints, mm, two actors
per body.
"""

from __future__ import annotations

import json

import numpy as np

from skeleton.actor import Actor, sample_actor
from skeleton.fits import SkeletonFit
from skeleton.marker_sets import MarkerSet, builtin_markers
from skeleton.motions import make_motion, motion_names
from skeleton.spring_ik import fit_skeleton
from skeleton.spring_window import fit_smoothly
from skeleton.tree import Pose

NOISE_MM, RATE_HZ, FRAMES = 1.0, 50.0, 80
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


def filmed(body: str, seed: int) -> tuple[Actor, Pose, np.ndarray]:
    """Return an actor, its pose over time and its noisy markers (T, M, 3)."""
    rng = np.random.default_rng(seed + 100)
    actor = sample_actor(body, seed)
    names = motion_names(actor.skeleton)
    motion = make_motion(
        actor.skeleton, "explore" if "explore" in names else names[0], frames=FRAMES, rate_hz=RATE_HZ, rng=rng
    )
    pose = actor.skeleton.forward(motion.coordinates)
    skin = actor.skin(pose, motion.time_s)[:, actor.marker_vertices]
    return actor, pose, skin + rng.normal(0.0, NOISE_MM, skin.shape)


def measure(body: str) -> dict[str, float]:
    """Return mean joint errors of one body."""
    errors: dict[str, list[float]] = {}
    for seed in (3, 8):
        actor, pose, points = filmed(body, seed)
        markers, names, sigma = own_markers(actor), actor.marker_names, np.full(len(actor.marker_names), NOISE_MM)
        truth = actor.skeleton.landmarks(pose)[1]
        rng = np.random.default_rng(9)
        spoiled = points.copy()
        wrong = rng.random(points.shape[:2]) < 0.05
        spoiled[wrong] += rng.normal(0.0, WRONG_MM[body], (int(wrong.sum()), 3))
        spoiled[rng.random(points.shape[:2]) < 0.3] = np.nan

        def note(key: str, fit: SkeletonFit, actor: Actor = actor, truth: np.ndarray = truth) -> None:
            found = actor.skeleton.landmarks(actor.skeleton.forward(fit.coordinates))[1]
            errors.setdefault(key, []).append(float(np.linalg.norm(found - truth, axis=2).mean()))

        for word, values in (("graded", points), ("spoiled", spoiled)):
            note(f"{word} frame", fit_skeleton(actor.skeleton, names, values, sigma, marker_set=markers))
            smooth = fit_smoothly(
                actor.skeleton, names, values, sigma, marker_set=markers, rate_hz=RATE_HZ, time_s=0.03
            )
            note(f"{word} window", smooth)
        for spread in SWEEP:
            same = markers.with_sd(spread * SIZE[body])
            note(f"uniform {spread} frame", fit_skeleton(actor.skeleton, names, points, marker_set=same))
            smooth = fit_smoothly(actor.skeleton, names, points, marker_set=same, rate_hz=RATE_HZ, time_s=0.03)
            note(f"uniform {spread} window", smooth)
    mean = {key: float(np.mean(values)) for key, values in errors.items()}
    out = {}
    for mode in ("frame", "window"):
        out[f"{mode}_graded_mm"] = mean[f"graded {mode}"]
        out[f"{mode}_best_uniform_mm"] = min(mean[f"uniform {spread} {mode}"] for spread in SWEEP)
        out[f"{mode}_hard_mm"] = mean[f"uniform {SWEEP[0]} {mode}"]
        out[f"{mode}_spoiled_ratio"] = mean[f"spoiled {mode}"] / mean[f"graded {mode}"]
    return out


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
