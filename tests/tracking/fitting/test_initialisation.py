"""Proposals: the overlap of coarse silhouettes, by a compiled loop and as it is defined."""

from __future__ import annotations

import numpy as np
from example_rigs import ring

from tracking.fitting import initialisation
from tracking.observations.contour_fill import MeshEdges

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
        for c, camera in enumerate(rig):
            pixels = (camera.project(vertices) - initialisation.COARSE // 2) / initialisation.COARSE
            image = np.zeros((height, width), np.uint8)
            initialisation.fill_silhouette(
                pixels, mesh.faces, mesh.edges, mesh.sides, image, np.zeros(4, bool), np.zeros(6, np.int64)
            )
            drawn[m, c] = image
    masks = np.roll(drawn[0], 5, axis=2)
    scores = np.empty(len(meshes))
    initialisation._coarse_overlaps(
        meshes, mesh.faces, mesh.edges, mesh.sides, rig.packed(), masks, np.ones(len(rig), bool), scores
    )
    both = (drawn & masks).sum(axis=(2, 3)) / (drawn | masks).sum(axis=(2, 3))
    assert scores.tolist() == both.mean(axis=1).tolist()
    assert scores[0] > scores[1] > scores[2] == 0.0
