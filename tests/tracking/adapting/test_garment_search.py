"""Whether a person wears a skirt, and which, from silhouettes that have one."""

from __future__ import annotations

from functools import cache

import numpy as np

from calibration.cameras.ring import ring_rig
from calibration.geometry.transforms import RigidTransform
from tracking.adapting.garment_search import find_skirt, measured_skirt
from tracking.adapting.scale_search import make_solver
from tracking.adapting.shape_search import adapt_shape
from tracking.fitting.settings import Settings
from tracking.fitting.solver import FrameFit
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.subjects.garments import Skirt, dressed
from tracking.subjects.subject import Subject, builtin_subject

UP = np.array([0.0, 0.0, 1.0])
RIG = ring_rig(
    4, radius=3600.0, height=[1500.0, 1700.0], target=(0.0, 0.0, 900.0), size=(656, 490), field_mm=3400.0, seed=3
)
WORN = Skirt(0.5, 0.22, 0.34, depth=0.9, follows=0.4)


@cache
def human() -> Subject:
    return builtin_subject("human")


@cache
def filmed(skirt: Skirt | None) -> tuple[dict[int, Observation], dict[int, FrameFit]]:
    """A walker in some frames, in a skirt, and fits with her pose in them."""
    solver, subject = make_solver(human(), RIG), dressed(human(), skirt)
    template = subject.outline_template
    latents = solver.prior.training_latents[[0, 300, 700, 1100, 1500, 1900]]
    looks, fits = {}, {}
    for frame, latent in enumerate(latents):
        rest = solver.pose_of(_standing(), latent)
        looks[frame] = observe(cast_masks(RIG, subject.cage_rig.deform(template.binding, rest), template.faces))
        fits[frame] = solver.fit(looks[frame], rest, latent, latent_steps=False, last_steps=1)
    return looks, fits


def _standing() -> RigidTransform:
    rig = human().cage_rig.quads
    return RigidTransform(rig.rotations[rig.root], rig.centres[rig.root])


def test_a_skirt_is_found_and_measured() -> None:
    looks, fits = filmed(WORN)
    skirt = find_skirt(human(), RIG, looks, fits)
    assert skirt is not None and abs(skirt.length - WORN.length) <= 0.15
    for _ in range(3):
        skirt = measured_skirt(human(), skirt, RIG, looks, fits, Settings())
    assert abs(skirt.length - WORN.length) < 0.05 and abs(skirt.hem - WORN.hem) < 0.04


def test_a_bare_person_wears_none() -> None:
    looks, fits = filmed(None)
    assert find_skirt(human(), RIG, looks, fits) is None


def test_a_skirt_is_no_thigh() -> None:
    """The body found below a skirt has its own girths; taken for flesh, the skirt made thighs of 1.6 and more."""
    looks, _ = filmed(WORN)
    found = adapt_shape(human(), RIG, lambda frame: looks[frame], sorted(looks), scale=1.0, up=UP)
    assert found.skirt is not None and abs(found.skirt.length - WORN.length) < 0.12
    assert found.shape.girths["thigh"] < 1.25
    assert found.subject is not None and found.subject.outline_template.flesh is not None
