"""A body from few points: root and five end joints of walkers never trained on, 10 mm noise."""

from __future__ import annotations

import numpy as np

from benchmarks.pose_space_parts.clips import DOUBLES, Clip, load_clip, without_hands
from benchmarks.pose_space_parts.manifold import WALKS
from skeleton.bodies.marker_sets import MarkerSet
from skeleton.inverse_kinematics.spring_ik import Springs, fit_skeleton
from skeleton.pose_spaces.posing import HandleSet, follow_handles, space_model
from skeleton.pose_spaces.principal_geodesics import learn_pose_space
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations
from skeleton.tree.joint_tree import Joint, Skeleton

POINTS = ("Hips", "Head", "LeftHand", "RightHand", "LeftToeBase", "RightToeBase")
NOISE_MM = 10.0


def skeleton_of(tree: RotationTree) -> Skeleton:
    """Return a skeleton of ball joints with the tree's lengths."""
    joints = [Joint(tree.names[0], None, "free", np.zeros(3))]
    for name, parent, offset in zip(tree.names[1:], tree.parents[1:], tree.offsets[1:], strict=True):
        joints.append(Joint(name, tree.names[parent], "ball", offset))
    return Skeleton("cmu", tuple(joints))


def _thinned(clip: Clip) -> Clip:
    return clip._replace(rotations=clip.rotations[::4], root=clip.root[::4], rate_hz=clip.rate_hz / 4)


def few_points() -> dict[str, float]:
    """Leave one walker out, learn from the others, fit both ways; mean error over joints of different places."""
    rng = np.random.default_rng(0)
    clips = {name: _thinned(without_hands(load_clip(name))) for name in WALKS}
    errors: dict[str, list[float]] = {"pose_space": [], "springs": [], "springs_at_mean": []}
    for subject in ("07", "08", "35"):
        train = np.concatenate([c.rotations for n, c in clips.items() if not n.startswith(subject)])
        tests = [c for n, c in clips.items() if n.startswith(subject)][:3]
        names = tests[0].tree.names
        space = learn_pose_space(train, names, body="cmu", share=0.99)
        distinct = [j for j, name in enumerate(names) if name not in DOUBLES]
        for clip in tests:
            truth = place_rotations(clip.tree, clip.rotations, clip.root).positions
            handles = HandleSet.at(clip.tree, POINTS)
            seen = truth[:, handles.joints] + rng.normal(0.0, NOISE_MM, (len(truth), len(POINTS), 3))
            noise = np.full(len(POINTS), NOISE_MM)
            found = follow_handles(clip.tree, space_model(space), handles, seen, noise)
            errors["pose_space"].append(_error(found.pose.positions, truth, distinct))
            body = skeleton_of(clip.tree)
            markers = MarkerSet(POINTS, POINTS, np.zeros((len(POINTS), 3)), np.full(len(POINTS), 0.1))
            fit = fit_skeleton(body, POINTS, seen, noise, marker_set=markers, springs=Springs(cutoff=np.inf))
            errors["springs"].append(_error(fit.positions, truth, distinct))
            rest = np.zeros(body.dimension)
            for j in range(1, len(names)):
                from calibration.geometry.transforms import vector_from_rotation

                rest[body.columns(names[j])] = vector_from_rotation(space.mean[j])
            held = Springs(cutoff=np.inf, rest=rest)
            fit = fit_skeleton(body, POINTS, seen, noise, marker_set=markers, springs=held)
            errors["springs_at_mean"].append(_error(fit.positions, truth, distinct))
    out = {f"few_points_{key}_mm": float(np.mean(values)) for key, values in errors.items()}
    out["few_points_ratio"] = out["few_points_pose_space_mm"] / out["few_points_springs_mm"]
    out["few_points_ratio_springs_at_mean"] = out["few_points_pose_space_mm"] / out["few_points_springs_at_mean_mm"]
    return out


def _error(found: np.ndarray, truth: np.ndarray, joints: list[int]) -> float:
    return float(np.linalg.norm(found - truth, axis=2)[:, joints].mean())
