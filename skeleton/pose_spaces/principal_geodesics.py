"""Principal geodesic analysis of poses: the mean on SO(3)^n, directions from it, and how far poses go along them.

With ``mu_j`` the intrinsic mean of joint j and the stacked logarithms ``u = (log(mu_j^T R_j))_j`` (3 numbers a joint),
principal components V of u make the pose space (Fletcher et al. 2004; Tournier et al. 2009):

    ``x = V^T u(pose)``,   ``R_j = mu_j exp((V x)_j)``

One exponential per joint, of the sum, not a product of one exponential per direction: coordinates from the logarithm
are then met exactly by all modes, and the order of the modes does not count. Since all is seen from the mean, turning
a joint's own axes changes nothing. The root is left out: where it is and faces says little about the pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.damaged_files import reading
from calibration.foundation.errors import InputError
from calibration.foundation.files import atomic_path
from calibration.foundation.npz_files import read_npz
from calibration.geometry.transforms import (
    left_jacobian,
    mean_rotation,
    rotation_from_vector,
    vector_from_rotation,
)

__all__ = ["PoseSpace", "learn_pose_space", "load_pose_space", "save_pose_space"]

VERSION = 1
#: Joints of digits: their capture is mostly noise, and their many angles would fill the first modes.
_DIGITS = ("finger", "thumb", "index", "digit")
#: Root mean square turn below which a joint counts as unmoved, rad.
_UNMOVED = np.radians(0.1)


@dataclass(frozen=True, eq=False)
class PoseSpace:
    """Mean pose, directions and their spread.

    Attributes:
        body: name of the skeleton that the poses are of.
        names: J joint names, the root first.
        used: (n,) indices of the joints that the space moves; the others keep their mean.
        mean: (J, 3, 3) mean rotation of each joint, parent from joint; the root's is the identity.
        directions: (3 n, k) orthonormal columns, rad per rad.
        deviations: (k,) standard deviation of the training poses along each direction, rad.
        total: sum of the variances of all directions, those left out too, rad^2.
        frames: number of training poses.
    """

    body: str
    names: tuple[str, ...]
    used: Ints
    mean: Floats
    directions: Floats
    deviations: Floats
    total: float
    frames: int

    @property
    def modes(self) -> int:
        """Number of directions k."""
        return len(self.deviations)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Names of the joints that the space does not move, without the root."""
        moved = set(self.used.tolist())
        return tuple(name for j, name in enumerate(self.names) if j and j not in moved)

    def share(self, modes: int | None = None) -> float:
        """Return the share of the variance that the first modes (all, by default) hold."""
        return float(np.sum(self.deviations[:modes] ** 2) / self.total)

    def modes_for(self, share: float) -> int:
        """Return the least number of modes that hold a share (0 to 1) of the variance."""
        held = np.cumsum(self.deviations**2) / self.total
        if held[-1] < share - 1e-12:
            raise InputError(f"pose space: its {self.modes} modes hold {held[-1]:.4f} of the variance, wanted {share}")
        return int(np.searchsorted(held, share - 1e-12)) + 1

    def truncated(self, modes: int) -> PoseSpace:
        """Return the space of the first modes."""
        if not 1 <= modes <= self.modes:
            raise InputError(f"pose space: wanted 1 to {self.modes} modes, got {modes}")
        return replace(self, directions=self.directions[:, :modes], deviations=self.deviations[:modes])

    def check_joints(self, names: Sequence[str], who: str) -> None:
        """Refuse a body whose joints are not those of this space."""
        if tuple(names) != self.names:
            missing = [name for name in self.names if name not in names] or [n for n in names if n not in self.names]
            odd = f"'{missing[0]}' is on one side only" if missing else "their order differs"
            raise InputError(
                f"pose space of body '{self.body}' ({len(self.names)} joints) does not fit {who} "
                f"({len(names)} joints): {odd}; train one with `vivarig train --skeleton`"
            )

    def tangents(self, rotations: Floats) -> Floats:
        """Return the stacked logarithms (T, 3 n) of rotations (T, J, 3, 3) parent-from-joint."""
        turned = np.swapaxes(self.mean[self.used], -1, -2) @ rotations[:, self.used]
        return np.asarray(vector_from_rotation(turned).reshape(len(rotations), -1))

    def coordinates(self, rotations: Floats) -> Floats:
        """Return the coordinates (T, k) of rotations (T, J, 3, 3) parent-from-joint."""
        return np.asarray(self.tangents(rotations) @ self.directions)

    def rotations(self, coordinates: Floats) -> Floats:
        """Return rotations (T, J, 3, 3) parent-from-joint of coordinates (T, k); the root's is the identity."""
        x = np.atleast_2d(coordinates)
        out = np.repeat(self.mean[None], len(x), axis=0)
        turns = rotation_from_vector((x @ self.directions.T).reshape(len(x), -1, 3))
        out[:, self.used] = out[:, self.used] @ turns
        return out

    def spins(self, coordinates: Floats) -> Floats:
        """Return (n, 3, k) the angular velocity of each used joint, in its own axes, per unit of each coordinate.

        ``omega = J_r(u) v`` with the right Jacobian of the exponential, ``J_r(u) = J_l(-u)``.
        """
        u = (self.directions @ coordinates).reshape(-1, 3)
        return np.asarray(left_jacobian(-u) @ self.directions.reshape(len(u), 3, -1))


def learn_pose_space(
    rotations: Floats,
    names: Sequence[str],
    *,
    body: str,
    use: Sequence[str] | None = None,
    share: float = 1.0,
) -> PoseSpace:
    """Learn a pose space.

    Args:
        rotations: (T, J, 3, 3) parent-from-joint, the root first; frames with NaN are left out.
        names: J joint names.
        body: name of the skeleton.
        use: joints to move; by default all that turn, without digits.
        share: keep the modes that hold this share of the variance (1: all).
    """
    poses = np.asarray(rotations, dtype=np.float64)
    if poses.ndim != 4 or poses.shape[1:] != (len(names), 3, 3):
        raise InputError(f"pose space: wanted rotations (T, {len(names)}, 3, 3) for these joints, got {poses.shape}")
    poses = poses[np.isfinite(poses).all(axis=(1, 2, 3))]
    if len(poses) < 2:
        raise InputError(f"pose space: wanted at least 2 frames with all joints known, got {len(poses)}")
    mean = _intrinsic_mean(poses)
    mean[0] = np.eye(3)
    vectors = vector_from_rotation(np.swapaxes(mean, -1, -2) @ poses)
    moved = np.sqrt((vectors**2).sum(axis=2).mean(axis=0)) > _UNMOVED
    if use is None:
        digits = [any(word in name.lower() for word in _DIGITS) for name in names]
        chosen = np.flatnonzero(moved & ~np.array(digits) & (np.arange(len(names)) > 0))
        if not len(chosen):
            raise InputError("pose space: no joint turns in these frames; is this a clip without rotations?")
    else:
        missing = [name for name in use if name not in names]
        if missing:
            raise InputError(f"pose space: no joint '{missing[0]}'; the body has {', '.join(names)}")
        chosen = np.array(sorted(list(names).index(name) for name in use), dtype=np.int64)
    tangents = vectors[:, chosen].reshape(len(poses), -1)
    tangents = tangents - tangents.mean(axis=0)  # zero but for rounding
    values, vectors_ = np.linalg.eigh(tangents.T @ tangents / len(poses))
    order = np.argsort(values)[::-1][: len(poses) - 1]
    values, directions = np.maximum(values[order], 0.0), vectors_[:, order]
    total = float(values.sum())
    kept = int(np.searchsorted(np.cumsum(values) / total, share - 1e-12)) + 1 if share < 1 else len(values)
    # A direction has no sign of its own: its largest entry is made positive, so that equal data give equal files.
    largest = np.argmax(np.abs(directions), axis=0)
    directions = directions * np.sign(directions[largest, np.arange(directions.shape[1])])
    return PoseSpace(body, tuple(names), chosen, mean, directions[:, :kept], np.sqrt(values[:kept]), total, len(poses))


def _intrinsic_mean(poses: Floats) -> Floats:
    """Return the mean (J, 3, 3) whose logarithms to all poses (T, J, 3, 3) sum to zero: of some, then of all."""
    mean = mean_rotation(poses[:: max(1, len(poses) // 300)])
    for _ in range(12):
        step = vector_from_rotation(np.swapaxes(mean, -1, -2) @ poses).mean(axis=0)
        mean = mean @ rotation_from_vector(step)
        if np.abs(step).max() < 1e-11:
            break
    return np.asarray(mean)


def save_pose_space(space: PoseSpace, path: Path) -> None:
    """Write a pose space (.npz)."""
    fields: dict[str, Any] = {
        "kind": "vivarig pose space", "version": VERSION, "body": space.body, "names": np.array(space.names),
        "used": space.used, "mean": space.mean, "directions": space.directions, "deviations": space.deviations,
        "total": space.total, "frames": space.frames,
    }  # fmt: skip
    with atomic_path(path) as temporary:
        with open(temporary, "wb") as file:
            np.savez_compressed(file, **fields)


def load_pose_space(path: Path) -> PoseSpace:
    """Read a pose space."""
    again = "make one with `vivarig train --skeleton`"
    if not Path(path).is_file():
        raise InputError(f"{path}: not a pose space; {again}")
    data = read_npz(path, "a pose space", remedy=again)
    with reading(path, "a pose space", remedy=again):
        if str(data["kind"]) != "vivarig pose space" or int(data["version"]) > VERSION:
            raise InputError(f"{path}: not a pose space (kind '{data['kind']}', version {data['version']}); {again}")
        space = PoseSpace(
            str(data["body"]), tuple(str(n) for n in data["names"]), data["used"].astype(np.int64), data["mean"],
            data["directions"], data["deviations"], float(data["total"]), int(data["frames"]),
        )  # fmt: skip
        joints, used, modes = len(space.names), len(space.used), len(space.deviations)
        fits = space.mean.shape == (joints, 3, 3) and space.directions.shape == (3 * used, modes)
        if not fits or not ((space.used >= 0) & (space.used < joints)).all() or not space.total > 0:
            raise InputError(f"{path}: not a pose space (its fields do not fit together); {again}")
    return space
