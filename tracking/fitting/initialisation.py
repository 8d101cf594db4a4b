"""Finding the subject without a given pose: where the silhouettes' centres meet, which known pose, which heading.

Every training pose of the prior, turned to every heading about the vertical, is scored by the overlap of coarse
silhouettes. The best few, kept different from each other, are fitted along the manifold, the best of those with all
quads. A second hypothesis that fits as well with another pose or heading makes the start ambiguous, which is said.
Where none of them fits a person, the same poses are tried lying: captured people stand and walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibration.cameras.projection import project_columns
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Bytes, Floats, Ints
from calibration.foundation.compiled import compiled, compiled_parallel, prange
from calibration.foundation.errors import SolveError
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from tracking.fitting.solver import FrameFit, FrameSolver, RoughFit
from tracking.observations.contour_fill import MeshEdges, face_planes, fill_silhouette
from tracking.observations.contours import Observation
from tracking.priors.gplvm import GplvmPrior
from tracking.priors.representative_frames import representative_frames
from tracking.quads.oriented_quads import QuadPose

__all__ = ["LYING", "Finder", "Hypothesis", "Mend", "silhouette_centre", "spread_poses"]

COARSE = 4
"""Pixels per side of one coarse pixel."""
ALIKE = 100.0
"""Proposals whose quads lie nearer to each other than this are one, thousandths of the size."""
SPARE = 2
"""Proposals that go along the manifold to its end beyond those that are fitted with all quads."""
MENDED = 3
"""Rivals that are mended limb by limb before the best is chosen."""
MANY = 1000
"""More training poses than these were drawn as they come, not chosen one by one."""
LYING = 0.8
"""Overlap of the best start below which a person is tried lying, too: standing ones of the right size have 0.85 to
0.93, a lying child fitted by poses that stand 0.69."""
ENOUGH = 4
"""Views that proposals are compared in, spread over those that see something; what is proposed is fitted to all."""


Mend = Callable[[Observation, FrameFit], FrameFit]


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A pose on the manifold and how well its coarse silhouettes overlap the observed ones."""

    pose: QuadPose
    latent: Floats
    overlap: float


Start = Hypothesis | RoughFit


def silhouette_centre(rig: Rig, observation: Observation) -> Floats:
    """Return the point (3,) nearest to the rays through the silhouettes' centres, mm.

    Raises:
        SolveError: fewer than two cameras saw something.
    """
    matrix, vector = np.zeros((3, 3)), np.zeros(3)
    seen = 0
    for camera, view in zip(rig.cameras, observation.views, strict=True):
        if not len(view.points):
            continue
        rows, columns = np.nonzero(view.mask)
        origin, direction = camera.rays(np.array([view.box[0] + columns.mean(), view.box[1] + rows.mean()]))
        if not np.isfinite(direction).all():
            continue
        across = np.eye(3) - np.outer(direction, direction)
        matrix += across
        vector += across @ origin
        seen += 1
    if seen < 2:
        raise SolveError(f"cannot place the subject: {seen} camera(s) have a silhouette in this frame, two are needed")
    return np.asarray(np.linalg.solve(matrix + 1e-9 * np.eye(3), vector), np.float64)


def spread_poses(poses: Floats, count: int) -> Ints:
    """Choose up to ``count`` of (n, D) poses, each as far as possible from those before it, the most central first."""
    chosen = [int(np.argmin(np.sum((poses - poses.mean(axis=0)) ** 2, axis=1)))]
    distance = np.sum((poses - poses[chosen[0]]) ** 2, axis=1)
    while len(chosen) < min(count, len(poses)) and distance.max() > 1e-12:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.sum((poses - poses[chosen[-1]]) ** 2, axis=1))
    return np.array(chosen)


def _apart(hypotheses: Iterable[Hypothesis], count: int, distance: float) -> list[Hypothesis]:
    """Return the first ``count`` hypotheses whose quads lie further from all before them than ``distance``, mm."""
    kept: list[Hypothesis] = []
    for one in hypotheses:
        if len(kept) == count:
            break
        if all(one.pose.distance(other.pose) > distance for other in kept):
            kept.append(one)
    return kept


def _rivals(fits: list[FrameFit], count: int, distance: float) -> list[FrameFit]:
    """Return the first ``count`` fits that lie further than ``distance``, mm, from all before them."""
    kept: list[FrameFit] = []
    for one in fits:
        if all(one.pose.distance(other.pose) > distance for other in kept) and len(kept) < count:
            kept.append(one)
    return kept


class Finder:
    """Proposes poses for a frame."""

    def __init__(self, solver: FrameSolver, rig: Rig, up: Floats, *, poses: int = 60, headings: int = 16) -> None:
        """Prepare for a solver whose rest pose stands upright, ``up`` being the vertical in world axes."""
        self.solver = solver
        self._rig = rig
        self._up = np.asarray(up, float) / np.linalg.norm(up)
        self._headings = headings
        prior = solver.prior
        # Of thousands the farthest are somersaults: poses that stand for many, instead.
        spread = representative_frames if len(prior.training_poses) > MANY else spread_poses
        which = spread(prior.training_poses, poses)
        self._latents = prior.training_latents[which]
        roots = prior.training_roots if isinstance(prior, GplvmPrior) else None
        rest = solver.cage_rig.quads
        #: (n, 3, 3) how the root stands in each pose: an animal that rears is not turned about the vertical alone.
        self._stands = np.repeat(rest.rotations[rest.root][None], len(which), axis=0) if roots is None else roots[which]
        self._mesh = MeshEdges.of(solver.coarse.faces)
        self._cameras = rig.packed()
        self._sizes = np.array([camera.size for camera in rig.cameras])

    def around(self, observation: Observation, near: QuadPose, *, headings: tuple[float, ...]) -> Iterator[Hypothesis]:
        """Propose training poses with the root near where it is, turned by a few headings, best first."""
        root = self.solver.prior.chart.root
        turned = np.stack([rotation_from_vector(self._up * angle) @ near.rotations[root] for angle in headings])
        return self._propose(observation, np.repeat(turned[None], len(self._latents), axis=0))

    def anywhere(self, observation: Observation) -> Iterator[Hypothesis]:
        """Propose training poses with any heading, best first."""
        angles = np.arange(self._headings) * (2 * np.pi / self._headings)
        turns = rotation_from_vector(self._up * angles[:, None])
        return self._propose(observation, turns[None] @ self._stands[:, None])

    def lying(self, observation: Observation) -> Iterator[Hypothesis]:
        """Propose training poses laid on the back, the front or a side with any heading, best first."""
        across = np.linalg.svd(self._up[None])[2][1:]
        laid = rotation_from_vector(0.5 * np.pi * np.concatenate([across, -across]))
        angles = np.arange(self._headings) * (2 * np.pi / self._headings)
        turns = rotation_from_vector(self._up * angles[:, None])
        ways = (turns[:, None] @ laid).reshape(-1, 3, 3)
        return self._propose(observation, ways[None] @ self._stands[:, None])

    def find(
        self, observation: Observation, *, keep: int = 16, finish: int = 6, mend: Mend | None = None
    ) -> tuple[FrameFit, float]:
        """Fit a frame from nothing; arguments as of `rivals`.

        Returns:
            fit: the best.
            lead: by how much its score exceeds that of the best clearly different one; 1 where there is none.

        Raises:
            SolveError: fewer than two cameras saw something.
        """
        best, *others = self.rivals(observation, keep=keep, finish=finish, mend=mend)
        return best, best.score - others[0].score if others else 1.0

    def rivals(
        self, observation: Observation, *, keep: int = 16, finish: int = 6, mend: Mend | None = None
    ) -> list[FrameFit]:
        """Fit a frame from nothing: the best fit, and the best that is clearly different, if there is one.

        Args:
            observation: silhouettes.
            keep: proposals that are fitted along the manifold, no two alike.
            finish: of these, how many are fitted with all quads.
            mend: improves a fit limb by limb; given, the best rivals are mended before one is chosen.

        Raises:
            SolveError: fewer than two cameras saw something.
        """
        fits = self._fitted(observation, self.anywhere(observation), keep, finish)
        if max(fit.agreement for fit in fits) < LYING and self.solver.posture is None:
            fits += self._fitted(observation, self.lying(observation), keep, finish)
        fits.sort(key=lambda fit: -fit.score)
        if mend is not None:
            fits = [mend(observation, fit) for fit in _rivals(fits, MENDED, 0.3 * ALIKE * self.solver.unit)]
            fits.sort(key=lambda fit: -fit.score)
        return _rivals(fits, 2, 1.5 * ALIKE * self.solver.unit)

    def _fitted(
        self, observation: Observation, proposals: Iterable[Hypothesis], keep: int, finish: int
    ) -> list[FrameFit]:
        """Fit the best proposals along the manifold, no two alike, and the best of these with all quads."""
        apart = _apart(proposals, keep, ALIKE * self.solver.unit)
        # One round tells which of them are worth two more.
        rough = self._roughly(observation, apart, 1)[: finish + SPARE]
        rough = self._roughly(observation, rough, 2)
        fits = [self.solver.fit(observation, fit.pose, fit.latent) for fit in rough[:finish]]
        return [self.solver.fit(observation, fit.pose, fit.latent, latent_steps=False) for fit in fits]

    def _roughly(self, observation: Observation, starts: Sequence[Start], rounds: int) -> list[RoughFit]:
        """Go along the manifold from each start, so many rounds; best first."""
        rough = [self.solver.roughly(observation, one.pose, one.latent, rounds=rounds) for one in starts]
        return sorted(rough, key=lambda fit: -fit.agreement)

    def _propose(self, observation: Observation, roots: Floats) -> Iterator[Hypothesis]:
        """Score each pose with its root turned in each of some ways, (poses, ways, 3, 3); give them best first."""
        centre = silhouette_centre(self._rig, observation)
        ways = roots.shape[1]
        meshes = np.empty((len(roots), ways, *self._known[0][1].shape[::-1]))
        shifts = np.empty((len(roots), ways, 3))
        for (_, shape), rotations, shift, turned in zip(self._known, roots, shifts, meshes, strict=True):
            shift[:] = centre - rotations @ shape.mean(axis=0)
            np.matmul(rotations, shape.T, out=turned)
            turned += shift[:, :, None]
        scores = self._overlaps(observation, meshes.reshape(-1, *meshes.shape[2:]))
        # Hundreds are scored and a few asked for: each is made when it is.
        for one in np.argsort(-scores, kind="stable"):
            which, way = divmod(int(one), ways)
            local, turn = self._known[which][0], roots[which, way]
            pose = QuadPose(turn @ local.rotations, local.centres @ turn.T + shifts[which, way])
            yield Hypothesis(pose, self._latents[which], float(scores[one]))

    @cached_property
    def _known(self) -> list[tuple[QuadPose, Floats]]:
        """The poses to propose with the root at rest, and the coarse template in them."""
        solver, here = self.solver, RigidTransform(np.eye(3), np.zeros(3))
        poses = [solver.pose_of(here, latent) for latent in self._latents]
        return [(pose, solver.cage_rig.deform(solver.coarse.binding, pose)) for pose in poses]

    def _overlaps(self, observation: Observation, meshes: Floats) -> Floats:
        width, height = (max(view.size[k] for view in observation.views) // COARSE + 1 for k in range(2))
        masks = np.zeros((len(observation.views), height, width), np.uint8)
        used = np.zeros(len(observation.views), np.bool_)
        for index, view in enumerate(observation.views):
            used[index] = len(view.points) > 0
            # One pixel in the middle of each coarse one says whether that is covered.
            left, top = (-(-(begin - COARSE // 2) // COARSE) for begin in view.box[:2])
            small = view.mask[
                COARSE * top + COARSE // 2 - view.box[1] :: COARSE, COARSE * left + COARSE // 2 - view.box[0] :: COARSE
            ]
            masks[index, top : top + small.shape[0], left : left + small.shape[1]] = small
        seen = np.flatnonzero(used)
        if len(seen) > ENOUGH:
            used[:] = False
            used[seen[np.linspace(0, len(seen) - 1, ENOUGH).astype(int)]] = True
        scores = np.empty(len(meshes))
        _coarse_overlaps(meshes, self._mesh, self._cameras, masks, used, scores)
        return scores


@compiled_parallel
def _coarse_overlaps(
    meshes: Floats, mesh: MeshEdges, cameras: Floats, masks: Bytes, used: Bools, scores: Floats
) -> None:
    """Fill the mean overlap (n,) of the coarse silhouettes of meshes (n, 3, V), mm, in the views that are used."""
    areas = np.zeros(len(masks), np.int64)
    for c in range(len(masks)):
        areas[c] = np.sum(masks[c])
    for m in prange(len(meshes)):
        planes = np.empty((4, len(mesh.faces)))
        face_planes(meshes[m], mesh.faces, planes)
        total, views = 0.0, 0
        for c in range(len(cameras)):
            if used[c]:
                total += _coarse_overlap(meshes[m], planes, mesh, cameras[c], masks[c], areas[c])
                views += 1
        scores[m] = total / max(views, 1)


@compiled
def _coarse_overlap(vertices: Floats, planes: Floats, mesh: MeshEdges, camera: Floats, mask: Bytes, area: int) -> float:
    pixels = np.empty((2, vertices.shape[1]))
    project_columns(camera, vertices, pixels)
    for i in range(pixels.shape[1]):
        # Coarse pixel k samples the fine pixel COARSE k + COARSE / 2.
        pixels[0, i], pixels[1, i] = (pixels[0, i] - COARSE // 2) / COARSE, (pixels[1, i] - COARSE // 2) / COARSE
    image = np.empty(mask.shape, np.uint8)
    toward, contour = np.empty(len(mesh.faces), np.bool_), np.empty(len(mesh.edges), np.int64)
    low_x, low_y, high_x, high_y, _ = fill_silhouette(pixels, planes, mesh, camera, image, toward, contour)
    common, drawn = 0, 0
    for row in range(low_y, high_y + 1):
        for column in range(low_x, high_x + 1):
            drawn += image[row, column]
            common += image[row, column] & mask[row, column]
    union = area + drawn - common
    return common / union if union > 0 else 0.0
