"""Pose spaces and pose libraries from motion files and recordings (`vivarig train --skeleton`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.errors import InputError
from skeleton.bodies import BODIES, load_body
from skeleton.pose_spaces.library_files import save_library
from skeleton.pose_spaces.mode_pictures import draw_modes
from skeleton.pose_spaces.pose_library import build_library
from skeleton.pose_spaces.principal_geodesics import learn_pose_space, save_pose_space
from skeleton.pose_spaces.rotation_tree import tree_of_skeleton
from skeleton.pose_spaces.training_motions import TrainingClip, clip_of, find_motions
from vivarig.console.progress import progress_callback
from vivarig.console.reporting import CommandReport

__all__ = ["train_pose_model"]


def train_pose_model(
    body_name: str,
    paths: Sequence[Path],
    output: Path,
    *,
    poses: int | None = None,
    picture: Path | None = None,
    reading: dict[str, Any] | None = None,
) -> CommandReport:
    """Learn a pose space, or with ``poses`` a library of so many, and write it (.npz)."""
    if body_name not in BODIES:
        raise InputError(f"--skeleton {body_name}: wanted a built-in body ({', '.join(BODIES)})")
    body = load_body(body_name)
    files = find_motions(paths)
    clips: list[TrainingClip] = []
    with progress_callback("reading") as advance:
        for number, path in enumerate(files, 1):
            clips.append(clip_of(path, body, reading or {}))
            advance(number, len(files))
    frames = sum(len(clip.rotations) for clip in clips)
    subjects = sorted({clip.subject for clip in clips})
    lines = [f"{frames} poses of body '{body.name}' from {len(clips)} clips of {len(subjects)} subjects"]
    numbers: dict[str, Any] = {"body": body.name, "frames": frames, "clips": len(clips), "subjects": len(subjects)}
    every = np.concatenate([clip.rotations for clip in clips])
    space = learn_pose_space(every, body.joint_names, body=body.name)
    counts = {share: space.modes_for(share) for share in (0.95, 0.99)}
    lines.append(f"{counts[0.95]} numbers a pose hold 95 % of their variance, {counts[0.99]} hold 99 %")
    if space.left_out:
        lines.append(f"left out (unmoved, or digits): {', '.join(space.left_out)}")
    numbers |= {"modes95": counts[0.95], "modes99": counts[0.99], "left_out": list(space.left_out)}
    if poses is None:
        kept = space.truncated(counts[0.99])
        save_pose_space(kept, output)
        lines.append(f"pose space of {kept.modes} modes written to {output}")
    else:
        sources = [subjects.index(clip.subject) for clip in clips]
        tree = tree_of_skeleton(body)
        ends = [tree.names[j] for j in tree.ends]
        library = build_library(
            [clip.rotations for clip in clips], sources, tree, body=body.name, count=poses, calibrate=ends
        )
        save_library(library, output)
        lines.append(f"library of {len(library)} poses, sigma times {library.inflation:.2f}, written to {output}")
        numbers |= {"library_poses": len(library), "inflation": library.inflation}
    if picture is not None:
        draw_modes(space, body, picture)
        lines.append(f"picture of the first modes in {picture}")
    return CommandReport(lines, numbers)
