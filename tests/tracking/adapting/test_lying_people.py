"""A person who lies, and is smaller than the built-in one: found from silhouettes alone."""

from __future__ import annotations

import numpy as np

from calibration.cameras.ring import ring_rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from tracking.adapting.scale_search import find_scale_and_poses, make_solver
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.subject import builtin_subject, scaled_subject

UP = np.array([0.0, 0.0, 1.0])
RIG = ring_rig(
    4, radius=3600.0, height=[1500.0, 1700.0], target=(0.0, 0.0, 300.0), size=(656, 490), field_mm=3000.0, seed=3
)


def test_a_child_on_its_back_is_found() -> None:
    human = builtin_subject("human")
    child = scaled_subject(human, 0.75)
    solver, rest = make_solver(child, RIG), child.cage_rig.quads
    on_the_back = rotation_from_vector(np.array([0.0, -np.pi / 2, 0.0])) @ rest.rotations[rest.root]
    turned = rotation_from_vector(UP * 0.7) @ on_the_back
    latent = solver.prior.training_latents[300]
    pose = solver.pose_of(RigidTransform(turned, np.array([0.0, 0.0, 150.0])), latent)
    template = child.outline_template
    seen = observe(cast_masks(RIG, child.cage_rig.deform(template.binding, pose), template.faces))

    def look(frame: int) -> Observation:
        return seen

    scale, (found,) = find_scale_and_poses(human, RIG, look, [0], up=UP, spreads=(0.05,))
    assert abs(scale - 0.75) < 0.05 and found.agreement > 0.9
    assert found.pose.distance(pose) < 30.0
