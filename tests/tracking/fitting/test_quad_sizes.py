"""Sizes of quads from meshes in correspondence, and how far outlines lie from the template there."""

from __future__ import annotations

import numpy as np
import trimesh

from calibration.geometry.transforms import rotation_from_vector
from tracking.fitting.quad_sizes import fit_sizes
from tracking.quads.deformation import CageRig, resized
from tracking.quads.oriented_quads import QuadPose, QuadRig, Region
from tracking.quads.template import Template, coarse_template
from tracking.terms.outline_spread import outline_spread


def worm() -> tuple[CageRig, trimesh.Trimesh]:
    """Four quads in a row about a capsule."""
    count = 4
    rig = QuadRig(
        name="worm",
        quad_names=tuple(f"q{k}" for k in range(count)),
        rotations=np.tile(np.eye(3), (count, 1, 1)),
        centres=np.array([[0.0, 0, 60 * k] for k in range(count)]),
        extents=np.full((count, 4), 30.0),
        regions=tuple(Region(f"r{k}", (k, k + 1)) for k in range(count - 1)),
        root=0,
    )
    body = trimesh.creation.capsule(height=110.0, radius=20.0, count=(24, 24))
    body.apply_translation([0, 0, 90.0 - body.centroid[2]])
    return CageRig.build(rig), body


def bent(rig: QuadRig, angle: float) -> QuadPose:
    turns = [rotation_from_vector([angle * k, 0.3 * angle * k, 0]) for k in range(len(rig))]
    centres = [np.zeros(3)]
    for turn in turns[:-1]:
        centres.append(centres[-1] + turn @ [0, 0, 60.0])
    return QuadPose(np.array(turns), np.array(centres))


def test_sizes_shared_by_several_poses_are_found_again() -> None:
    cage_rig, body = worm()
    binding = cage_rig.bind(np.array(body.vertices))
    scales = np.array([[1.0, 1.0], [1.12, 0.95], [0.92, 1.08], [1.0, 1.0]])
    poses = [bent(cage_rig.quads, angle) for angle in (0.0, 0.25, -0.3, 0.45)]
    thick = resized(cage_rig, scales)
    targets = [thick.deform(binding, pose) for pose in poses]
    found, _ = fit_sizes(cage_rig, binding, targets, poses, sigma=0.1, spread=0.3, rigidity=1e-8, rounds=8)
    ratio = found.quads.extents[:, ::2] / cage_rig.quads.extents[:, ::2]
    np.testing.assert_allclose(ratio[1:3], scales[1:3], atol=0.01)
    assert found.cage is cage_rig.cage, "the rest cage, to which the template is bound, stays"


def test_the_spread_is_large_where_meshes_depart_from_the_template() -> None:
    cage_rig, body = worm()
    rest, faces = np.array(body.vertices), np.array(body.faces)
    binding = cage_rig.bind(rest)
    rng = np.random.default_rng(0)
    out = np.array(body.vertex_normals)
    upper = rest[:, 2] > 90
    meshes = [rest + np.where(upper, rng.choice([-3.0, 3.0]), 0.0)[:, None] * out for _ in range(5)]
    spread = outline_spread(cage_rig, rest, faces, binding, [cage_rig.quads.rest] * 5, meshes, radius=5.0)
    np.testing.assert_allclose(np.median(spread[upper]), 3.0, atol=0.1)
    np.testing.assert_allclose(np.median(spread[~upper]), 0.0, atol=1e-6)
    small = coarse_template(cage_rig, Template(rest, faces, binding, spread), vertices=100)
    assert small.spread is not None
    assert np.median(small.spread[small.vertices[:, 2] > 95]) > 2.5
