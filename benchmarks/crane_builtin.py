"""The crane sequence tracked with bodies that were not made for it by hand. ``python -m benchmarks.crane_builtin``.

Beside the subject's own template with quads placed by hand and a prior of its key poses (`benchmarks.tracking`):
``builtin`` is the built-in human with its own prior, its size estimated from silhouettes; ``scan`` the subject that
`vivarig subject --mesh` makes of the mesh of frame 0, also with the built-in prior. Four views, start at frame 60 with
no pose given. The protocol's joints are vertex sets of the captured mesh, which the built-in body does not have: they
are attached to its cage once, at a key frame (which is not scored), as the paper attaches joints on its first frame.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from benchmarks.crane import Crane
from calibration.arrays import Floats
from calibration.rig import Rig
from calibration.transforms import RigidTransform
from calibration.world_frame import moved_rig
from tracking.cage import clearance
from tracking.contours import observe
from tracking.deformation import CageRig
from tracking.mesh_files import UPRIGHT
from tracking.quads import QuadPose
from tracking.rasteriser import cast_masks
from tracking.scale_search import find_scale, make_solver
from tracking.scan_subject import fit_body, scan_subject
from tracking.subject import Subject, builtin_subject, scaled_subject
from tracking.tracker import Tracker

UP = np.array([0.0, 0.0, 1.0])
START = 60
ATTACH = 66
"""Key frame at which the joints are attached."""


def upright(crane: Crane, views: int) -> tuple[Rig, Floats]:
    """Return cameras and meshes with z up."""
    turn = UPRIGHT["y"]
    return moved_rig(crane.cameras(views), RigidTransform(turn, np.zeros(3))), crane.vertices @ turn.T


def rest_places(cage_rig: CageRig, points: Floats, pose: QuadPose) -> Floats:
    """Return the places (P, 3) in the rest cage whose points a pose carries to ``points``, by Newton steps."""
    rest = cage_rig.rig
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


def run(crane: Crane, kind: str, *, views: int = 4, last: int | None = None) -> dict[str, float]:
    """Track from the start frame with one kind of body ("builtin" or "scan") and score the joints.

    Args:
        crane: the sequence.
        kind: which body.
        views: cameras of the protocol.
        last: frame to stop before; None tracks the whole sequence, backwards too.
    """
    rig, meshes = upright(crane, views)
    first = 0 if last is None else START
    frames = range(first, len(meshes) if last is None else last)
    looks = [observe(cast_masks(rig, meshes[frame], crane.faces)) for frame in frames]
    started = time.process_time()
    subject: Subject
    if kind == "builtin":
        subject = builtin_subject("human")
        scale = find_scale(subject, rig, lambda frame: looks[frame], [START - first], up=UP)
        subject = scaled_subject(subject, scale)
    else:
        subject, _ = scan_subject("crane", meshes[0], crane.faces, fit_body(meshes[0], crane.faces, "human"))
        scale = 1.0
    solver = make_solver(subject, rig)
    track = Tracker(solver, rig).track(lambda frame: looks[frame], len(looks), start=START - first)
    poses = [QuadPose(track.rotations[k], track.centres[k]) for k in range(len(looks))]
    truth = crane.joints(meshes)[list(frames)]
    cage_rig = subject.cage_rig
    joints = cage_rig.bind(rest_places(cage_rig, truth[ATTACH - first], poses[ATTACH - first]))
    found = np.stack([cage_rig.deform(joints, pose) for pose in poses])
    errors = np.linalg.norm(found - truth, axis=2).mean(axis=1)
    scored = errors[[frame - first for frame in crane.protocol["scored_frames"] if frame in frames]]
    numbers = {
        "joint_mm": float(scored.mean()),
        "joint_median_mm": float(np.median(scored)),
        "joint_max_mm": float(scored.max()),
        "scale": scale,
        "trusted_share": float(np.mean(track.trust == 0)),
        "overlap_iou": float(np.nanmedian(track.agreement)),
        "frames": len(scored),
        "cpu_s": time.process_time() - started,
    }
    if kind == "scan":
        surface = np.stack([cage_rig.deform(subject.template.binding, pose) for pose in poses])
        away = np.linalg.norm(surface - meshes[list(frames)], axis=2).mean(axis=1)
        numbers["vertex_mm"] = float(away.mean())
        own = np.linalg.norm(crane.joints(surface) - truth, axis=2).mean(axis=1)
        numbers["own_vertices_joint_mm"] = float(own.mean())
    return numbers


def main() -> None:
    """Run both and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--last", type=int, help=f"only frames {START} to LAST - 1")
    parser.add_argument("--views", type=int, default=4, choices=(4, 8))
    parser.add_argument("--kinds", default="builtin,scan")
    args = parser.parse_args()
    crane = Crane.load()
    result = {}
    for kind in args.kinds.split(","):
        result[kind] = run(crane, kind, views=args.views, last=args.last)
        print(kind, {key: round(value, 3) for key, value in result[kind].items()}, flush=True)
    print(json.dumps({f"{kind}_{key}": value for kind, row in result.items() for key, value in row.items()}))


if __name__ == "__main__":
    main()
