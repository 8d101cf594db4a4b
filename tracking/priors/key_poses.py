"""Key poses: quads placed by hand or fitted to single frames, in a TOML file that people can edit.

::

    rig = "mouse"

    [[pose]]
    source = "mouse_07:120"

    [[pose.quad]]
    name = "pelvis"
    centre = [12.0, 3.5, 26.0]         # mm, world
    rotation = [1.0, 0.0, 0.0, 0.0]    # wxyz, world from quad
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from calibration.foundation.arrays import Floats, shaped
from calibration.foundation.damaged_files import guarded
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import read_text, write_text
from calibration.geometry.transforms import quaternion_from_rotation, rotation_from_quaternion
from tracking.priors.training_poses import TrainingPoses
from tracking.quads.oriented_quads import QuadRig

__all__ = ["load_key_poses", "save_key_poses"]


def save_key_poses(poses: TrainingPoses, path: Path | str) -> None:
    """Write poses to a key pose file."""
    quaternions = quaternion_from_rotation(poses.rotations)
    table = {
        "rig": poses.rig.name,
        "pose": [
            {
                "source": source,
                "quad": [
                    {
                        "name": name,
                        "centre": poses.centres[number, quad].round(4).tolist(),
                        "rotation": quaternions[number, quad].round(9).tolist(),
                    }
                    for quad, name in enumerate(poses.rig.quad_names)
                ],
            }
            for number, source in enumerate(poses.sources)
        ],
    }
    write_text(path, tomli_w.dumps(table))


@guarded("a file of key poses")
def load_key_poses(path: Path | str, rig: QuadRig) -> TrainingPoses:
    """Read a key pose file of a rig; every pose must place every quad."""
    path = Path(path)
    try:
        table = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    if table.get("rig") != rig.name:
        raise InputError(f"{path}: key poses of rig '{table.get('rig')}', wanted '{rig.name}'")
    poses = table.get("pose", [])
    if not poses:
        raise InputError(f"{path}: holds no table [[pose]]")
    placed = [_placed(pose, rig, f"{path}: pose {number}") for number, pose in enumerate(poses, 1)]
    return TrainingPoses(
        rig,
        np.stack([rotations for rotations, _ in placed]),
        np.stack([centres for _, centres in placed]),
        tuple(str(pose.get("source", f"{path.stem}:{number}")) for number, pose in enumerate(poses)),
    )


def _placed(pose: dict[str, Any], rig: QuadRig, where: str) -> tuple[Floats, Floats]:
    """Rotations (Q, 3, 3) and centres (Q, 3) of one pose table."""
    quads: dict[str, Any] = {}
    for quad in pose.get("quad", []):
        name = str(quad.get("name", "?"))
        if name not in rig.quad_names:
            raise InputError(f"{where}: unknown quad '{name}'; {nearest(name, rig.quad_names)}")
        quads[name] = quad
    missing = [name for name in rig.quad_names if name not in quads]
    if missing:
        raise InputError(f"{where}: quad '{missing[0]}' is not placed; each pose must place all {len(rig)} quads")
    centres = [shaped(quads[name].get("centre", ()), (3,), f"{where}: centre of '{name}'") for name in rig.quad_names]
    turns = [shaped(quads[name].get("rotation", ()), (4,), f"{where}: rotation of '{name}'") for name in rig.quad_names]
    if not (np.linalg.norm(turns, axis=1) > 0).all():
        raise InputError(f"{where}: a rotation is a quaternion wxyz of length above 0")
    return rotation_from_quaternion(np.array(turns)), np.array(centres)
