"""Skeleton tree: forward kinematics, Jacobians, limits, scaling."""

from __future__ import annotations

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.tree.joint_tree import Joint, Site, Skeleton
from skeleton.tree.limits import closest_in_ellipsoid, project_to_ellipsoid


def _arm() -> Skeleton:
    """One joint of each kind in a row, with a side branch and a shift."""
    return Skeleton(
        "arm",
        (
            Joint("root", None, "free", np.array([1.0, 2.0, 3.0])),
            Joint("ball", "root", "ball", np.array([10.0, 0.0, 0.0]), shift_mm=2.0, mass_g=2.0),
            Joint("cross", "ball", "universal", np.array([8.0, 1.0, 0.0]), np.array([[0, 1.0, 0], [0, 0, 1.0]])),
            Joint("weld", "cross", "fixed", np.array([0.0, 5.0, 0.0])),
            Joint("hinge", "weld", "hinge", np.array([5.0, 0.0, 1.0]), np.array([[0.0, 3.0, 4.0]])),
            Joint("side", "ball", "hinge", np.array([0.0, 7.0, 0.0]), np.array([[1.0, 0.0, 0.0]])),
        ),
        (Site("tip", "hinge", np.array([4.0, 0.0, 0.5])),),
        {"hand": "tip", "elbow": "hinge"},
    )


def _exp(vector: np.ndarray) -> np.ndarray:
    """Rotation of a rotation vector by the series of the matrix exponential: slow, plain, independent."""
    x, y, z = vector
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    out, term = np.eye(3), np.eye(3)
    for k in range(1, 60):
        term = term @ skew / k
        out = out + term
    return out


def _reference(skeleton: Skeleton, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Readable forward kinematics of one frame."""
    where: dict[str | None, tuple[np.ndarray, np.ndarray]] = {None: (np.eye(3), np.zeros(3))}
    column = 0
    for joint in skeleton.joints:
        values = q[column : column + len(joint.coordinate_names)]
        column += len(values)
        rotation, position = where[joint.parent]
        offset = joint.offset.copy()
        if joint.kind == "free":
            offset, values = offset + values[:3], values[3:]
        if joint.shift_mm > 0:
            offset, values = offset + values[-3:], values[:-3]
        if joint.kind in ("hinge", "universal"):
            turn = np.eye(3)
            for angle, axis in zip(values, joint.axes, strict=True):
                turn = turn @ _exp(angle * axis)
        else:
            turn = _exp(values) if len(values) else np.eye(3)
        where[joint.name] = (rotation @ turn, position + rotation @ offset)
    return (
        np.array([where[n][1] for n in skeleton.joint_names]),
        np.array([where[n][0] for n in skeleton.joint_names]),
    )


def test_forward_equals_the_readable_reference() -> None:
    skeleton, rng = _arm(), np.random.default_rng(0)
    q = rng.normal(size=(20, skeleton.dimension)) * 1.5
    q[0] = 0.0
    q[1, 3:9] = 1e-7  # near the identity: the series branch
    pose = skeleton.forward(q)
    for t in range(len(q)):
        positions, rotations = _reference(skeleton, q[t])
        np.testing.assert_allclose(pose.positions[t], positions, atol=1e-11)
        np.testing.assert_allclose(pose.rotations[t], rotations, atol=1e-12)


@pytest.mark.parametrize("angle", [0.0, 1e-6, 5e-3, 1.0, np.pi - 1e-6, np.pi, np.pi + 1e-3, 5.0])
def test_jacobian_equals_finite_differences(angle: float) -> None:
    skeleton, rng = _arm(), np.random.default_rng(1)
    q = rng.normal(size=(1, skeleton.dimension))
    for joint in ("root", "ball"):
        axis = rng.normal(size=3)
        q[0, skeleton.columns(joint)] = angle * axis / np.linalg.norm(axis)
    segments = np.array([0, 1, 2, 3, 4, 5, 4])
    offsets = rng.normal(size=(7, 3)) * 3
    points, jacobian = skeleton.jacobian(q, segments, offsets)
    np.testing.assert_allclose(points, skeleton.forward(q).points(segments, offsets), atol=1e-12)
    step = 1e-5
    numeric = np.empty_like(jacobian)
    for d in range(skeleton.dimension):
        ahead, behind = q.copy(), q.copy()
        ahead[0, d] += step
        behind[0, d] -= step
        difference = skeleton.forward(ahead).points(segments, offsets) - skeleton.forward(behind).points(
            segments, offsets
        )
        numeric[..., d] = difference / (2 * step)
    # Central differences of step h on lengths of about 30 mm: error h^2/6 * 30 + rounding / h, below 1e-8 relative.
    assert np.abs(jacobian - numeric).max() <= 1e-6 * max(1.0, np.abs(numeric).max())


def test_names_columns_and_landmarks() -> None:
    skeleton = _arm()
    assert skeleton.coordinate_names[:6] == ("root_tx", "root_ty", "root_tz", "root_rx", "root_ry", "root_rz")
    assert skeleton.coordinate_names[6:12] == ("ball_rx", "ball_ry", "ball_rz", "ball_sx", "ball_sy", "ball_sz")
    assert skeleton.columns("hinge") == slice(14, 15)
    names, points = skeleton.landmarks(skeleton.forward(skeleton.rest()))
    assert names == ("hand", "elbow")
    np.testing.assert_allclose(points[0, 0], [1 + 10 + 8 + 0 + 5 + 4, 2 + 1 + 5, 3 + 1 + 0.5])


def test_ellipsoid_projection_is_the_closest_point() -> None:
    rng = np.random.default_rng(2)
    lower, upper = np.radians([-20.0, -60.0, -10.0]), np.radians([45.0, 15.0, 80.0])
    vectors = rng.normal(size=(40, 3)) * 1.5
    closest = closest_in_ellipsoid(vectors, lower, upper)
    half = np.where(closest >= 0, upper, -lower)
    outside = ((vectors / np.where(vectors >= 0, upper, -lower)) ** 2).sum(1) > 1
    assert outside.sum() > 20
    np.testing.assert_allclose(((closest / half) ** 2).sum(1)[outside], 1.0, atol=1e-12)
    np.testing.assert_array_equal(closest[~outside], vectors[~outside])
    # Brute force over the surface: nothing is nearer (spacing of 400 x 200 samples of an ellipsoid < 1.4 rad wide).
    theta, phi = np.meshgrid(np.linspace(0, np.pi, 200), np.linspace(0, 2 * np.pi, 400))
    unit = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1).reshape(-1, 3)
    surface = unit * np.where(unit >= 0, upper, -lower)
    for vector, point in zip(vectors[outside], closest[outside], strict=True):
        brute = np.linalg.norm(surface - vector, axis=1).min()
        assert np.linalg.norm(point - vector) <= brute + 1e-9
        assert np.linalg.norm(point - vector) >= brute - 0.02


def test_ellipsoid_projection_takes_the_nearer_of_two_equal_rotations() -> None:
    wide = np.radians([-10.0, -170.0, -10.0]), np.radians([10.0, 20.0, 10.0])
    vector = np.array([[0.0, np.radians(200.0), 0.0]])  # the same rotation as -160 degrees, which is valid
    np.testing.assert_allclose(project_to_ellipsoid(vector, *wide), np.radians([[0.0, -160.0, 0.0]]), atol=1e-12)


def test_clamp_and_violation() -> None:
    base = _arm()
    joints = list(base.joints)
    joints[1] = Joint("ball", "root", "ball", np.zeros(3), limits=np.array([[-1, 1], [-0.5, 0.2], [-1, 1]]),
                      ellipsoidal=True, shift_mm=2.0)  # fmt: skip
    joints[4] = Joint("hinge", "weld", "hinge", np.zeros(3), np.array([[0, 1.0, 0]]), np.array([[-0.1, 0.3]]))
    skeleton = Skeleton("limited", tuple(joints))
    q = np.random.default_rng(3).normal(size=(50, skeleton.dimension)) * 2
    clamped = skeleton.clamp(q)
    free = [c for c, n in enumerate(skeleton.coordinate_names) if n.split("_")[0] in ("root", "cross", "side")]
    np.testing.assert_array_equal(clamped[:, free], q[:, free])
    again = skeleton.limit_violation(clamped)
    assert again.angle.max() < 1e-12 and again.shift.max() < 1e-12
    q = skeleton.rest()
    q[0, skeleton.columns("hinge")] = 0.5
    q[0, 9:12] = [0.0, 5.0, 0.0]
    violation = skeleton.limit_violation(q)
    assert violation.angle[0, 4] == pytest.approx(0.2)
    assert violation.shift[0, 1] == pytest.approx(3.0)


def test_continuous_rotation_vectors_pass_pi() -> None:
    skeleton = Skeleton("one", (Joint("root", None, "free", np.zeros(3)),))
    angles = np.linspace(0, 5.0, 200)
    axis = np.array([0.6, 0.0, 0.8])
    q = skeleton.rest(200)
    wrapped = (angles + np.pi) % (2 * np.pi) - np.pi
    q[:, 3:] = wrapped[:, None] * axis
    np.testing.assert_allclose(skeleton.continuous(q)[:, 3:], angles[:, None] * axis, atol=1e-12)
    # Beyond, it goes back by one turn instead of through the singular 2 pi; the rotation stays the same.
    q[:, 3:] = np.linspace(0, 9.0, 200)[:, None] * axis
    out = skeleton.continuous(q)
    assert np.linalg.norm(out[:, 3:], axis=1).max() < 1.75 * np.pi
    np.testing.assert_allclose(skeleton.forward(out).rotations, skeleton.forward(q).rotations, atol=1e-12)


def test_scaled_lengths_change_what_the_segment_carries() -> None:
    skeleton = _arm()
    grown = skeleton.scaled({"ball": 1.1})
    np.testing.assert_allclose(grown.joints[2].offset, skeleton.joints[2].offset * 1.1)
    np.testing.assert_allclose(grown.joints[5].offset, skeleton.joints[5].offset * 1.1)
    np.testing.assert_allclose(grown.joints[4].offset, skeleton.joints[4].offset)
    assert grown.joints[1].mass_g == pytest.approx(2.0 * 1.1**3)


def test_joints_are_ordered_parents_first() -> None:
    joints = (
        Joint("c", "b", "ball", np.ones(3)),
        Joint("a", None, "free", np.ones(3)),
        Joint("b", "a", "ball", np.ones(3)),
    )
    assert Skeleton("s", joints).joint_names == ("a", "b", "c")


def test_bad_trees_are_refused() -> None:
    root = Joint("root", None, "free", np.zeros(3))
    with pytest.raises(InputError, match="cycle"):
        Skeleton("s", (root, Joint("a", "b", "ball", np.zeros(3)), Joint("b", "a", "ball", np.zeros(3))))
    with pytest.raises(InputError, match="unknown parent 'rot'; did you mean 'root'"):
        Skeleton("s", (root, Joint("a", "rot", "ball", np.zeros(3))))
    with pytest.raises(InputError, match="'root' is used twice"):
        Skeleton("s", (root, Joint("root", None, "ball", np.zeros(3))))
    with pytest.raises(InputError, match="axes of a hinge"):
        Joint("a", None, "hinge", np.zeros(3))
    with pytest.raises(InputError, match="lower <= upper"):
        Joint("a", None, "hinge", np.zeros(3), np.array([[0, 1.0, 0]]), np.array([[1.0, 0.0]]))
    with pytest.raises(InputError, match="another skeleton"):
        _arm().forward(np.zeros((3, 5)))
    with pytest.raises(InputError, match="unknown joint"):
        _arm().index("elbw")
