"""One limb fitted alone: the energy of its outline is its share of the whole energy, and the rest stays where it is."""

from __future__ import annotations

import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.fitting.frame_energy import BodyPart, Evaluation, FrameEnergy
from tracking.fitting.solver import FrameSolver
from tracking.limbs.search import LimbSearch
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender
from tracking.subjects.subject import builtin_subject


@pytest.fixture(scope="module")
def scene() -> tuple[FrameSolver, LimbSearch, Observation, QuadPose]:
    """A mouse at rest before four cameras."""
    mouse = builtin_subject("mouse")
    rest = mouse.cage_rig.quads.rest
    truth = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))
    lens = PinholeLens((320, 320), np.array([[900.0, 0, 160], [0, 900.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), 0.5]) for a in (0.3, 1.9, 3.4, 5.0)]
    rig = Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, truth)
    look = observe(list(cast_masks(rig, surface, mouse.outline_template.faces)))
    solver = make_solver(mouse, rig)
    return solver, LimbMender(solver).search, look, truth


def swung(search: LimbSearch, pose: QuadPose, name: str, angle: float) -> tuple[QuadPose, BodyPart]:
    """A limb turned about the vertical through its first quad, and that limb."""
    limbs = search.evidence.limbs
    limb = limbs.names.index(name)
    chain, turn = limbs.chains[limb], rotation_from_vector(np.array([0.0, 0.0, angle]))
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[chain] = turn @ pose.rotations[chain]
    centres[chain] = pose.centres[chain[0]] + (pose.centres[chain] - pose.centres[chain[0]]) @ turn.T
    return QuadPose(rotations, centres), search._parts[limb]


def test_a_limbs_own_system_is_that_of_its_outline_in_the_whole(
    scene: tuple[FrameSolver, LimbSearch, Observation, QuadPose],
) -> None:
    solver, search, look, truth = scene
    pose, part = swung(search, truth, "tail", 0.3)
    packed = solver._coarse.matcher.pack(look)
    rows = solver._outline_rows(solver._coarse, packed, pose, 60.0)
    residual = float(np.sqrt(np.mean(rows.matches.residuals**2)))
    vertices = solver.cage_rig.deform(solver._coarse.binding, pose)
    assert np.allclose(solver._with_part(part, vertices, pose), vertices, atol=1e-3)
    system = solver._part_system(part, packed, vertices, pose, 60.0, residual)
    ours = part.vertices[rows.matches.pairs[:, 0]]
    own = part.columns[: 6 * len(part.quads)]
    jacobian = rows.jacobian[ours][:, own].astype(float)
    weighted = (rows.root * rows.matches.residuals)[ours]
    assert 20 < ours.sum() < 0.5 * len(ours)
    scale = np.abs(jacobian.T @ jacobian).max()
    assert np.allclose(system.hessian[np.ix_(own, own)], jacobian.T @ jacobian, atol=1e-4 * scale)
    assert np.allclose(system.gradient[own], jacobian.T @ weighted, atol=1e-4 * np.abs(jacobian.T @ weighted).max())
    others = np.setdiff1d(np.arange(len(system.gradient)), own)
    assert not system.hessian[others].any() and not system.gradient[others].any()


def test_a_sketch_brings_a_limb_back_and_moves_nothing_else(
    scene: tuple[FrameSolver, LimbSearch, Observation, QuadPose],
) -> None:
    solver, search, look, truth = scene
    start, part = swung(search, truth, "tail", 0.5)
    fit = solver.fit(look, start, search.latent_of(truth), latent_steps=False, local_steps=False)
    (sketch,) = solver.sketches(look, part, fit, [(start, fit.latent)], lambda pose, others: False)
    rest = np.setdiff1d(np.arange(len(truth.centres)), part.quads)
    assert np.array_equal(sketch.pose.centres[rest], start.centres[rest])
    assert np.array_equal(sketch.pose.rotations[rest], start.rotations[rest])
    tip = part.quads[-1]
    before, after = (np.linalg.norm(one.centres[tip] - truth.centres[tip]) for one in (start, sketch.pose))
    assert after < 0.3 * before
    # The score is that of a fit there, but for the difference between the templates of coarse and fine steps.
    there = solver.fit(look, sketch.pose, sketch.latent, latent_steps=False, local_steps=False)
    assert sketch.score > fit.score and abs(sketch.score - there.score) < 0.01


def test_a_warm_fit_does_not_go_back_to_coarse_steps_for_one_limb(
    scene: tuple[FrameSolver, LimbSearch, Observation, QuadPose], monkeypatch: pytest.MonkeyPatch
) -> None:
    solver, search, look, truth = scene
    latent = search.latent_of(truth)
    scales: list[float] = []
    evaluate = FrameEnergy._evaluate

    def noted(*args: object) -> Evaluation:
        scales.append(float(args[-1]))  # type: ignore[arg-type]
        return evaluate(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(FrameSolver, "_evaluate", noted)
    solver.fit(look, swung(search, truth, "tail", 0.1)[0], latent, latent_steps=False, warm=True)
    assert max(scales) <= solver.settings.warm
    scales.clear()
    away = QuadPose(truth.rotations, truth.centres + np.array([60.0 * solver.unit, 0.0, 0.0]))
    solver.fit(look, away, latent, latent_steps=False, warm=True)
    assert max(scales) == solver.settings.robust[0]
