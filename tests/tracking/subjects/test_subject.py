"""Built-in subjects: their quads on any actor, scaling, and the folder they are saved to."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.actors.actor import build_actor
from skeleton.bodies import BODIES
from tracking.quads.attachment import carry_quads
from tracking.quads.body_rig import MARGIN, place_body_rig
from tracking.quads.cage import build_cage
from tracking.subjects.shipped_templates import made_extents, made_templates, shipped_extents, shipped_templates
from tracking.subjects.subject import Subject, builtin_subject, load_subject, save_subject, scaled_subject


@cache
def mouse() -> Subject:
    return builtin_subject("mouse")


def test_cage_holds_the_template_and_carries_it_unchanged_at_rest() -> None:
    subject = mouse()
    rig = subject.cage_rig.quads
    np.testing.assert_allclose(
        subject.cage_rig.deform(subject.template.binding, rig.rest), subject.template.vertices, atol=1e-8
    )
    assert len(subject.outline_template.vertices) < len(subject.template.vertices)
    assert subject.prior.quad_names == rig.quad_names
    assert "nose" in subject.joint_names and "nose_tip" in subject.marker_names


@pytest.mark.parametrize("body", BODIES)
def test_shipped_templates_are_the_thinned_mesh(body: str) -> None:
    """Else make them anew: ``python -m tracking.subjects.shipped_templates``."""
    for (vertices, faces), (made, made_faces) in zip(shipped_templates(body), made_templates(body), strict=True):
        assert np.array_equal(faces, made_faces)
        assert np.abs(vertices - made).max() < 1e-6 * np.ptp(vertices)


#: Of how many mm the processor decides. Which face is nearest to a point turns by last digits, and those by the kernels
#: that BLAS takes for it: OPENBLAS_CORETYPE=Haswell and SkylakeX grow the rat's quads to 0.084 mm of each other.
BY_PROCESSOR = {"rat": 0.1}


@pytest.mark.parametrize("body", BODIES)
def test_shipped_quads_are_those_grown_around_the_body(body: str) -> None:
    """Else make them anew: ``python -m tracking.subjects.shipped_templates``."""
    made = made_extents(body)
    np.testing.assert_allclose(shipped_extents(body), made, rtol=0, atol=1e-6 * made.max() + BY_PROCESSOR.get(body, 0))


def test_quads_attached_at_rest_come_back_in_the_cages_pose() -> None:
    placed = place_body_rig(build_actor("mouse"))
    carried = carry_quads(placed.attachment, placed.pose)
    np.testing.assert_allclose(carried.centres[0], placed.enclosure.rig.centres, atol=1e-9)
    np.testing.assert_allclose(carried.rotations[0], placed.enclosure.rig.rotations, atol=1e-9)


def test_cuts_follow_an_actor_of_other_lengths_and_girths() -> None:
    actor = build_actor("mouse", lengths=1.05, girth=0.95)
    placed = place_body_rig(actor)
    size = float(np.linalg.norm(np.ptp(placed.vertices, axis=0)))
    assert placed.enclosure.depth.min() > 0.3 * MARGIN * size
    build_cage(placed.enclosure.rig)


def test_a_scaled_subject_deforms_as_the_original_times_the_scale() -> None:
    subject = mouse()
    grown = scaled_subject(subject, 1.2)
    np.testing.assert_allclose(
        grown.cage_rig.deform(grown.template.binding, grown.cage_rig.quads.rest),
        1.2 * subject.template.vertices,
        atol=1e-8,
    )
    latent = subject.prior.training_latents[0]
    np.testing.assert_allclose(grown.prior.mean(latent), subject.prior.mean(latent))
    assert grown.prior.chart.length_scale == pytest.approx(1.2 * subject.prior.chart.length_scale)


def test_subject_folder_round_trip(tmp_path: Path) -> None:
    subject = mouse()
    save_subject(subject, tmp_path / "m7")
    back = load_subject("m7", base=tmp_path)
    assert back.marker_names == subject.marker_names and back.body == "mouse"
    np.testing.assert_allclose(back.template.vertices, subject.template.vertices)
    # The cage may split a flat side along its other diagonal; what it carries stays.
    carried = back.cage_rig.deform(back.joint_binding, back.cage_rig.quads.rest)
    np.testing.assert_allclose(carried, subject.joint_points, atol=1e-6)


def test_unknown_subjects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown subject 'moose'"):
        load_subject("moose", base=tmp_path)
    with pytest.raises(InputError, match="did you mean 'mouse'"):
        builtin_subject("mose")


def test_a_stout_body_gets_a_cage_that_survives_its_file(tmp_path: Path) -> None:
    # Cutting this body where the table says buries the hips' quads in its flanks: they come from the slim one.
    girth = dict.fromkeys(("pelvis", "lumbar_1", "lumbar_2", "lumbar_3"), 1.35)
    stout = builtin_subject("mouse", girth=girth)
    slim = mouse()
    width = np.ptp(stout.template.vertices[slim.marker_vertices], axis=0)[1]
    assert width > 0.9 * np.ptp(slim.template.vertices[slim.marker_vertices], axis=0)[1]
    save_subject(stout, tmp_path / "stout")
    back = load_subject(str(tmp_path / "stout"))
    # Flat sides may be split along their other diagonal; what they carry stays inside and comes back.
    np.testing.assert_allclose(
        back.cage_rig.deform(back.template.binding, back.cage_rig.quads.rest), stout.template.vertices, atol=1e-4
    )


def test_lengths_of_a_subject_come_back_from_its_file(tmp_path: Path) -> None:
    subject = scaled_subject(mouse(), 1.1)
    save_subject(subject, tmp_path / "big")
    back = load_subject(str(tmp_path / "big"))
    assert back.bones.lengths["left_knee"] == pytest.approx(1.1)
    np.testing.assert_allclose(back.bones.pose.positions, 1.1 * mouse().bones.pose.positions, atol=1e-3)
    np.testing.assert_allclose(back.bones.skeleton.landmarks(back.bones.pose)[1][0], subject.joint_points, atol=1e-3)
