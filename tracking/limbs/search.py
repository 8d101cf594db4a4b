"""A limb that the silhouettes contradict is looked for alone, the rest of the body as it is.

Many ways in which the limb may hang on the trunk are tried: shapes of the limb and directions at its root as in the
prior's training poses, taken apart and turned further, so that poses are tried which no training pose shows as a whole.
Each is scored by points on the limb alone: good where silhouette lies that the rest of the body does not explain, bad
in empty air. The best few, different from each other, are starts for the solver.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from tracking.fitting.initialisation import spread_poses
from tracking.fitting.posture import COST
from tracking.fitting.solver import FrameFit, Sketch
from tracking.limbs.drawing import ViewDrawing, carried, point_values
from tracking.limbs.evidence import LimbEvidence
from tracking.observations.contours import Observation
from tracking.observations.marks import Marks
from tracking.priors.prior import latent_near, project_pose
from tracking.quads.oriented_quads import QuadPose
from tracking.terms.texture import match_pixels

__all__ = ["APART", "LimbSearch"]

SHAPES, WAYS = 14, 16
"""Shapes of a limb tried, and directions at its root."""
FURTHER = (0.6, 0.6, 1.2, 1.2)
"""How far each direction is turned further, about any axis, rad."""
BESIDE = 0.5
"""How far a head is turned about nose and neck from where it is, rad."""
POINTS = 60
"""Points on a limb that score it."""
RIVALS = 4
"""One of so many poses is compared with where a limb is."""
APART = 100.0
"""Mean distance of a limb's quads from which on two places of it are clearly different, thousandths of the size."""
MARKED = 100.0
"""Distance from a mark of a 2D point at which a pose loses half of what the mark is worth, thousandths."""
BACK = 25.0
"""Mean distance of a limb's quads from where they were, thousandths, below which a search has come back, and
between those of two searches below which they have met."""
LAST_STEPS = 3
"""Steps that finish a sketch."""
FOLLOWED = 4
"""Steps of the latent point to a pose that differs in one limb: in 240 starts three came as near as ten from two sides
(squared distance 22.6 and 22.3; 45 before)."""
EMPTY = 60.0
"""Distance in empty air from which on a point is as bad as can be, thousandths of the size."""


class LimbSearch:
    """Proposes poses of one limb at a time."""

    def __init__(self, evidence: LimbEvidence) -> None:
        self.evidence = evidence
        solver = evidence.solver
        prior = solver.prior
        self._empty = EMPTY * solver.unit
        identity = RigidTransform(np.eye(3), np.zeros(3))
        rotations, centres = prior.chart.from_vector(identity, prior.training_poses)
        self._known = [self._candidates(limb, rotations, centres) for limb in range(len(evidence.limbs))]
        self._parts = [
            solver.part(chain, evidence.of_vertex == limb) for limb, chain in enumerate(evidence.limbs.chains)
        ]
        rest = solver.cage_rig.quads
        self._points: list[tuple[Ints, Floats]] = []
        for limb, chain in enumerate(evidence.limbs.chains):
            own = np.flatnonzero(evidence.of_vertex == limb)
            own = own[np.linspace(0, len(own) - 1, min(POINTS, len(own))).astype(int)]
            at = solver.coarse.vertices[own]
            nearest = np.argmin(np.linalg.norm(at[:, None] - rest.centres[chain][None], axis=2), axis=1)
            local = np.einsum("pji,pj->pi", rest.rotations[chain][nearest], at - rest.centres[chain][nearest])
            self._points.append((nearest, local))

    def _candidates(self, limb: int, rotations: Floats, centres: Floats) -> tuple[Floats, Floats]:
        """Rotations (N, K, 3, 3) and centres (N, K, 3) of a limb's quads, seen from the quad it hangs on."""
        limbs, unit = self.evidence.limbs, 100.0 * self.evidence.solver.unit
        chain, parent = limbs.chains[limb], int(limbs.parents[limb])
        if limb == 0:
            return np.zeros((0, len(chain), 3, 3)), np.zeros((0, len(chain), 3))
        to_parent = rotations[:, parent].transpose(0, 2, 1)
        first = to_parent @ rotations[:, chain[0]]
        at = np.einsum("nij,nj->ni", to_parent, centres[:, chain[0]] - centres[:, parent])
        to_first = rotations[:, chain[0]].transpose(0, 2, 1)
        shape_r = to_first[:, None] @ rotations[:, chain]
        shape_c = np.einsum("nij,nkj->nki", to_first, centres[:, chain] - centres[:, chain[:1]])
        shapes = spread_poses(shape_c.reshape(len(shape_c), -1) / unit, SHAPES)
        ways = spread_poses(first.reshape(len(first), -1), WAYS)
        random = np.random.default_rng(17 + limb)
        all_r, all_c = [], []
        for way in ways:
            turns = [np.eye(3)]
            for angle in FURTHER:
                axis = random.normal(size=3)
                turns.append(rotation_from_vector(angle * axis / np.linalg.norm(axis)))
            for turn in turns:
                base = turn @ first[way]
                all_r.append(base @ shape_r[shapes])
                all_c.append(at[way] + np.einsum("ij,nkj->nki", base, shape_c[shapes]))
        return np.concatenate(all_r), np.concatenate(all_c)

    def propose(self, observation: Observation, pose: QuadPose, limb: int, count: int) -> list[QuadPose]:
        """Return up to ``count`` poses that differ from the given one, and from each other, in one limb."""
        evidence = self.evidence
        rotations, centres = self._known[limb]
        if not len(rotations):
            return []
        chain, parent = evidence.limbs.chains[limb], int(evidence.limbs.parents[limb])
        held = pose.rotations[parent]
        turned = held @ rotations
        moved = pose.centres[parent] + centres @ held.T
        if evidence.solver.posture is not None and evidence.solver.posture.head in chain:
            near = self._beside(pose, chain)
            turned, moved = np.concatenate([turned, near[0]]), np.concatenate([moved, near[1]])
        score = self._scores(evidence.draw(observation, pose), limb, turned, moved, 1)
        score += self._by_marks(observation.sightings, limb, turned, moved) - self._strain(limb, pose, turned)
        chosen: list[int] = []
        apart = 60.0 * evidence.solver.unit
        for index in np.argsort(-score, kind="stable"):
            away = [np.linalg.norm(moved[index] - moved[other], axis=1).mean() for other in chosen]
            if all(distance > apart for distance in away):
                chosen.append(int(index))
            if len(chosen) == count:
                break
        result = []
        for index in chosen:
            new_r, new_c = pose.rotations.copy(), pose.centres.copy()
            new_r[chain], new_c[chain] = turned[index], moved[index]
            result.append(QuadPose(new_r, new_c))
        return result

    def leads(self, observation: Observation, pose: QuadPose, known: dict[int, float]) -> Floats:
        """(L,) by how much each limb's place beats the best clearly different one, mean of views; NaN for the trunk.

        Near 0, or below: a second place of the limb explains the silhouettes as well. ``known`` are those of some
        limbs.
        """
        limbs = range(1, len(self.evidence.limbs))
        own = [known[limb] if limb in known else self.lead(observation, pose, limb) for limb in limbs]
        return np.array([np.nan, *own])

    def lead(self, observation: Observation, pose: QuadPose, limb: int) -> float:
        """The same of one limb."""
        limbs = self.evidence.limbs
        drawn = self.evidence.draw(observation, pose)
        seen = max(sum(view is not None for view in drawn), 1)
        chain, parent = limbs.chains[limb], int(limbs.parents[limb])
        held = pose.rotations[parent]
        rotations, centres = (values[::RIVALS] for values in self._known[limb])
        turned = np.concatenate([pose.rotations[chain][None], held @ rotations])
        moved = np.concatenate([pose.centres[chain][None], pose.centres[parent] + centres @ held.T])
        kept = np.linalg.norm(moved - moved[0], axis=2).mean(axis=1) > APART * self.evidence.solver.unit
        kept[0] = True
        score = self._scores(drawn, limb, turned[kept], moved[kept], 2) / seen
        score -= self._strain(limb, pose, turned[kept])
        return float(score[0] - score[1:].max()) if len(score) > 1 else 1.0

    def _beside(self, pose: QuadPose, chain: Ints) -> tuple[Floats, Floats]:
        """Rotations (12, K, 3, 3) and centres (12, K, 3) of a limb turned a little about its root, and about its end.

        A head whose nose is right and whose ears are not is turned about the nose.
        """
        axes = pose.rotations[chain[-1]].T
        turns = rotation_from_vector(BESIDE * np.concatenate([axes, -axes]))
        pivots = [pose.centres[chain[0]], pose.centres[chain[-1]]]
        rotations = turns[:, None] @ pose.rotations[chain]
        centres = [pivot + np.einsum("nij,kj->nki", turns, pose.centres[chain] - pivot) for pivot in pivots]
        return np.concatenate([rotations, rotations]), np.concatenate(centres)

    def _strain(self, limb: int, pose: QuadPose, rotations: Floats) -> Floats:
        """How strained the posture is (N,) with a limb's quads turned so (N, K, 3, 3): 0 but for the head."""
        posture, chain = self.evidence.solver.posture, self.evidence.limbs.chains[limb]
        if posture is None or posture.head not in chain:
            return np.zeros(len(rotations))
        heads = rotations[:, int(np.flatnonzero(chain == posture.head)[0])]
        return posture.strain(heads, pose.rotations[posture.chest], pose.rotations[posture.trunk]) / COST

    def _scores(
        self, drawn: list[ViewDrawing | None], limb: int, rotations: Floats, centres: Floats, every: int
    ) -> Floats:
        """Value (N,) of poses of a limb's quads (N, K, ...), summed over the views; see `point_values`."""
        nearest, local = self._points[limb]
        nearest, local = np.ascontiguousarray(nearest[::every]), np.ascontiguousarray(local[::every])
        points = carried(rotations, centres, nearest, local)
        score = np.zeros(len(rotations))
        for view, camera in zip(drawn, self.evidence.solver.camera_rows, strict=True):
            if view is not None:
                point_values(view, camera, points, limb, self._empty, score)
        return score

    def _by_marks(self, seen: Marks | None, limb: int, rotations: Floats, centres: Floats) -> Floats:
        """What marks of 2D points that cameras agree on say of poses of a limb: down to -1 for each far off."""
        score = np.zeros(len(rotations))
        term = self.evidence.solver.points
        if seen is None or term is None:
            return score
        chain = self.evidence.limbs.chains[limb]
        binding = term.points.binding
        ours = (self.evidence.limbs.of_points(binding) == limb) & np.isfinite(term.points.sigma)
        solver = self.evidence.solver
        rest = solver.cage_rig.quads
        places = solver.cage_rig.deform(binding, rest.rest)
        nearest = np.argmin(np.linalg.norm(places[:, None] - rest.centres[chain][None], axis=2), axis=1)
        local = np.einsum("pji,pj->pi", rest.rotations[chain][nearest], places - rest.centres[chain][nearest])
        points = carried(rotations, centres, nearest, local).transpose(1, 2, 0)
        for k in np.flatnonzero(seen.confirmed & ours[seen.owner]):
            views = np.full(len(points), seen.views[k])
            pixels = np.repeat(seen.pixels[k][None], len(points), axis=0)
            away = match_pixels(points[:, seen.owner[k]], views, pixels, solver.camera_rows).residuals.reshape(-1, 2)
            square = np.sum(away**2, axis=1) / (MARKED * solver.unit) ** 2
            score -= square / (1.0 + square)
        return score

    def latent_of(self, pose: QuadPose) -> Floats:
        """Return the latent point (d,) nearest to a pose."""
        prior = self.evidence.solver.prior
        return project_pose(prior, prior.chart.to_vector(pose.rotations, pose.centres)[1], starts=2, iterations=10)

    def fits(self, observation: Observation, starts: list[QuadPose]) -> list[FrameFit]:
        """Fit a frame anew from poses that differ in one limb."""
        solver = self.evidence.solver
        return [solver.fit(observation, start, self.latent_of(start), latent_steps=False) for start in starts]

    def sketches(self, observation: Observation, starts: list[QuadPose], fit: FrameFit, limb: int) -> list[Sketch]:
        """Fit one limb alone, coarsely, the rest as in a fit.

        A start whose limb comes to where it is in the fit, or from another start, is not gone on with.
        """
        solver, chain = self.evidence.solver, self.evidence.limbs.chains[limb]
        near = BACK * solver.unit

        def met(here: QuadPose, others: list[QuadPose]) -> bool:
            known = (fit.pose, *others)
            away = [np.linalg.norm(here.centres[chain] - one.centres[chain], axis=1).mean() for one in known]
            return bool(min(away) < near)

        known = [(start, self._latent_near(start, fit.latent)) for start in starts]
        return solver.sketches(observation, self._parts[limb], fit, known, met)

    def _latent_near(self, pose: QuadPose, latent: Floats) -> Floats:
        """Return the latent point (d,) nearest to a pose that differs in one limb from that of a known point."""
        prior = self.evidence.solver.prior
        return latent_near(prior, prior.chart.to_vector(pose.rotations, pose.centres)[1], latent, FOLLOWED)

    def finished(self, observation: Observation, sketch: Sketch) -> FrameFit:
        """Fit a frame anew from a sketch of it."""
        return self.evidence.solver.fit(
            observation, sketch.pose, sketch.latent, latent_steps=False, last_steps=LAST_STEPS
        )
