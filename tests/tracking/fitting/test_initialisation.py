"""Proposals: the overlap of coarse silhouettes, by a compiled loop and as defined; which of them are gone on with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from example_rigs import ring

from tracking.fitting import initialisation
from tracking.fitting.initialisation import SPARE, Finder, Hypothesis
from tracking.fitting.solver import RoughFit
from tracking.observations.contour_fill import MeshEdges
from tracking.quads.oriented_quads import QuadPose

#: A closed tetrahedron, outward.
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
CORNERS = np.array([[0.0, 0, 0], [300, 0, 0], [0, 300, 0], [0, 0, 300]])


def test_coarse_overlap_is_that_of_whole_images() -> None:
    """A mesh that is partly outside the image and one that the mask does not meet count like all others."""
    rig = ring(2, distortion=0)
    mesh = MeshEdges.of(FACES)
    width, height = (max(camera.size[k] for camera in rig) // initialisation.COARSE + 1 for k in range(2))
    shifts = np.array([[0.0, 0.0, 0.0], [250.0, 100.0, 0.0], [0.0, -5000.0, 0.0]])
    meshes = np.concatenate([CORNERS + shifts[:, None], 0.3 * CORNERS[None]])
    drawn = np.zeros((len(meshes), len(rig), height, width), np.uint8)
    for m, vertices in enumerate(meshes):
        planes = np.empty((4, len(FACES)))
        initialisation.face_planes(np.ascontiguousarray(vertices.T), mesh.faces, planes)
        for c, camera in enumerate(rig):
            pixels = (camera.project(vertices).T - initialisation.COARSE // 2) / initialisation.COARSE
            image = np.zeros((height, width), np.uint8)
            initialisation.fill_silhouette(
                np.ascontiguousarray(pixels),
                planes,
                mesh,
                camera.packed(),
                image,
                np.zeros(4, bool),
                np.zeros(6, np.int64),
            )
            drawn[m, c] = image
    masks = np.roll(drawn[0], 5, axis=2)
    scores = np.empty(len(meshes))
    columns = np.ascontiguousarray(meshes.transpose(0, 2, 1))
    initialisation._coarse_overlaps(columns, mesh, rig.packed(), masks, np.ones(len(rig), bool), scores)
    both = (drawn & masks).sum(axis=(2, 3)) / (drawn | masks).sum(axis=(2, 3))
    assert scores.tolist() == both.mean(axis=1).tolist()
    assert scores[0] > scores[1] > scores[2] == 0.0


class _Solver:
    """Poses are numbers: each round along the manifold a start comes half way to a height that is written beside it."""

    unit = 1.0

    def __init__(self, heights: dict[int, float]) -> None:
        self.heights, self.rounds = heights, dict.fromkeys(heights, 0)

    def roughly(self, observation: Any, pose: QuadPose, latent: Any, *, rounds: int) -> RoughFit:
        which = int(latent[0])
        self.rounds[which] += rounds
        return RoughFit(pose, latent, self.heights[which] * (1.0 - 0.5 ** self.rounds[which]))

    def fit(self, observation: Any, pose: QuadPose, latent: Any, *, latent_steps: bool = True) -> Any:
        height = self.heights[int(latent[0])]
        return SimpleNamespace(pose=pose, latent=latent, score=height, agreement=height)


def test_of_many_proposals_the_better_ones_after_a_round_go_along_the_manifold_to_its_end() -> None:
    heights = {0: 0.5, 1: 0.6, 2: 0.9, 3: 0.4, 4: 0.8, 5: 0.7, 6: 0.3, 7: 0.2}
    finder = object.__new__(Finder)
    solver: Any = _Solver(heights)
    finder.solver = solver
    apart = [QuadPose(np.eye(3)[None], np.array([[1000.0 * k, 0.0, 0.0]])) for k in heights]
    proposed = [Hypothesis(pose, np.array([float(k)]), 0.1) for k, pose in enumerate(apart)]
    finder.anywhere = lambda observation: iter(proposed)  # type: ignore[method-assign]
    nothing: Any = None
    best, second = finder.rivals(nothing, keep=8, finish=2)
    assert (best.latent[0], second.latent[0]) == (2, 4)
    going = sorted(heights, key=lambda k: -heights[k])[: 2 + SPARE]
    assert solver.rounds == {k: 3 if k in going else 1 for k in heights}
