"""Actors: closed skin, rigid paws, soft trunk, markers, beads, bones, sampling."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from calibration.geometry.meshes import vertex_normals
from skeleton.actors.actor import Actor, build_actor, sample_actor, thickened
from skeleton.actors.meshing import edges_of, mesh_volume, project
from skeleton.actors.shapes import bind_pose, field, field_and_gradient, load_flesh, shapes_from_tables
from skeleton.actors.shipped_meshes import made_mesh, shipped_mesh
from skeleton.actors.skinning import dual_quaternions, skin_frames
from skeleton.actors.tissue import volumes
from skeleton.bodies import BODIES, load_body
from skeleton.tree.joint_tree import Pose


def _closed(faces: np.ndarray) -> bool:
    """Every directed edge occurs once, and once the other way round."""
    a, b = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    n = int(faces.max()) + 1
    forth, back = np.sort(a * n + b), np.sort(b * n + a)
    return bool((np.diff(forth) > 0).all() and (forth == back).all())


@pytest.mark.parametrize("body", BODIES)
def test_the_shipped_mesh_is_that_of_the_flesh(body: str) -> None:
    """Else make it anew: ``python -m skeleton.actors.shipped_meshes``, then ``tracking.subjects.shipped_templates``."""
    (vertices, faces), (made, made_faces) = shipped_mesh(body), made_mesh(body)
    assert np.array_equal(faces, made_faces)
    assert np.abs(vertices - made).max() < 1e-6 * np.ptp(vertices)


def test_points_moved_onto_flesh_are_left_alone_once_they_are_there() -> None:
    skeleton, flesh = load_body("mouse"), load_flesh("mouse")
    shapes = shapes_from_tables(flesh.skin, skeleton, np.ones(len(skeleton.joints)), np.ones(len(flesh.skin)))
    packed, cell = shapes.posed(bind_pose(skeleton, flesh)), flesh.voxel_mm
    start = build_actor("mouse").bind_vertices[::20] + np.random.default_rng(1).normal(0, 0.5 * cell, 3)
    points = project(start, packed, cell, steps=8)
    every = start
    for _ in range(8):  # all of them, again and again
        value, slope = field_and_gradient(every, packed, 0.02 * cell)
        step = -value[:, None] * slope / np.maximum((slope**2).sum(axis=1), 0.05)[:, None]
        length = np.linalg.norm(step, axis=1, keepdims=True)
        every = every + step * np.minimum(1.0, 0.5 * cell / np.maximum(length, 1e-12))
    assert np.array_equal(points, every)


def test_the_gradient_of_flesh_is_that_of_its_field() -> None:
    skeleton, flesh = load_body("mouse"), load_flesh("mouse")
    shapes = shapes_from_tables(flesh.skin, skeleton, np.ones(len(skeleton.joints)), np.ones(len(flesh.skin)))
    packed = shapes.posed(bind_pose(skeleton, flesh))
    points = build_actor("mouse").bind_vertices[::50] + np.random.default_rng(0).normal(0, 2, 3)
    value, gradient = field_and_gradient(points, packed, 0.01)
    assert np.array_equal(value, field(points, packed))
    for axis in range(3):
        step = 0.01 * np.eye(3)[axis]
        assert np.array_equal(gradient[:, axis], (field(points + step, packed) - field(points - step, packed)) / 0.02)


@pytest.mark.parametrize("body", BODIES)
def test_skin_is_closed_and_a_sphere_in_topology(body: str) -> None:
    actor = build_actor(body)
    count = len(actor.bind_vertices)
    assert 5_000 <= count <= 10_000
    assert _closed(actor.faces)
    assert count - len(edges_of(actor.faces)) + len(actor.faces) == 2  # Euler: one part, no handle
    assert mesh_volume(actor.bind_vertices, actor.faces) > 0
    # Density of a body is near 1 g/cm3.
    ratio = mesh_volume(actor.rest_vertices, actor.faces) / 1000 / actor.skeleton.mass_g
    assert 0.75 < ratio < 1.2
    # It stands on the floor: what sinks in is less than a paw's thickness.
    low = actor.rest_vertices[:, 2].min()
    size = {"mouse": 1.0, "rat": 2.2, "human": 20.0}[body]
    assert -0.4 * size < low < 0.6 * size


@pytest.mark.parametrize("body", BODIES)
def test_all_actors_of_a_body_share_the_mesh_and_differ_in_shape(body: str) -> None:
    plain, one, two = build_actor(body), sample_actor(body, 1), sample_actor(body, 2)
    again = sample_actor(body, 1)
    np.testing.assert_array_equal(one.bind_vertices, again.bind_vertices)
    np.testing.assert_array_equal(one.faces, plain.faces)
    np.testing.assert_array_equal(one.marker_vertices, plain.marker_vertices)
    assert np.abs(one.length - 1).max() <= 0.08 + 1e-9 and np.abs(one.girth - 1).max() <= 0.10 + 1e-9
    assert np.abs(one.length - two.length).max() > 0.01
    names = list(one.skeleton.joint_names)
    left, right = one.length[names.index("left_hip")], one.length[names.index("right_hip")]
    assert left != right
    # The moved mesh keeps its faces the right way round and lies on the subject's own flesh.
    agree = (vertex_normals(one.bind_vertices, one.faces) * vertex_normals(plain.bind_vertices, one.faces)).sum(1)
    assert agree.min() > 0.3
    flesh = load_flesh(body)
    rng = np.random.default_rng([1, 77])
    wobble = np.exp(0.015 * np.clip(rng.normal(size=len(flesh.skin)), -2, 2))
    owners = np.array([one.skeleton.index(table["segment"]) for table in flesh.skin])
    shapes = shapes_from_tables(flesh.skin, one.skeleton, one.length, one.girth[owners] * wobble)
    residual = np.abs(field(one.bind_vertices, shapes.posed(one.bind)))
    assert np.percentile(residual, 99) < 0.05 * flesh.voxel_mm


def _bent(actor: Actor, seed: int, spread: float) -> Pose:
    rng = np.random.default_rng(seed)
    q = actor.skeleton.clamp(rng.normal(size=(6, actor.skeleton.dimension)) * spread)
    q[:, :3] = rng.normal(size=(6, 3)) * 50
    return actor.skeleton.forward(q)


def test_a_thickened_actor_is_nearly_the_one_built_so() -> None:
    plain = build_actor("mouse", lengths=1.04, girth=1.04)
    girth = dict.fromkeys(plain.skeleton.joint_names, 1.04) | {"left_knee": 1.1, "right_knee": 1.1}
    normals = vertex_normals(plain.bind_vertices, plain.faces)
    quick, built = (
        np.sum((actor.bind_vertices - plain.bind_vertices) * normals, axis=1)
        for actor in (thickened(plain, [girth])[0], build_actor("mouse", lengths=1.04, girth=girth))
    )
    assert np.abs(built).max() > 0.1  # mm
    assert np.sqrt(np.mean((quick - built) ** 2)) < 0.06 * np.sqrt(np.mean(built**2))


def test_dual_quaternions_of_one_motion_are_that_motion() -> None:
    rng = np.random.default_rng(0)
    from calibration.geometry.transforms import rotation_from_vector

    points, normals = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    turn = rotation_from_vector(rng.normal(size=(4, 3)))
    shift = rng.normal(size=(4, 3))
    motions = np.repeat(dual_quaternions(turn, shift)[:, None], 3, axis=1)
    segments = rng.integers(0, 3, size=(50, 2))
    weights = np.tile([0.7, 0.3], (50, 1))
    out, turned = np.empty((4, 50, 3)), np.empty((4, 50, 3))
    skin_frames(points[None], normals, segments, weights, motions, out, turned)
    np.testing.assert_allclose(out, np.einsum("tij,vj->tvi", turn, points) + shift[:, None], atol=1e-12)
    np.testing.assert_allclose(turned, np.einsum("tij,vj->tvi", turn, normals), atol=1e-12)


@pytest.mark.parametrize("body", BODIES)
def test_skin_follows_a_rigid_motion_exactly(body: str) -> None:
    actor = build_actor(body)
    q = actor.skeleton.rest(2)
    q[1, :6] = [120.0, -40.0, 5.0, 0.3, -0.2, 1.5]
    pose = actor.skeleton.forward(q)
    skin = actor.skin(pose)
    local = (skin[1] - pose.positions[1, 0]) @ pose.rotations[1, 0]
    np.testing.assert_allclose(local, skin[0] - pose.positions[0, 0], atol=1e-6)


@pytest.mark.parametrize("body", BODIES)
def test_paws_are_rigid_and_trunk_skin_slides(body: str) -> None:
    """Skin over the last foot segment stays put to 0.2 mm (human 2); trunk and thigh skin slides by millimetres."""
    actor = build_actor(body)
    pose = _bent(actor, 3, 0.25)
    skin = actor.skin(pose)
    plain, _ = actor._skinned(pose)
    moved = np.linalg.norm(skin - plain, axis=2).max(axis=0)
    scale = {"mouse": 1.0, "rat": 2.16, "human": 12.0}[body]
    for joint in ("left_toes", "right_toes", "left_wrist"):
        paw = (actor.segments[:, 0] == actor.skeleton.index(joint)) & (actor.weights[:, 0] > 0.9)
        assert paw.sum() > 20
        assert moved[paw].max() < 0.2 * scale
    trunk = "lumbar_2" if body != "human" else "lumbar"
    soft = actor.segments[:, 0] == actor.skeleton.index(trunk)
    assert moved[soft].max() > 0.3 * scale
    assert moved.max() < 6.0 * scale


@pytest.mark.parametrize("body", BODIES)
def test_volume_stays_within_five_percent_when_bending(body: str) -> None:
    actor = build_actor(body)
    skin = actor.skin(_bent(actor, 5, 0.25))
    rest = mesh_volume(actor.rest_vertices, actor.faces)
    assert np.abs(volumes(skin, actor.faces) / rest - 1).max() < 0.05


def test_breath_moves_the_chest_and_comes_back() -> None:
    actor = build_actor("mouse")
    pose = actor.skeleton.forward(actor.skeleton.rest(3))
    period = 1 / actor.tissue.breath_hz
    still = actor.skin(pose)
    breathing = actor.skin(pose, np.array([0.0, 0.25, 1.0]) * period)
    moved = np.linalg.norm(breathing - still, axis=2).max(axis=1)
    assert 0.1 < moved[1] < 1.0
    np.testing.assert_allclose(breathing[2], breathing[0], atol=1e-12)
    with pytest.raises(InputError, match="time_s must be"):
        actor.skin(pose, np.zeros(2))


@pytest.mark.parametrize("body", BODIES)
def test_bones_are_closed_and_inside_the_skin(body: str) -> None:
    actor = build_actor(body)
    assert len(actor.bones) >= 20
    flesh = load_flesh(body)
    ones = np.ones(len(actor.skeleton.joints))
    shapes = shapes_from_tables(flesh.skin, actor.skeleton, ones, np.ones(len(flesh.skin)))
    packed = shapes.posed(actor.bind)
    outside = total = 0
    for bone in actor.bones:
        assert _closed(bone.faces), bone.name
        assert mesh_volume(bone.vertices, bone.faces) > 0
        depth = field(bone.posed(actor.bind)[0], packed)
        outside += int((depth > 0).sum())
        total += len(depth)
    assert outside / total < 0.01


@pytest.mark.parametrize("body", BODIES)
def test_markers_and_beads(body: str) -> None:
    actor = build_actor(body)
    names, vertices = actor.virtual_markers
    assert len(set(names)) == len(names) >= 40 and len(set(vertices.tolist())) == len(names)
    rest = actor.skeleton.forward(actor.skeleton.rest())
    for name, vertex in zip(names, vertices, strict=True):
        if name.startswith("left_"):
            y = actor.rest_vertices[vertex, 1]
            other = actor.rest_vertices[vertices[names.index(name.replace("left_", "right_"))], 1]
            assert y > 0 > other, name
    beads = actor.implanted_beads
    assert beads.positions(rest).shape == (1, len(beads.names), 3)


def test_bad_input() -> None:
    with pytest.raises(InputError, match="unknown body"):
        build_actor("cat")
    with pytest.raises(InputError, match="factors must be between"):
        build_actor("mouse", girth=5.0)
    with pytest.raises(InputError, match="unknown joint"):
        build_actor("mouse", lengths={"left_hipp": 1.1})
    mouse, human = build_actor("mouse"), build_actor("human")
    with pytest.raises(InputError, match="another skeleton"):
        mouse.skin(human.skeleton.forward(human.skeleton.rest()))
