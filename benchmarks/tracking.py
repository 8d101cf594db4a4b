"""Tracking: speed of the kernels and of the tracker, accuracy on the crane sequence. ``python -m benchmarks.tracking``.

``--crane NAMES`` chooses which crane runs to make (8view, 4view, noisy, offprior; default all; "none" for speed only).
Protocol: key poses from the key frames only, start at frame 60 with no pose given, all scored frames counted.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from benchmarks.crane import Crane, crane_cage, crane_rig
from calibration.arrays import Floats
from tracking.contours import Observation, observe
from tracking.deformation import CageRig
from tracking.green import green_coordinates
from tracking.point_fit import fit_to_points
from tracking.pose_chart import fit_pose_chart
from tracking.prior import LinearPrior, fit_linear_prior
from tracking.quads import QuadPose
from tracking.solver import FrameSolver
from tracking.template import Template, coarse_template
from tracking.tracker import Track, Tracker

LATENT = 14
UP = np.array([0.0, 1.0, 0.0])


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
    deform = best_time(lambda: cage_rig.deform(binding, cage_rig.rig.rest), 20)
    return {"green_speed_vs_numpy": loop / ours, "deform_hz": 1.0 / deform}


def key_poses(crane: Crane, cage_rig: CageRig, binding: Floats, frames: list[int]) -> list[QuadPose]:
    """Quads fitted to the true meshes of key frames, each from the one before."""
    ids = np.arange(0, len(binding), 8)
    rows = np.ascontiguousarray(binding[ids])
    pose = cage_rig.rig.rest
    # From the template's own frame to the first key frame the body moves far: go there in steps.
    for frame in range(0, frames[0], 8):
        pose = fit_to_points(cage_rig, rows, crane.vertices[frame][ids], pose, iterations=6)
    poses = []
    for frame in frames:
        pose = fit_to_points(cage_rig, rows, crane.vertices[frame][ids], pose, iterations=30)
        poses.append(pose)
    return poses


def crane_prior(cage_rig: CageRig, poses: list[QuadPose]) -> LinearPrior:
    """A linear prior of the key poses."""
    rotations, centres = np.array([p.rotations for p in poses]), np.array([p.centres for p in poses])
    chart = fit_pose_chart(rotations, centres, root=cage_rig.rig.root)
    vectors = chart.to_vector(rotations, centres)[1]
    rig = cage_rig.rig
    return fit_linear_prior(vectors, LATENT, chart, rig_name=rig.name, quad_names=rig.quad_names)


def crane_run(
    crane: Crane, cage_rig: CageRig, binding: Floats, template: Template, prior: LinearPrior, looks: list[Observation],
    views: int, scored: list[int],
) -> dict[str, float]:  # fmt: skip
    """Track and score one condition."""
    cameras = crane.cameras(views)
    solver = FrameSolver(cage_rig, template, cameras.packed(), [camera.size for camera in cameras], prior)
    start = time.perf_counter()
    track: Track = Tracker(solver, cameras, up=UP).track(lambda frame: looks[frame], len(looks), start=60)
    seconds = time.perf_counter() - start
    vertex, joint = [], []
    for frame in scored:
        mesh = cage_rig.deform(binding, QuadPose(track.rotations[frame], track.centres[frame]))
        vertex.append(float(np.linalg.norm(mesh - crane.vertices[frame], axis=1).mean()))
        away = crane.joints(mesh) - crane.joints(crane.vertices[frame])
        joint.append(float(np.linalg.norm(away, axis=1).mean()))
    errors, trusted = np.array(joint), track.trust[scored] == 0
    usual = errors < 2 * np.median(errors)
    return {
        "vertex_mm": float(np.mean(vertex)),
        "joint_mm": float(errors.mean()),
        "joint_median_mm": float(np.median(errors)),
        "joint_max_mm": float(errors.max()),
        "lost_unflagged": int(np.sum((errors > 60) & trusted)),
        "trusted_share": float(trusted[usual].mean()),
        "fps_with_restarts": len(looks) / seconds,
    }


def tracking_fps(
    crane: Crane,
    cage_rig: CageRig,
    template: Template,
    prior: LinearPrior,
    pose: QuadPose,
    views: int,
    looks: list[Observation],
) -> float:
    """Frames per second of the frame-to-frame fit (key frame 55 on), 4,000 vertices."""
    cameras = crane.cameras(views)
    solver = FrameSolver(cage_rig, template, cameras.packed(), [camera.size for camera in cameras], prior)
    latent = prior.back(prior.chart.to_vector(pose.rotations, pose.centres)[1])
    solver.fit(looks[55], pose, latent, latent_steps=False)
    start = time.perf_counter()
    for frame in range(55, 67):
        fit = solver.fit(looks[frame], pose, latent, latent_steps=False)
        pose, latent = fit.pose, fit.latent
    return 12 / (time.perf_counter() - start)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--crane", default="8view,4view,noisy,offprior", help="which runs")
    wanted = [word for word in parser.parse_args().crane.split(",") if word != "none"]
    crane = Crane.load()
    enclosure = crane_rig(crane)
    cage_rig = crane_cage(enclosure)
    result: dict[str, Any] = kernels(crane, cage_rig)
    binding = cage_rig.bind(crane.vertices[0], margin=5.0)
    full = Template(crane.vertices[0], crane.faces, binding)
    template = coarse_template(cage_rig, full, vertices=4000)
    keys = crane.protocol["key_frames"]
    poses = key_poses(crane, cage_rig, binding, keys)
    away = [
        np.linalg.norm(cage_rig.deform(binding, pose) - crane.vertices[frame], axis=1).mean()
        for frame, pose in zip(keys, poses, strict=True)
    ]
    result["representation_mm"] = float(np.mean(away))
    prior = crane_prior(cage_rig, poses)
    frames = range(len(crane.vertices))
    masks = {4: crane.masks(4)}
    looks = [observe([mask[frame] for mask in masks[4]]) for frame in frames]
    start_pose = poses[keys.index(55)]
    result["fps"] = tracking_fps(crane, cage_rig, template, prior, start_pose, 4, looks)
    small = crane_cage(crane_rig(crane, fine=False))
    rough = coarse_template(
        small, Template(crane.vertices[0], crane.faces, small.bind(crane.vertices[0])), vertices=4000
    )
    rough_poses = key_poses(crane, small, small.bind(crane.vertices[0]), keys[: keys.index(55) + 12])
    result["fps_21_quads"] = tracking_fps(
        crane, small, rough, crane_prior(small, rough_poses), rough_poses[keys.index(55)], 4, looks
    )
    scored = crane.protocol["scored_frames"]
    runs: dict[str, dict[str, float]] = {}
    if "4view" in wanted:
        runs["4view"] = crane_run(crane, cage_rig, binding, template, prior, looks, 4, scored)
    if "noisy" in wanted:
        noisy = crane.noisy_masks()
        noisy_looks = [observe([mask[frame] for mask in noisy]) for frame in frames]
        runs["4view_noisy"] = crane_run(crane, cage_rig, binding, template, prior, noisy_looks, 4, scored)
    if "offprior" in wanted:
        off = crane.protocol["offprior"]
        other = crane_prior(cage_rig, key_poses(crane, cage_rig, binding, off["key_frames"]))
        runs["offprior"] = crane_run(crane, cage_rig, binding, template, other, looks[:90], 4, off["scored_frames"])
    if "8view" in wanted:
        eight = crane.masks(8)
        eight_looks = [observe([mask[frame] for mask in eight]) for frame in frames]
        runs["8view"] = crane_run(crane, cage_rig, binding, template, prior, eight_looks, 8, scored)
    for name, run in runs.items():
        print(f"crane {name}: " + ", ".join(f"{key} {value:.3g}" for key, value in run.items()))
        result[f"crane_{name}_joint_mm"] = run["joint_mm"]
        result[f"crane_{name}_vertex_mm"] = run["vertex_mm"]
    if runs:
        result["lost_unflagged"] = int(sum(run["lost_unflagged"] for run in runs.values()))
        result["trusted_share"] = min(run["trusted_share"] for run in runs.values())
    for key, value in result.items():
        print(f"{key:<28} {value:.4g}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
