"""The crane sequence tracked with bodies that were not made for it by hand. ``python -m benchmarks.crane.builtin``.

Beside the subject's own template with quads placed by hand and a prior of its key poses (`benchmarks.tracking`):
``builtin`` is the built-in human with its own prior, size, lengths and girths estimated from silhouettes; ``plain`` the
same with its size alone; ``scan`` the subject that `vivarig subject --mesh` makes of the mesh of frame 0, also with the
built-in prior. The protocol's conditions, start at frame 60 with no pose given. The protocol's joints are vertex sets
of the captured mesh, which the built-in body does not have: their means are attached to its cage once, at a key frame
(which is not scored), as the paper attaches joints on its first frame. Beside it, each listed vertex given its place on
the body's surface in that frame, and the mean taken of those (``joint_listed_mm``, `benchmarks.crane.listed_vertices`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np

from benchmarks.crane.listed_vertices import attach_joints
from benchmarks.crane.runs import LOST_MM, START, crane_observations, one_thread
from benchmarks.crane.sequence import Crane
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.foundation.trust import Trust
from calibration.geometry.transforms import RigidTransform
from calibration.solving.world_frame import moved_rig
from tracking.adapting.scale_search import find_scale_and_poses, make_solver
from tracking.adapting.scan_subject import fit_body, scan_subject
from tracking.adapting.shape_search import adapt_shape, adapt_to_clothes
from tracking.fitting.markers import point_sigma
from tracking.observations.contours import Observation
from tracking.quads.cage import clearance
from tracking.quads.deformation import CageRig
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.track_output import MODEL_ERROR
from tracking.sequence.tracker import Tracker
from tracking.subjects.mesh_files import UPRIGHT
from tracking.subjects.subject import Subject, builtin_subject, scaled_subject

UP = np.array([0.0, 0.0, 1.0])
ATTACH = 66
"""Key frame at which the joints are attached."""
CONDITIONS = ("8view", "4view", "4view_noisy")
SHAPE_FRAMES = 7, 20
"""Frames that lengths and girths are looked for in, as in any recording: few, and more of who is loosely dressed."""


def upright(crane: Crane, views: int) -> tuple[Rig, Floats]:
    """Return cameras and meshes with z up."""
    turn = UPRIGHT["y"]
    return moved_rig(crane.cameras(views), RigidTransform(turn, np.zeros(3))), crane.vertices @ turn.T


def rest_places(cage_rig: CageRig, points: Floats, pose: QuadPose) -> Floats:
    """Return the places (P, 3) in the rest cage whose points a pose carries to ``points``, by Newton steps."""
    rest = cage_rig.quads
    nearest = np.argmin(np.linalg.norm(points[:, None] - pose.centres[None], axis=2), axis=1)
    back = np.swapaxes(pose.rotations[nearest], -1, -2)
    local = np.einsum("pij,pj->pi", back, points - pose.centres[nearest])
    at = rest.centres[nearest] + 0.5 * np.einsum("pij,pj->pi", rest.rotations[nearest], local)
    inside = clearance(at, cage_rig.cage)[0] > 0
    at[~inside] = rest.centres[nearest[~inside]]
    step = 0.01
    for _ in range(30):
        here = cage_rig.deform(cage_rig.bind(at), pose)
        columns = [(cage_rig.deform(cage_rig.bind(at + step * axis), pose) - here) / step for axis in np.eye(3)]
        move = np.linalg.solve(np.stack(columns, axis=-1), (points - here)[..., None])[..., 0]
        share = np.ones(len(at))
        for _ in range(12):  # a joint just under the skin may lie outside the body's cage: go as near as it allows
            outside = clearance(at + share[:, None] * move, cage_rig.cage)[0] < 1.0
            if not outside.any():
                break
            share[outside] *= 0.5
        share[clearance(at + share[:, None] * move, cage_rig.cage)[0] < 1.0] = 0.0
        at = at + share[:, None] * move
    return np.asarray(at)


def made_subject(
    crane: Crane, kind: str, rig: Rig, looks: list[Observation], start: int, meshes: Floats
) -> tuple[Subject, float, str]:
    """Return the body to track with, its size, and what is to be said of it."""
    if kind == "scan":
        subject, _ = scan_subject("crane", meshes[0], crane.faces, fit_body(meshes[0], crane.faces, "human"))
        return subject, 1.0, ""
    builtin = builtin_subject("human")
    scale, found = find_scale_and_poses(builtin, rig, lambda frame: looks[frame], [start], up=UP)
    if kind == "builtin":
        adapt = partial(adapt_shape, builtin, rig, scale=scale, up=UP, known=found)
        few, more = ({start, *np.linspace(0, len(looks) - 1, n).astype(int).tolist()} for n in SHAPE_FRAMES)
        adapted = adapt_to_clothes(adapt, lambda frame: looks[frame], sorted(few), sorted(more))
        if adapted.subject is not None:
            words = f"{adapted.shape.describe()}; held out {adapted.before:.3f} -> {adapted.after:.3f}"
            return adapted.subject, adapted.shape.scale, words
        return scaled_subject(builtin, scale), scale, f"built-in proportions: {adapted.why}"
    return scaled_subject(builtin, scale), scale, "built-in proportions"


def run(
    crane: Crane, kind: str, condition: str = "4view", *, first: int = 0, last: int | None = None
) -> dict[str, float | str]:
    """Track with one kind of body ("builtin", "plain" or "scan") and score the joints.

    Args:
        crane: the sequence.
        kind: which body.
        condition: "8view", "4view" or "4view_noisy".
        first, last: frames to track, ``last`` excluded; None is the end of the sequence.
    """
    rig, meshes = upright(crane, 8 if condition == "8view" else 4)
    frames = range(first, last or len(meshes))
    looks = crane_observations(crane, condition, frames.start, frames.stop)[1]
    started = time.process_time()
    subject, scale, words = made_subject(crane, kind, rig, looks, START - first, meshes)
    shaped = time.process_time() - started
    solver = make_solver(subject, rig)
    track = Tracker(solver, rig).track(lambda frame: looks[frame], len(looks), start=START - first)
    seconds = time.process_time() - started
    poses = [QuadPose(track.rotations[k], track.centres[k]) for k in range(len(looks))]
    truth = crane.joints(meshes)[list(frames)]
    cage_rig = subject.cage_rig
    at = ATTACH - first
    joints = cage_rig.bind(rest_places(cage_rig, truth[at], poses[at]))
    away = np.linalg.norm(np.stack([cage_rig.deform(joints, pose) for pose in poses]) - truth, axis=2)
    listed = attach_joints(cage_rig, subject.template, poses[at], meshes[ATTACH], crane.faces, crane.joint_sets)
    by_listed = np.linalg.norm(np.stack([listed.carried(pose) for pose in poses]) - truth, axis=2)
    rows = [frame - first for frame in crane.protocol["scored_frames"] if frame in frames]
    scored, trusted = away.mean(axis=1)[rows], track.trust[rows] == int(Trust.TRUSTED)
    sigma = np.stack(
        [point_sigma(cage_rig, joints, fit, MODEL_ERROR * solver.unit) for k in rows if (fit := track.fits[k])]
    )
    numbers: dict[str, float | str] = {
        "joint_mm": float(scored.mean()),
        "joint_median_mm": float(np.median(scored)),
        "joint_max_mm": float(scored.max()),
        "joint_listed_mm": float(by_listed[rows].mean()),
        "lost_unflagged": int(np.sum((scored > LOST_MM) & trusted)),
        "trusted_share": float(trusted[scored < 2 * np.median(scored)].mean()),
        "trusted_of_all": float(trusted.mean()),
        "within_sigma": float(np.mean(away[rows] < 1.88 * sigma)),
        "overlap_iou": float(np.nanmedian(track.agreement)),
        "scale": scale,
        "frames": len(scored),
        "shape_cpu_s": shaped,
        "cpu_s": seconds,
        "body": words,
    }
    if kind == "scan":
        surface = np.stack([cage_rig.deform(subject.template.binding, pose) for pose in poses])
        numbers["vertex_mm"] = float(np.linalg.norm(surface - meshes[list(frames)], axis=2).mean())
        own = np.linalg.norm(crane.joints(surface) - truth, axis=2).mean(axis=1)
        numbers["own_vertices_joint_mm"] = float(own.mean())
    return numbers


def _one(task: tuple[str, str]) -> dict[str, float | str]:
    return run(Crane.load(), *task)


def builtin_table(conditions: Sequence[str]) -> dict[str, float | str]:
    """Run the built-in human over the whole sequence, two conditions at a time; print them and name their figures."""
    if not conditions:
        return {}
    with ProcessPoolExecutor(2, get_context("spawn"), one_thread) as pool:
        rows = dict(zip(conditions, pool.map(_one, [("builtin", name) for name in conditions]), strict=True))
    print("crane, built-in human   joint mm  median     max  listed  unflagged  trusted  within sigma   IoU")
    for name, row in rows.items():
        print(
            f"{name:<22}{row['joint_mm']:10.1f}{row['joint_median_mm']:8.1f}{row['joint_max_mm']:8.1f}"
            f"{row['joint_listed_mm']:8.1f}{row['lost_unflagged']:11d}{row['trusted_share']:9.3f}{row['within_sigma']:14.2f}{row['overlap_iou']:6.2f}"
            f"  {row['body']}",
            flush=True,
        )
    kept = ("joint_mm", "joint_listed_mm", "lost_unflagged", "trusted_share", "within_sigma")
    return {f"crane_builtin_{name}_{key}": row[key] for name, row in rows.items() for key in kept}


def main() -> None:
    """Run some and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--last", type=int, help=f"only frames {START} to LAST - 1 (default: the whole sequence)")
    parser.add_argument("--condition", default="4view", choices=CONDITIONS)
    parser.add_argument("--kinds", default="builtin,plain,scan")
    args = parser.parse_args()
    one_thread()
    crane = Crane.load()
    result = {}
    for kind in args.kinds.split(","):
        first = START if args.last else 0
        result[kind] = run(crane, kind, args.condition, first=first, last=args.last)
        print(kind, result[kind], flush=True)
    print(json.dumps({f"{kind}_{key}": value for kind, row in result.items() for key, value in row.items()}))


if __name__ == "__main__":
    main()
