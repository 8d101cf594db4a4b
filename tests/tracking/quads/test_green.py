"""Green coordinates: laws of the potentials, exactness under similarities, and a quadrature reference."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from tracking.quads.deformation import CageRig
from tracking.quads.green import green_along, green_coordinates, green_slopes
from tracking.quads.oriented_quads import QuadPose, QuadRig, Region


def lumpy_ball(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    ball = trimesh.creation.icosphere(subdivisions=1, radius=100.0)
    rng = np.random.default_rng(seed)
    return ball.vertices + rng.normal(0, 4, ball.vertices.shape), np.array(ball.faces)


def inner_points(count: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(count, 3))
    return way / np.linalg.norm(way, axis=1, keepdims=True) * 75 * rng.random((count, 1)) ** (1 / 3)


def unit_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    n = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    return n / np.linalg.norm(n, axis=1, keepdims=True)


def test_coordinates_sum_to_one_and_reproduce_the_point() -> None:
    vertices, faces = lumpy_ball()
    points = inner_points(200)
    phi, psi = green_coordinates(points, vertices, faces)
    assert np.abs(phi.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(phi @ vertices + psi @ unit_normals(vertices, faces) - points).max() < 1e-9


def test_outside_the_vertex_coordinates_sum_to_zero() -> None:
    vertices, faces = lumpy_ball()
    phi, _ = green_coordinates(np.array([[300.0, 0, 0], [0, -180.0, 20]]), vertices, faces)
    assert np.abs(phi.sum(axis=1)).max() < 1e-12


def test_coordinates_against_quadrature_of_the_layer_potentials() -> None:
    """psi = 1/4pi int 1/R, phi = 1/4pi int hat (xi - eta).n / R^3, on a face cut into 128^2 small triangles."""
    vertices = np.array([[0.0, 0, 0], [60, 0, 0], [0, 50, 10], [10, 10, 70]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    eta = np.array([[15.0, 12, 20]])
    phi, psi = green_coordinates(eta, vertices, faces)
    steps = 128
    i, j = np.meshgrid(np.arange(steps), np.arange(steps), indexing="ij")
    up = i + j < steps
    down = i + j < steps - 1
    bary = np.concatenate(
        [
            np.stack([(i[up] + 1 / 3) / steps, (j[up] + 1 / 3) / steps], axis=1),
            np.stack([(i[down] + 2 / 3) / steps, (j[down] + 2 / 3) / steps], axis=1),
        ]
    )
    weights = np.column_stack([1 - bary.sum(axis=1), bary])
    want_phi, want_psi = np.zeros(4), np.zeros(4)
    for f, face in enumerate(faces):
        corner = vertices[face]
        normal = np.cross(corner[1] - corner[0], corner[2] - corner[0])
        area = 0.5 * np.linalg.norm(normal)
        normal /= 2 * area
        away = weights @ corner - eta
        distance = np.linalg.norm(away, axis=1)
        want_psi[f] = area * np.mean(1 / distance) / (4 * np.pi)
        want_phi[face] += area * np.mean(weights * (away @ normal / distance**3)[:, None], axis=0) / (4 * np.pi)
    np.testing.assert_allclose(psi[0], want_psi, rtol=2e-5)
    np.testing.assert_allclose(phi[0], want_phi, rtol=2e-4, atol=1e-6)


def test_slopes_against_finite_differences() -> None:
    vertices, faces = lumpy_ball()
    points = inner_points(40)
    rows, slopes = green_slopes(points, vertices, faces)
    assert np.array_equal(rows, np.hstack(green_coordinates(points, vertices, faces)))
    step = 1e-4 * float(np.ptp(vertices))
    for axis, slope in zip(step * np.eye(3), slopes, strict=True):
        ahead, behind = (np.hstack(green_coordinates(points + way * axis, vertices, faces)) for way in (1, -1))
        assert np.abs((ahead - behind) / (2 * step) - slope).max() < 1e-5 * np.abs(slope).max()


def test_the_change_along_a_way_is_that_of_the_slopes() -> None:
    vertices, faces = lumpy_ball()
    points, ways = inner_points(40), inner_points(40, seed=2)
    rows, slopes = green_slopes(points, vertices, faces)
    along, moves = green_along(points, ways, vertices, faces)
    assert np.array_equal(along, rows)
    np.testing.assert_allclose(moves, np.einsum("pi,ipc->pc", ways, slopes), rtol=0, atol=1e-13 * np.abs(moves).max())


def test_wrong_shapes_are_refused() -> None:
    vertices, faces = lumpy_ball()
    with pytest.raises(InputError, match=r"must be \(n, 3\)"):
        green_coordinates(np.zeros((4, 2)), vertices, faces)


def tube_rig() -> QuadRig:
    """Three square quads along z, the middle one turned a little."""
    turn = rotation_from_vector(np.array([[0.0, 0, 0], [0.1, 0.2, 0.3], [0, 0, 0]]))
    centres = np.array([[0.0, 0, 0], [3, 1, 80], [0, 0, 160]])
    regions = (Region("low", (0, 1)), Region("high", (1, 2)))
    return QuadRig("tube", ("a", "b", "c"), turn, centres, np.full((3, 4), 30.0), regions, 0)


def posed(rig: QuadRig, seed: int) -> QuadPose:
    rng = np.random.default_rng(seed)
    turn = rotation_from_vector(rng.normal(0, 0.3, (len(rig), 3)))
    return QuadPose(turn @ rig.rotations, rig.centres + rng.normal(0, 12, (len(rig), 3)))


def test_deformation_is_the_identity_at_rest_and_follows_similarities_exactly() -> None:
    rig = tube_rig()
    cage_rig = CageRig.build(rig)
    points = np.array([[0.0, 0, 20], [8, -9, 75], [-5, 5, 140]])
    binding = cage_rig.bind(points, margin=5.0)
    np.testing.assert_allclose(cage_rig.deform(binding, rig.rest), points, atol=1e-9)
    turn = rotation_from_vector(np.array([0.4, -0.9, 1.3]))
    shift = np.array([200.0, -50, 30])
    moved = QuadPose(turn @ rig.rotations, rig.centres @ turn.T + shift)
    np.testing.assert_allclose(cage_rig.deform(binding, moved), points @ turn.T + shift, atol=1e-9)
    # Uniform scale: the carriers scale as vertices and stretched normals do.
    carriers = cage_rig.carriers(rig.rest)
    grown = QuadRig(rig.name, rig.quad_names, rig.rotations, 1.7 * rig.centres, 1.7 * rig.extents, rig.regions, 0)
    corners = grown.posed_corners(grown.rest).reshape(-1, 3)
    scaled = np.concatenate([corners, 1.7 * carriers[len(corners) :]])
    np.testing.assert_allclose(binding @ scaled, 1.7 * points, atol=1e-9)


def test_derivatives_by_quads_against_finite_differences() -> None:
    rig = tube_rig()
    cage_rig = CageRig.build(rig)
    binding = cage_rig.bind(np.array([[0.0, 0, 20], [8, -9, 75], [-5, 5, 140]]))
    pose = posed(rig, 3)
    derivatives = cage_rig.derivatives(pose)
    jacobian = cage_rig.point_jacobian(binding, derivatives)
    step = 1e-5
    for number in range(6 * len(rig)):
        change = np.zeros((len(rig), 6))
        change.flat[number] = step
        ahead = QuadPose(rotation_from_vector(change[:, :3]) @ pose.rotations, pose.centres + change[:, 3:])
        back = QuadPose(rotation_from_vector(-change[:, :3]) @ pose.rotations, pose.centres - change[:, 3:])
        numeric = (cage_rig.deform(binding, ahead) - cage_rig.deform(binding, back)) / (2 * step)
        np.testing.assert_allclose(jacobian[..., number], numeric, atol=2e-6)
    # One pair comes twice, another turned round: derived once, or not mixed up.
    directions = np.array([[1.0, 0, 0], [0, 0.6, 0.8], [0.5, -0.5, 0.7], [0.8, 0, 0.6], [0, 1.0, 0]])
    pairs, scale = np.array([[2, 1], [0, 0], [1, 2], [2, 0], [1, 2]]), np.array([1.0, 2.0, 0.5, 0.7, 3.0])
    along = cage_rig.outline_jacobian(cage_rig.by_carrier(binding), pairs, directions, scale, derivatives)
    middle = scale[:, None, None] * 0.5 * (jacobian[pairs[:, 0]] + jacobian[pairs[:, 1]])
    # Single precision of numbers up to 100
    np.testing.assert_allclose(along, np.einsum("pi,pik->pk", directions, middle), atol=1e-4)
    # By a few numbers of which all quads depend: the same, chained.
    ways = np.random.default_rng(5).normal(size=(6 * len(rig), 4))
    chained = cage_rig.outline_jacobian_along(binding.astype(np.float32), pairs, directions, scale, derivatives, ways)
    np.testing.assert_allclose(chained, along @ ways, atol=1e-3)


def squashed(rig: QuadRig, height: float) -> QuadPose:
    """The pose whose second quad lies flat at ``height`` above the first: the faces between them are slivers."""
    centres = rig.centres.copy()
    centres[1] = centres[0] + height * rig.rotations[0][:, 2]
    return QuadPose(rig.rotations[[0, 0, 2]], centres)


def test_a_face_that_turns_over_takes_its_points_along_without_a_jump() -> None:
    """At height 0 the faces of the lower tube are lines: their normals must pass through zero, not flip."""
    rig = tube_rig()
    cage_rig = CageRig.build(rig)
    binding = cage_rig.bind(np.array([[5.0, 12.0, 40.0]]))
    step = 1e-6
    jump = cage_rig.deform(binding, squashed(rig, step)) - cage_rig.deform(binding, squashed(rig, -step))
    assert np.abs(jump).max() < 1e-3
    jacobian = cage_rig.point_jacobian(binding, cage_rig.derivatives(squashed(rig, 2.0)))[0]
    above, below = (cage_rig.deform(binding, squashed(rig, 2.0 + step))[0] for step in (1e-4, -1e-4))
    np.testing.assert_allclose(jacobian[:, 9:12] @ rig.rotations[0][:, 2], (above - below) / 2e-4, atol=1e-5)


def test_a_point_outside_the_cage_is_refused_with_the_quads_at_fault() -> None:
    cage_rig = CageRig.build(tube_rig())
    with pytest.raises(InputError, match=r"1 of 2 markers are not inside the cage by 5 mm .*enlarge"):
        cage_rig.bind(np.array([[0.0, 0, 20], [40.0, 0, 80]]), margin=5.0, what="markers")
