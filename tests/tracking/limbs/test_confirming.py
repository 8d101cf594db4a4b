"""What one view holds against a rodent's limb counts where others bear it out; what is wrong is still seen to be."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from example_rigs import looking_at_origin

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools
from calibration.geometry.transforms import rotation_from_vector
from tracking.adapting.scale_search import make_solver
from tracking.limbs import confirming
from tracking.limbs.drawing import unexplained
from tracking.limbs.evidence import LimbSight
from tracking.limbs.feet_apart import APART, OUTERMOST
from tracking.observations.contours import observe
from tracking.observations.rasteriser import cast_masks
from tracking.quads.oriented_quads import QuadPose
from tracking.sequence.limb_mending import LimbMender
from tracking.sequence.limb_trust import RODENTS, SHOWN, judge_limbs
from tracking.sequence.track_output import marker_sigma
from tracking.sequence.trust import Trust
from tracking.subjects.subject import Subject, builtin_subject

LEG = "left_hind_limb"


@lru_cache
def rig() -> Rig:
    """Five cameras around the origin, 0.6 m away, at several heights."""
    lens = PinholeLens((320, 320), np.array([[900.0, 0, 160], [0, 900.0, 160], [0, 0, 1]]), np.zeros(5))
    places = [600.0 * np.array([np.cos(a), np.sin(a), h]) for a, h in enumerate((0.3, 0.5, 0.4, 0.6, 1.2))]
    return Rig(tuple(LensCamera(f"cam{k}", lens, looking_at_origin(at)) for k, at in enumerate(places)))


@lru_cache
def scene() -> tuple[Subject, LimbMender, QuadPose, tuple[Bools, ...]]:
    """A mouse at the origin in its pose of rest, and its silhouettes."""
    mouse = builtin_subject("mouse")
    rest = mouse.cage_rig.quads.rest
    pose = QuadPose(rest.rotations, rest.centres - rest.centres.mean(axis=0))
    surface = mouse.cage_rig.deform(mouse.outline_template.binding, pose)
    masks = tuple(cast_masks(rig(), surface, mouse.outline_template.faces))
    return mouse, LimbMender(make_solver(mouse, rig())), pose, masks


def seen(masks: list[Bools], pose: QuadPose) -> tuple[LimbSight, LimbSight]:
    """What each view says of the limbs, and what is borne out."""
    evidence = scene()[1].evidence
    look = observe(masks)
    sight = evidence.sight(look, pose)
    return sight, evidence.borne_out(look, pose, sight)


def drawn_limb(pose: QuadPose, name: str, view: int) -> Bools:
    """The silhouette (H, W) of a limb alone."""
    mouse, mender, *_ = scene()
    template = mouse.outline_template
    owner = mender.evidence.limbs.of_points(template.binding)[template.faces].max(axis=1)
    surface = mouse.cage_rig.deform(template.binding, pose)
    limb = mender.evidence.limbs.names.index(name)
    return cast_masks(rig(), surface, template.faces[owner == limb])[view]


def turned(pose: QuadPose, name: str, turn: np.ndarray) -> QuadPose:
    """A limb turned about its root by a rotation vector."""
    limbs = scene()[1].evidence.limbs
    chain = limbs.chains[limbs.names.index(name)]
    rotation = rotation_from_vector(turn)
    rotations, centres = pose.rotations.copy(), pose.centres.copy()
    rotations[chain] = rotation @ pose.rotations[chain]
    centres[chain] = pose.centres[chain[0]] + (pose.centres[chain] - pose.centres[chain[0]]) @ rotation.T
    return QuadPose(rotations, centres)


def trusted(masks: list[Bools], pose: QuadPose) -> dict[str, bool]:
    """Which limbs are believed in a pose as it is given, by the whole record."""
    _, mender, *_ = scene()
    solver, look = mender.evidence.solver, observe(masks)
    fit = solver.fit(look, scene()[2], mender.search.latent_of(scene()[2]), latent_steps=False, last_steps=0)
    shown = replace(fit, pose=pose, overlap=solver.overlap(look, pose))
    record = mender.record(lambda frame: look, [shown])
    trust, _ = judge_limbs(record, unit=solver.unit, limits=RODENTS)
    return {
        name: bool(level == Trust.TRUSTED) for name, level in zip(mender.evidence.limbs.names, trust[0], strict=True)
    }


def test_shade_in_one_view_is_not_held_against_a_leg_but_something_that_several_see_is() -> None:
    _, mender, pose, masks = scene()
    leg = mender.evidence.limbs.names.index(LEG)
    foot = pose.centres[mender.evidence.limbs.chains[leg][-1]]
    beside = foot + np.array([-6.0, 14.0, 0.0])
    for views, stays in ((1, False), (5, True)):
        changed = [mask.copy() for mask in masks]
        for view in range(views):
            x, y = np.round(rig().cameras[view].project(beside[None])[0]).astype(int)
            changed[view][y - 6 : y + 7, x - 6 : x + 7] = True
        plain, borne_out = seen(changed, pose)
        assert plain.missing[:, :views].max() > 0.1
        assert (borne_out.missing.max() > 0.1) == stays
        assert (borne_out.missing <= plain.missing + 1e-12)[np.isfinite(plain.missing)].all()


def test_a_tail_that_one_view_lacks_is_there_and_one_that_all_but_one_lack_is_not() -> None:
    _, mender, pose, masks = scene()
    tail = mender.evidence.limbs.names.index("tail")
    for lacking, there in (([0], True), ([0, 1, 2, 3], False)):
        changed = [mask & ~drawn_limb(pose, "tail", k) if k in lacking else mask for k, mask in enumerate(masks)]
        plain, borne_out = seen(changed, pose)
        assert plain.outside[tail].max() > 0.2
        assert (borne_out.bad[tail] < RODENTS.doubt) == there


def test_a_foot_that_is_painted_out_of_the_silhouettes_is_not_seen() -> None:
    """A paw drawn up into the belly: only its own place in the silhouettes says that it is not where it stood."""
    mouse, mender, pose, masks = scene()
    evidence, template = mender.evidence, mouse.outline_template
    leg, other = (evidence.limbs.names.index(name) for name in (LEG, "right_hind_limb"))
    foot = np.isin(evidence.limbs.nearest_quads(template.binding), evidence.limbs.chains[leg][-OUTERMOST:])
    own = foot[template.faces].any(axis=1)
    surface = mouse.cage_rig.deform(template.binding, pose)
    rest = cast_masks(rig(), surface, template.faces[~own])
    for lacking, shown in ((0, True), (4, False), (5, False)):
        changed = [rest[k] if k < lacking else mask for k, mask in enumerate(masks)]
        feet = evidence.feet(observe(changed), pose)
        assert (feet[leg] >= SHOWN) == shown and feet[other] >= SHOWN
        assert np.isnan(feet[0])
    assert not trusted(list(rest), pose)[LEG]


def test_points_of_a_body_unlike_the_template_are_as_much_less_sure_as_its_outlines_leave() -> None:
    mouse, mender, pose, masks = scene()
    solver, look = mender.evidence.solver, observe(list(masks))
    fit = solver.fit(look, pose, mender.search.latent_of(pose), latent_steps=False, last_steps=1)
    rows = np.ascontiguousarray(mouse.template.binding[mouse.marker_vertices], np.float64)
    drawn, alike, furry = (
        marker_sigma(rows, mouse, solver, replace(fit, residual=left)) for left in (fit.residual, 0.3, 1.7)
    )
    assert np.allclose(drawn, alike)  # outlines of the template itself leave next to nothing
    assert (furry > 1.2 * 1.7).all() and (drawn < 1.5).all()


@pytest.mark.parametrize(
    ("name", "turn"),
    [
        (LEG, (0.0, 0.0, 0.9)),
        (LEG, (0.9, 0.0, 0.0)),
        ("head", (0.0, 0.0, 0.7)),
        ("head", (0.0, 0.7, 0.0)),
        ("tail", (0.0, 0.0, 0.5)),
    ],
)
def test_a_limb_moved_on_purpose_is_doubted(name: str, turn: tuple[float, ...]) -> None:
    """A paw that is some 15 mm off, a head turned by 40 degrees, a tail that points elsewhere."""
    _, _, pose, masks = scene()
    assert all(trusted(list(masks), pose).values())
    assert not trusted(list(masks), turned(pose, name, np.array(turn)))[name]


def test_a_leg_that_no_silhouette_has_and_an_animal_turned_round_are_doubted() -> None:
    _, mender, pose, masks = scene()
    limbs = mender.evidence.limbs
    others = [name for name in limbs.names if name != LEG]
    without = []
    for view, mask in enumerate(masks):
        rest = np.any([drawn_limb(pose, name, view) for name in others], axis=0)
        without.append(mask & (rest | ~drawn_limb(pose, LEG, view)))
    verdict = trusted(without, pose)
    assert not verdict[LEG] and verdict["head"] and verdict["tail"]
    round_about = rotation_from_vector(np.array([0.0, 0.0, np.pi]))
    middle = pose.centres.mean(axis=0)
    verdict = trusted(
        list(masks), QuadPose(round_about @ pose.rotations, middle + (pose.centres - middle) @ round_about.T)
    )
    assert not any(verdict.values())


def test_lines_of_sight_are_those_of_the_camera() -> None:
    """By brute force: a pixel is met where a point of its ray in the room is in enough of the other silhouettes."""
    mouse, mender, pose, masks = scene()
    evidence = mender.evidence
    changed = [mask.copy() for mask in masks]
    for mask in changed:
        mask[150:190, 100:130] = True
    look = observe(changed)
    drawings = evidence.draw(look, pose)
    tolerance, up = evidence._tolerance, np.array([0.0, 0.0, 1.0])
    vertices = mouse.cage_rig.deform(evidence.solver.coarse.binding, pose)
    sizes = np.array([camera.size for camera in rig()], np.int64)
    box = confirming._around(vertices, up, tolerance)
    views = confirming._Views.of(drawings, evidence.solver.camera_rows, sizes)
    drawing = drawings[0]
    assert drawing is not None
    pixels = unexplained(drawing, tolerance)[0][::7]
    met = confirming._met(
        np.ascontiguousarray(pixels), 0, views.away, views.corners, views.shapes, views.cameras, sizes, box, up,
        tolerance,
    )  # fmt: skip
    origins, ways = rig().cameras[0].rays(pixels)
    wanted = []
    for origin, way in zip(origins, ways, strict=True):
        points = origin + np.arange(450.0, 750.0, 0.5)[:, None] * way
        points = points[((points >= box[0]) & (points <= box[1])).all(axis=1) & (points @ up >= box[2, 0])]
        had = np.zeros(len(points), int)
        for view, one in list(enumerate(drawings))[1:]:
            assert one is not None
            at = np.floor((rig().cameras[view].project(points) - views.corners[view, :2]) / views.corners[view, 2])
            inside = (at >= 0).all(axis=1) & (at < views.shapes[view]).all(axis=1)
            x, y = np.where(inside[:, None], at, 0).astype(int).T
            had += inside & (views.away[view, y, x] <= confirming.SLACK * tolerance)
        wanted.append(bool((had >= 3).any()))
    assert len(pixels) > 20 and 0 < np.mean(wanted) < 1
    # The kernel takes steps of a tolerance and may miss a place that is smaller than that.
    assert not (met & ~np.array(wanted)).any() and np.mean(met == np.array(wanted)) > 0.9


def test_of_a_paw_that_two_feet_share_no_silhouette_says_whose_it_is() -> None:
    """The left fore foot is put beside the left hind foot, which all silhouettes show."""
    _, mender, pose, masks = scene()
    evidence = mender.evidence
    fore, hind = (evidence.limbs.names.index(f"left_{name}_limb") for name in ("fore", "hind"))
    other = evidence.limbs.names.index("right_hind_limb")
    before = evidence.feet(observe(masks), pose)
    assert before[hind] >= SHOWN
    foot, paw = (list(evidence.limbs.chains[leg][-OUTERMOST:]) for leg in (hind, fore))
    for share, shared in ((0.9, True), (1.1, False)):
        centres = pose.centres.copy()
        beside = np.array([0.0, share * APART * evidence.solver.unit, 0.0])
        centres[paw] += centres[foot].mean(axis=0) + beside - centres[paw].mean(axis=0)
        after = evidence.feet(observe(masks), QuadPose(pose.rotations, centres))
        assert (after[hind] == 0 and after[fore] == 0) == shared
        assert after[other] == before[other]
