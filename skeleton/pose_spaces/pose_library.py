"""Natural posing from a large database: a library of poses, and a Gaussian model of those that come near the handles.

For handles somewhere, the library's poses are laid on them (turned about the vertical, moved), those that fit best are
weighted by how well, and their mean and covariance, blended with that of the whole library, make the model that
`skeleton.pose_spaces.posing` solves: Chai and Hodgins 2005, with rotations on the manifold. The tilt of the root
belongs to the pose, its heading and place do not. Lengths come from the body that is posed, never from the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import mean_rotation, rotation_from_vector, vector_from_rotation
from skeleton.pose_spaces import pose_kernels as kernels
from skeleton.pose_spaces.posing import HandleSet, PosedFrames, TangentModel, lay_down, packed, pose_one
from skeleton.pose_spaces.representative_poses import cover_poses
from skeleton.pose_spaces.rotation_tree import RotationTree, place_rotations
from skeleton.tree.joint_tree import Pose

__all__ = ["LibrarySearch", "PoseLibrary", "build_library", "grounded", "tilts_of"]

#: Neighbours that make a local model, and how many frames' worth the whole library weighs beside them.
NEIGHBOURS = 200
WHOLE = 20.0
#: Misfit of the handles, root mean square, at which a neighbour's weight falls to 0.6, as a share of the body's size.
WIDTH = 0.03
#: Poses on which sigma is calibrated.
_TRIES = 150


@dataclass(frozen=True, eq=False)
class PoseLibrary:
    """Poses of a skeleton without heading, place and lengths.

    Attributes:
        body: name of the skeleton.
        names: J joint names, the root first.
        up: the vertical axis of the world that the root's tilt is against.
        mean: (J, 3, 3) mean rotation of each joint, parent from joint; of the root: mean tilt.
        tangents: (N, 3 J) float32 logarithms of the poses from the mean.
        sources: (N,) number of the clip or subject that each pose is from.
        inflation: factor on sigma, measured on poses whose own source was left aside.
    """

    body: str
    names: tuple[str, ...]
    up: str
    mean: Floats
    tangents: np.ndarray
    sources: Ints
    inflation: float = 1.0

    def __len__(self) -> int:
        return len(self.tangents)

    def rotations(self, rows: Ints | slice) -> Floats:
        """Return rotations (n, J, 3, 3) parent-from-joint of library poses; the root's is its tilt."""
        vectors = np.asarray(self.tangents[rows], float).reshape(-1, len(self.names), 3)
        return np.asarray(self.mean @ rotation_from_vector(vectors))

    def whole_model(self) -> TangentModel:
        """Return the Gaussian model of all poses together (a linear prior)."""
        return self._model(np.asarray(self.tangents, float).mean(axis=0), self._covariance())

    def _covariance(self) -> Floats:
        return np.asarray(np.cov(self.tangents.T.astype(float)))

    def _model(self, centre: Floats, covariance: Floats) -> TangentModel:
        """Return the model of the grounded body: its first joint stands on the ground and only turns about."""
        moving = np.flatnonzero(np.diag(covariance) > 1e-8)
        part = covariance[np.ix_(moving, moving)]
        spread = np.linalg.cholesky(part + 1e-8 * np.eye(len(moving)))
        directions = np.zeros((len(centre) + 3, len(moving)))
        directions[3 + moving] = spread
        bases = np.concatenate([np.eye(3)[None], self.mean])
        return TangentModel(
            bases, np.concatenate([np.zeros(3), centre]), directions, np.ones(len(moving)), "xyz".index(self.up)
        )


def tilts_of(turns: Floats, up: str) -> Floats:
    """Return root rotations (T, 3, 3) with their turn about the vertical taken away: ``R = turn tilt``."""
    axis = np.eye(3)["xyz".index(up)]
    skew = np.stack(
        [turns[:, 2, 1] - turns[:, 1, 2], turns[:, 0, 2] - turns[:, 2, 0], turns[:, 1, 0] - turns[:, 0, 1]], axis=1
    )
    cosine = np.trace(turns, axis1=-2, axis2=-1) - np.einsum("i,tij,j->t", axis, turns, axis)
    angle = np.arctan2(skew @ axis, cosine)
    return np.asarray(rotation_from_vector(-angle[:, None] * axis) @ turns)


def grounded(tree: RotationTree) -> RotationTree:
    """Return the body with a joint on top that only turns about the vertical; the root hangs in its centre."""
    parents = np.concatenate([[-1], np.where(tree.parents < 0, 0, tree.parents + 1)])
    offsets = np.concatenate([np.zeros((1, 3)), np.where(tree.parents[:, None] < 0, 0.0, tree.offsets)])
    return RotationTree(("ground", *tree.names), parents, offsets, tree.up)


def build_library(
    rotations: Sequence[Floats],
    sources: Sequence[int],
    tree: RotationTree,
    *,
    body: str,
    count: int = 20_000,
    calibrate: Sequence[str] = (),
) -> PoseLibrary:
    """Build a library from clips of rotations, each (T, J, 3, 3) parent-from-joint with the root's in the world.

    Args:
        rotations: the clips; anything indexable, read once for the mean (every tenth frame) and once for the cover.
        sources: a number for each clip; poses of the same subject should share one.
        tree: a body of usual lengths with its vertical, on which sigmas are calibrated.
        body: name of the skeleton.
        count: most poses kept.
        calibrate: joints to use as handles in the calibration of sigma; none: no calibration.
    """
    if not len(rotations) or len(rotations) != len(sources):
        raise InputError(f"pose library: wanted one source for each clip, got {len(rotations)} and {len(sources)}")
    some = np.concatenate([_upright(clip, tree)[::10] for clip in rotations])
    if len(some) < 2:
        raise InputError(f"pose library: wanted at least 2 poses, got {len(some)}")
    mean = mean_rotation(some)
    lengths = [len(clip) for clip in rotations]
    owner = np.repeat(np.asarray(sources, np.int64), lengths)

    def tangents(clip: Floats) -> Floats:
        turned = np.swapaxes(mean, -1, -2) @ _upright(clip, tree)
        return vector_from_rotation(turned).reshape(len(clip), -1)

    cover = cover_poses((tangents(clip) for clip in rotations), count)
    if not (np.ptp(cover.poses[:, 3:], axis=0) > 1e-4).any():
        raise InputError("pose library: no joint turns in these clips; are they without rotations?")
    library = PoseLibrary(body, tree.names, tree.up, mean, cover.poses.astype(np.float32), owner[cover.frames])
    if not calibrate:
        return library
    picked = np.sort(np.random.default_rng(0).choice(len(owner), min(_TRIES, len(owner)), replace=False))
    begins = np.concatenate([[0], np.cumsum(lengths)])
    shown = []
    for number in picked:
        clip = int(np.searchsorted(begins, number, side="right")) - 1
        frame = number - begins[clip]
        shown.append((_upright(rotations[clip][frame : frame + 1], tree)[0], int(owner[number])))
    return replace(library, inflation=_inflation(library, tree, calibrate, shown))


def _upright(clip: Floats, tree: RotationTree) -> Floats:
    out = np.array(clip, dtype=np.float64)
    out[:, 0] = tilts_of(out[:, 0], tree.up)
    return out


@compiled
def _handle_places(tree: kernels.PackedTree, tangents: np.ndarray, joints: Ints, offsets: Floats, out: Floats) -> None:
    """Fill (N, H, 3): the handles of library poses, the ground joint at the origin."""
    count = tree.parents.size
    vectors, centres, world = np.zeros((count, 3)), np.empty((count, 3)), np.empty((count, 3, 3))
    origin, unit = np.zeros(3), np.eye(3)
    for n in range(tangents.shape[0]):
        for i in range(tangents.shape[1]):
            vectors[1 + i // 3, i % 3] = tangents[n, i]
        kernels.place(tree, vectors, origin, unit, centres, world)
        for h in range(joints.size):
            for a in range(3):
                total = centres[joints[h], a]
                for b in range(3):
                    total += world[joints[h], a, b] * offsets[h, b]
                out[n, h, a] = total


@compiled
def _misfits(places: Floats, targets: Floats, weights: Floats, axis: int, out: Floats) -> None:
    """Fill (N,) the weighted squared distance of handles (N, H, 3) to targets (H, 3) after the best turn and move."""
    second, third = (axis + 1) % 3, (axis + 2) % 3
    total = weights.sum()
    middle = np.zeros(3)
    for h in range(weights.size):
        if weights[h] > 0.0:
            for a in range(3):
                middle[a] += weights[h] * targets[h, a] / total
    for n in range(places.shape[0]):
        x = y = z = 0.0
        for h in range(weights.size):
            x += weights[h] * places[n, h, axis] / total
            y += weights[h] * places[n, h, second] / total
            z += weights[h] * places[n, h, third] / total
        squares = up = cosine = sine = 0.0
        for h in range(weights.size):
            if weights[h] > 0.0:
                w = weights[h]
                p, q, r = places[n, h, axis] - x, places[n, h, second] - y, places[n, h, third] - z
                u, v, s = (
                    targets[h, axis] - middle[axis],
                    targets[h, second] - middle[second],
                    targets[h, third] - middle[third],
                )
                squares += w * (p * p + q * q + r * r + u * u + v * v + s * s)
                up += w * p * u
                cosine += w * (q * v + r * s)
                sine += w * (q * s - r * v)
        out[n] = squares - 2.0 * (up + np.sqrt(cosine * cosine + sine * sine))


@dataclass(frozen=True, eq=False)
class LibrarySearch:
    """A library laid out for one body and one set of handles; made by `LibrarySearch.of`, used for many poses."""

    library: PoseLibrary
    tree: RotationTree
    handles: HandleSet
    places: Floats
    covariance: Floats
    width_mm: float

    @staticmethod
    def of(library: PoseLibrary, tree: RotationTree, handles: HandleSet) -> LibrarySearch:
        """Place the handles of every library pose on a body."""
        if tree.names != library.names:
            raise InputError(
                f"pose library of body '{library.body}' ({len(library.names)} joints) does not fit this one "
                f"({len(tree.names)} joints); train one with `vivarig train --skeleton`"
            )
        if tree.up != library.up:
            raise InputError(f"pose library: its vertical is {library.up}, the body's is {tree.up}")
        body = grounded(tree)
        model = library.whole_model()
        onto = HandleSet(handles.joints + 1, handles.offsets)
        places = np.empty((len(library), len(onto.joints), 3))
        _handle_places(packed(body, model), library.tangents, onto.joints, np.asarray(onto.offsets, float), places)
        rest = float(np.linalg.norm(np.ptp(places.reshape(-1, 3), axis=0)))
        extent = max(float(np.abs(tree.offsets).sum(axis=1)[1:].sum()) / 2.0, 1e-9)
        width = WIDTH * min(extent, max(rest, 1e-9))
        return LibrarySearch(library, body, onto, places, library._covariance(), width)

    def model(self, targets: Floats, sigma: Floats, *, leave_out: int | None = None) -> TangentModel:
        """Return the Gaussian model of the poses near handle targets (H, 3), NaN for none."""
        seen = np.asarray(np.isfinite(targets).all(axis=1))
        if not seen.any():
            return self.library.whole_model()
        weights = np.where(seen, 1.0 / np.maximum(np.broadcast_to(sigma, seen.shape), self.width_mm) ** 2, 0.0)
        misfit = np.empty(len(self.library))
        shown = np.where(seen[:, None], targets, 0.0)
        _misfits(self.places, shown, weights, "xyz".index(self.library.up), misfit)
        if leave_out is not None:
            misfit[self.library.sources == leave_out] = np.inf
        count = min(NEIGHBOURS, int(np.isfinite(misfit).sum()))
        near = np.argpartition(misfit, count - 1)[:count]
        each = misfit[near] / int(seen.sum())
        share = np.exp(-0.5 * (each - each.min()))
        share /= share.sum()
        poses = self.library.tangents[near].astype(float)
        centre = share @ poses
        apart = (poses - centre) * np.sqrt(share)[:, None]
        strength = 1.0 / float((share**2).sum())
        covariance = (strength * (apart.T @ apart) + WHOLE * self.covariance) / (strength + WHOLE)
        return self.library._model(centre, covariance)

    def pose(
        self,
        targets: Floats,
        sigma: Floats,
        *,
        turns: Floats | None = None,
        turn_sigma: Floats | None = None,
        leave_out: int | None = None,
    ) -> PosedFrames:
        """Find the most natural pose that meets handle targets (H, 3) with sigmas (H,), mm; NaN for none."""
        targets = np.asarray(targets, float)
        model = self.model(targets, np.asarray(sigma, float), leave_out=leave_out)
        zero = np.zeros(len(model.stiffness))
        root, turn = lay_down(self.tree, model, self.handles, targets, zero)
        found = pose_one(
            self.tree, model, self.handles, targets, sigma, turns=turns, turn_sigma=turn_sigma,
            start=(root, turn, zero),
        )  # fmt: skip
        pose = Pose(found.pose.positions[:, 1:], found.pose.rotations[:, 1:])
        return PosedFrames(found.coordinates, pose, self.library.inflation * found.sigma[:, 1:], found.energy)


def _inflation(
    library: PoseLibrary, tree: RotationTree, names: Sequence[str], shown: Sequence[tuple[Floats, int]]
) -> float:
    """Return by how much sigma falls short for poses of sources that are left aside: 68 % within 1.88 sigma.

    ``shown`` holds poses (J, 3, 3) as often as the clips show them, each with its source.
    """
    if len(np.unique(library.sources)) < 2:
        return 1.0
    search = LibrarySearch.of(library, tree, HandleSet.at(tree, names))
    handles = search.handles.joints - 1
    others = np.setdiff1d(np.arange(len(tree.names)), handles)
    ratios = []
    for rotations, source in shown:
        truth = place_rotations(tree, rotations[None], np.zeros((1, 3))).positions[0]
        found = search.pose(truth[handles], np.full(len(names), 2.0), leave_out=source)
        apart = np.linalg.norm(found.pose.positions[0] - truth, axis=1)
        ratios.append(apart[others] / np.maximum(found.sigma[0, others], 1e-9))
    return float(np.percentile(np.concatenate(ratios), 68.0) / 1.88)
