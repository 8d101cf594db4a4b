"""Outlines of loose cloth: told by what they leave over the frames, and believed less."""

from __future__ import annotations

import numpy as np

from calibration.cameras.ring import ring_rig
from calibration.geometry.transforms import RigidTransform
from tracking.adapting.looseness import outline_looseness
from tracking.adapting.scale_search import make_solver
from tracking.adapting.shape_search import Adaptation
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.shape import BodyShape
from tracking.subjects.skin import loosened, skin_moved
from tracking.subjects.subject import builtin_subject

RIG = ring_rig(
    4, radius=3600.0, height=[1500.0, 900.0], target=(0.0, 0.0, 900.0), size=(656, 490), field_mm=3400.0, seed=3
)


def test_cloth_that_swings_is_loose_and_skin_that_does_not_is_not() -> None:
    human = builtin_subject("human")
    template, quads = human.outline_template, human.cage_rig.quads
    belly = quads.centres[quads.quad_names.index("belly")]
    bump = 30.0 * np.exp(-((np.linalg.norm(template.vertices - belly, axis=1) / 240.0) ** 4))
    solver = make_solver(human, RIG)
    looks, fits = {}, {}
    for frame, (latent, out) in enumerate(zip(human.prior.training_latents[[0, 500]], (1.0, -1.0), strict=True)):
        pose = solver.pose_of(RigidTransform(np.eye(3), np.array([0.0, 0.0, 950.0])), latent)
        body = [skin_moved(human, share * bump).template for share in (0.0, out)]
        seen = [observe(cast_masks(RIG, human.cage_rig.deform(one.binding, pose), one.faces)) for one in body]
        fits[frame] = solver.fit(seen[0], pose, latent, latent_steps=False)
        looks[frame] = seen[1]
    spread = outline_looseness(solver, looks, fits)
    assert spread.shape == bump.shape and np.array_equal(spread, np.round(spread, 2))
    assert np.median(spread[bump > 20.0]) > 30.0 and np.median(spread[bump < 0.1]) == 0.0

    # The fit goes less far after it: the outlines of the belly have less say.
    loose = make_solver(loosened(human, spread), RIG)
    gone = [
        one.fit(looks[0], fits[0].pose, fits[0].latent, latent_steps=False).pose.distance(fits[0].pose)
        for one in (solver, loose)
    ]
    assert gone[1] < 0.7 * gone[0]


def test_limbs_thicker_than_peoples_are_loosely_dressed_whatever_the_size() -> None:
    for body, part, girth, loosely in (
        ("human", "thigh", 1.2, False),
        ("human", "shank", 1.4, True),
        ("human", "belly", 1.4, False),
        ("mouse", "", 1.0, False),
    ):
        plain = BodyShape.uniform(body, 0.8)
        girths = {name: 0.8 * (girth if name == part else 1.0) for name in plain.girths}
        shape = BodyShape(body, plain.lengths, girths)
        none = np.zeros(0)
        found = Adaptation(shape, None, (), (), 0.0, 0.0, "", (), none)
        assert found.loosely_dressed == loosely
