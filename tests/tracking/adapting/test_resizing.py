"""A size that was far off is found once more in all frames."""

from __future__ import annotations

import numpy as np

from calibration.cameras.ring import ring_rig
from calibration.geometry.transforms import RigidTransform
from tracking.adapting.scale_search import make_solver
from tracking.adapting.shape_search import _resized_bare
from tracking.fitting.settings import Settings
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.subject import builtin_subject, scaled_subject

RIG = ring_rig(
    4, radius=3600.0, height=[1500.0, 900.0], target=(0.0, 0.0, 900.0), size=(656, 490), field_mm=3400.0, seed=3
)


def test_the_size_of_a_child_is_found_from_fits_of_a_far_larger_body() -> None:
    human = builtin_subject("human")
    child, large = (scaled_subject(human, scale) for scale in (0.82, 0.96))
    solver, wrong = make_solver(child, RIG), make_solver(large, RIG)
    looks, fits = {}, {}
    for frame, latent in enumerate(human.prior.training_latents[[0, 500]]):
        pose = solver.pose_of(RigidTransform(np.eye(3), np.array([0.0, 0.0, 780.0])), latent)
        looks[frame] = observe(cast_masks(RIG, solver.deform(pose), child.outline_template.faces))
        fits[frame] = wrong.fit(looks[frame], pose, latent, latent_steps=False)
    scale, found = _resized_bare(human, 0.96, RIG, looks, fits, Settings())
    assert abs(scale - 0.82) < 0.03
    assert all(found[frame].agreement > fits[frame].agreement + 0.03 for frame in fits)
