"""The skin of a subject: moved vertex by vertex, and found from silhouettes of a body with a bump."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from calibration.cameras.ring import ring_rig
from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from tracking.adapting.scale_search import make_solver
from tracking.adapting.skin_search import fit_skin
from tracking.fitting.settings import Settings
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.shape import BodyShape
from tracking.subjects.skin import SkinMover, skin_moved, subject_as_told
from tracking.subjects.subject import Subject, builtin_subject

RIG = ring_rig(
    6, radius=3600.0, height=[1500.0, 900.0], target=(0.0, 0.0, 900.0), size=(656, 490), field_mm=3400.0, seed=3
)


@cache
def human() -> Subject:
    return builtin_subject("human")


def bump() -> Floats:
    """A belly 25 mm out, smooth."""
    template = human().outline_template
    middle = human().cage_rig.quads.centres[human().cage_rig.quads.quad_names.index("belly")]
    return np.asarray(25.0 * np.exp(-((np.linalg.norm(template.vertices - middle, axis=1) / 240.0) ** 4)))


def test_the_skin_goes_out_along_its_normals_and_turns_with_the_quads() -> None:
    subject = skin_moved(human(), bump())
    rest = subject.cage_rig.quads.rest
    out = np.linalg.norm(subject.outline_template.vertices - human().outline_template.vertices, axis=1)
    assert np.mean(np.abs(out - bump()) < 0.01) > 0.99  # a few find no anchor and stay
    for template in (subject.template, subject.outline_template, subject.step_template):
        assert np.abs(subject.cage_rig.deform(template.binding, rest) - template.vertices).max() < 1e-4
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    turned = type(rest)(turn @ rest.rotations, rest.centres @ turn.T)
    moved = subject.cage_rig.deform(subject.template.binding, turned)
    assert np.abs(moved - subject.template.vertices @ turn.T).max() < 1e-4


def test_a_bump_is_found_from_outlines() -> None:
    subject, true = human(), skin_moved(human(), bump())
    solver = make_solver(subject, RIG)
    looks, fits = {}, {}
    for frame, latent in enumerate(subject.prior.training_latents[[0, 500]]):
        pose = solver.pose_of(RigidTransform(np.eye(3), np.array([0.0, 0.0, 950.0])), latent)
        mesh = subject.cage_rig.deform(true.template.binding, pose)
        looks[frame] = observe(cast_masks(RIG, mesh, true.template.faces))
        fits[frame] = solver.fit(looks[frame], pose, latent, latent_steps=False)
    out, after = fit_skin(SkinMover(subject), RIG, looks, fits, Settings())
    assert np.array_equal(out, np.round(out, 2))
    wanted = bump()
    inside, far = wanted > 20.0, wanted < 0.1
    # The quads of the belly, which may give way too, have taken up most of it.
    assert np.median(out[inside]) > 5.0 and np.sqrt(np.mean(out[far] ** 2)) < 2.0
    assert min(after[k].agreement - fits[k].agreement for k in looks) > 0.003


def test_what_the_results_tell_is_what_was_tracked_with() -> None:
    shape = BodyShape.uniform("human", 1.02)
    table = {"body": "human", "lengths": shape.lengths, "girths": shape.girths, "skin": bump().tolist()}
    told = subject_as_told(human(), table)
    plain = subject_as_told(human(), table | {"skin": None})
    assert np.array_equal(skin_moved(plain, bump()).template.binding, told.template.binding)
    assert plain.outline_template.spread is None
    loose = subject_as_told(human(), table | {"spread": bump().tolist()})
    assert np.array_equal(loose.outline_template.spread, bump()) and loose.step_template.spread is not None
    with pytest.raises(InputError, match="a skin of 3 vertices"):
        subject_as_told(human(), table | {"skin": [0.0, 0.0, 0.0]})
