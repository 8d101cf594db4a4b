"""Quad rigs and their procedural cage: closed, manifold, without crossings, around the template."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import trimesh

from calibration.foundation.errors import InputError
from tracking.quads.cage import build_cage, clearance, crossing_faces
from tracking.quads.oriented_quads import QuadRig, Region, load_quad_rig, save_quad_rig
from tracking.quads.placement import Cut, Enclosure, drawn_in, enclose, outline_at, quads_at_cuts
from tracking.subjects.subject import load_subject


def star_rig(arms: int = 3) -> QuadRig:
    """A hub with arms in the horizontal plane, each arm a tube with an end quad."""
    names, turns, centres, extents, regions = [], [], [], [], []
    for arm in range(arms):
        angle = 2 * np.pi * arm / arms
        out = np.array([np.cos(angle), np.sin(angle), 0.0])
        axes = np.stack([np.array([0.0, 0, 1]), np.cross(out, [0.0, 0, 1]), out], axis=1)
        for label, reach in (("root", 60.0), ("tip", 140.0)):
            names.append(f"{label}_{arm}")
            turns.append(axes)
            centres.append(reach * out)
            extents.append(np.full(4, 25.0))
        regions.append(Region(f"arm_{arm}", (2 * arm, 2 * arm + 1)))
    regions.append(Region("hub", tuple(range(0, 2 * arms, 2))))
    return QuadRig("star", tuple(names), np.array(turns), np.array(centres), np.array(extents), tuple(regions), 0)


@pytest.mark.parametrize("arms", [3, 4, 5])
def test_cage_of_any_tree_is_closed_with_twice_the_faces(arms: int) -> None:
    rig = star_rig(arms)
    cage = build_cage(rig)
    mesh = trimesh.Trimesh(cage.vertices, cage.faces, process=False)
    assert mesh.is_watertight and mesh.is_winding_consistent and mesh.volume > 0
    assert len(cage.faces) == 2 * len(cage.vertices) - 4  # closed, genus 0
    assert not len(crossing_faces(cage.vertices, cage.faces))


def test_tube_volume_is_that_of_the_box() -> None:
    rig = QuadRig(
        "box", ("a", "b"), np.stack([np.eye(3)] * 2), np.array([[0.0, 0, 0], [0, 0, 50]]),
        np.array([[10.0, 10, 20, 20]] * 2), (Region("all", (0, 1)),), 0,
    )  # fmt: skip
    cage = build_cage(rig)
    assert trimesh.Trimesh(cage.vertices, cage.faces, process=False).volume == pytest.approx(20 * 40 * 50)
    depth, _, weights = clearance(np.array([[0.0, 0, 25], [12, 0, 25], [0, 0, 4]]), cage)
    np.testing.assert_allclose(depth, [10, -2, 4], atol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1)


def test_clearance_is_that_of_all_faces_looked_at_one_by_one(rng: np.random.Generator) -> None:
    cage = build_cage(star_rig(3))
    points = rng.uniform(-160.0, 160.0, (300, 3)) * [1.0, 1.0, 0.3]
    depth, face, weights = clearance(points, cage)
    corners = cage.vertices[cage.faces]
    for point, deep, nearest, shares in zip(points, depth, face, weights, strict=True):
        repeated = np.broadcast_to(point, (len(corners), 3))
        away = np.linalg.norm(trimesh.triangles.closest_point(corners, repeated) - point, axis=1)
        assert abs(deep) == pytest.approx(away.min(), abs=1e-9)
        assert np.linalg.norm(shares @ corners[nearest] - point) == pytest.approx(away.min(), abs=1e-9)
    inside = trimesh.Trimesh(cage.vertices, cage.faces, process=False).contains(points)
    np.testing.assert_array_equal(depth > 0, inside)


def test_crossing_cage_is_refused() -> None:
    rig = star_rig(3)
    centres = rig.centres.copy()
    centres[1] = centres[3] - [0, 0, 5]  # the tip of arm 0 lies in the tip of arm 1
    with pytest.raises(InputError, match="crosses itself near quads"):
        build_cage(replace(rig, centres=centres))


def test_quad_turned_inwards_is_refused_by_name() -> None:
    rig = star_rig(3)
    extents = rig.extents.copy()
    extents[0] = 200.0
    with pytest.raises(InputError, match="is not a face of region 'hub'"):
        build_cage(replace(rig, extents=extents))


def test_regions_that_do_not_meet_are_refused() -> None:
    names = ("a", "b", "c", "d")
    centres = np.array([[0.0, 0, 0], [0, 0, 50], [200, 0, 0], [200, 0, 50]])
    rig = QuadRig(
        "two", names, np.stack([np.eye(3)] * 4), centres, np.full((4, 4), 10.0),
        (Region("one", (0, 1)), Region("other", (2, 3))), 0,
    )  # fmt: skip
    with pytest.raises(InputError, match="separate pieces"):
        build_cage(rig)


def test_rig_file_round_trip_and_mistakes(tmp_path: Path) -> None:
    rig = star_rig(4)
    save_quad_rig(rig, tmp_path / "quads.toml")
    back = load_quad_rig(tmp_path / "quads.toml")
    assert back.quad_names == rig.quad_names and back.regions == rig.regions and back.root == rig.root
    np.testing.assert_allclose(back.centres, rig.centres, atol=1e-6)
    np.testing.assert_allclose(back.rotations, rig.rotations, atol=1e-10)
    text = (tmp_path / "quads.toml").read_text()
    (tmp_path / "bad.toml").write_text(text.replace('root = "root_0"', 'root = "rot_0"'))
    with pytest.raises(InputError, match="did you mean 'root_0'"):
        load_quad_rig(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_text(text.replace("extents", "extent"))
    with pytest.raises(InputError, match="lacks 'extents'"):
        load_quad_rig(tmp_path / "bad.toml")


def capsule() -> tuple[np.ndarray, np.ndarray]:
    mesh = trimesh.creation.capsule(height=120, radius=20, count=[24, 24])
    return np.asarray(mesh.vertices), np.asarray(mesh.faces)


def test_outline_of_a_cut_is_the_circle() -> None:
    vertices, faces = capsule()
    loop = outline_at(vertices, faces, np.array([2.0, 1, 60]), np.array([0.0, 0, 1]))
    np.testing.assert_allclose(np.linalg.norm(loop[:, :2], axis=1), 20, atol=0.5)


def test_quads_grow_until_the_cage_holds_the_template() -> None:
    vertices, faces = capsule()
    low, high = vertices[:, 2].min() - 4, vertices[:, 2].max() + 4
    up, width = np.array([0.0, 0, 1]), np.array([1.0, 0, 0])
    cuts = [
        Cut("bottom", np.array([0.0, 0, low]), up, width, np.full(4, 12.0)),
        Cut("middle", np.array([0.0, 0, 0.5 * (low + high)]), up, width),
        Cut("top", np.array([0.0, 0, high]), up, width, np.full(4, 12.0)),
    ]
    rig = quads_at_cuts(
        "capsule", vertices, faces, cuts, [("low", ["bottom", "middle"]), ("high", ["middle", "top"])],
        root="middle", margin=3.0,
    )  # fmt: skip
    assert clearance(vertices, build_cage(rig))[0].min() < 0
    held = enclose(rig, vertices, margin=2.0)
    assert held.depth.min() >= 2.0
    assert (held.grown >= 0).all() and held.grown.max() < 25
    with pytest.raises(InputError, match="no body at the cut"):
        quads_at_cuts(
            "x", vertices, faces, [Cut("far", np.array([0.0, 0, 900]), up, width), cuts[0]],
            [("a", ["far", "bottom"])], root="far", margin=1.0,
        )  # fmt: skip


def test_bad_rigs_are_refused() -> None:
    rig = star_rig(3)
    with pytest.raises(InputError, match="bounds 4 regions; it must bound one or two"):
        replace(rig, regions=(*rig.regions, Region("again", (0, 2)), Region("more", (0, 4))))
    turns = rig.rotations.copy()
    turns[2] = np.diag([1.0, 1, -1])
    with pytest.raises(InputError, match="'root_1' is not a rotation"):
        replace(rig, rotations=turns)


def test_a_joint_near_the_cage_is_drawn_in_and_one_far_outside_refused() -> None:
    """Of 19 points one is five per cent, which of a mesh would be many."""
    subject = load_subject("mouse")
    cage_rig = subject.cage_rig
    points = subject.joint_points.copy()
    corners = cage_rig.cage.vertices[cage_rig.cage.faces[0]]
    out = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    out /= np.linalg.norm(out)

    def enclosed(beyond: float) -> Enclosure:
        points[0] = corners.mean(axis=0) + beyond * out
        depth = clearance(points, cage_rig.cage)[0]
        return Enclosure(cage_rig.quads, cage_rig.cage, depth, np.zeros_like(cage_rig.quads.extents))

    inside, moved = drawn_in(points, enclosed(-0.01), 0.3, what="body")
    assert len(moved) >= 1
    assert clearance(inside, cage_rig.cage)[0].min() > 0.0
    with pytest.raises(InputError, match="cannot be held by the cage"):
        drawn_in(points, enclosed(5.0), 0.3, what="body")
