"""Searches for limbs that cannot pay: one that comes back is ended, one that was in vain is not done again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.fitting.solver import FrameFit, Sketch
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender
from tracking.subjects.subject import builtin_subject


def rig() -> Rig:
    """Four cameras around the origin, 0.6 m away."""
    lens = PinholeLens((320, 320), np.array([[900.0, 0, 160], [0, 900.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), 0.5]) for a in (0.3, 1.9, 3.4, 5.0)]
    return Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))


def turned(pose: QuadPose, chain: np.ndarray, angle: float) -> QuadPose:
    """A limb's quads turned about the vertical through its first."""
    turn = rotation_from_vector(np.array([0.0, 0.0, angle]))
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[chain] = turn @ pose.rotations[chain]
    centres[chain] = pose.centres[chain[0]] + (pose.centres[chain] - pose.centres[chain[0]]) @ turn.T
    return QuadPose(rotations, centres)


def test_a_start_that_comes_back_is_not_gone_on_with_and_a_limb_that_stayed_is_not_looked_for_again() -> None:
    mouse = builtin_subject("mouse")
    rest = mouse.cage_rig.quads.rest
    truth = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, truth)
    look = observe(list(cast_masks(rig(), surface, mouse.outline_template.faces)))
    solver = make_solver(mouse, rig())
    mender = LimbMender(solver)
    limbs = mender.evidence.limbs
    head, tail = (limbs.names.index(name) for name in ("head", "tail"))
    right = solver.fit(look, truth, mender.search.latent_of(truth), latent_steps=False)
    near = turned(right.pose, limbs.chains[head], 0.2)
    assert mender.search.sketches(look, [near], right, head) == []
    # From where the head is elsewhere, the same start leads to something new.
    aside = replace(right, pose=turned(right.pose, limbs.chains[head], 1.2))
    assert len(mender.search.sketches(look, [near], aside, head)) == 1
    # Of two starts that lead to one place one is gone on with.
    far = turned(right.pose, limbs.chains[head], -1.5)
    beside = turned(right.pose, limbs.chains[head], 0.25)
    assert len(mender.search.sketches(look, [near, beside], aside, head)) == 1
    assert len(mender.search.sketches(look, [far, near], aside, head)) == 2
    # The head and the tail were looked for in vain; then the head was put elsewhere.
    tried = mender._tried_from(right)
    tried.anew.update({head, tail})
    tried.beside[tail].add(right)
    mender._remember(right, aside)
    assert mender._tried_from(aside).anew == {tail} and list(mender._tried_from(aside).beside[tail]) == [right]


def test_a_sketch_that_is_far_worse_is_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    mouse = builtin_subject("mouse")
    rest = mouse.cage_rig.quads.rest
    truth = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, truth)
    look = observe(list(cast_masks(rig(), surface, mouse.outline_template.faces)))
    solver = make_solver(mouse, rig())
    mender = LimbMender(solver)
    limbs = mender.evidence.limbs
    tail = limbs.names.index("tail")
    right = solver.fit(look, truth, mender.search.latent_of(truth), latent_steps=False)
    wrong = solver.fit(
        look, turned(truth, limbs.chains[tail], 2.0), right.latent, local_steps=False, latent_steps=False
    )
    finished: list[Sketch] = []
    finish = mender.search.finished

    def noted(seen: Observation, sketch: Sketch) -> FrameFit:
        finished.append(sketch)
        return finish(seen, sketch)

    monkeypatch.setattr(mender.search, "finished", noted)
    assert mender._found(look, right, tail, [wrong.pose]) is right and not finished
    mended = mender._found(look, wrong, tail, [right.pose])
    assert mended is not wrong and len(finished) == 1
    assert mender._value(look, mended, tail) > mender._value(look, wrong, tail)
