"""Meshes as people have them: seams, holes, crumbs, parts that overlap, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from calibration.foundation.errors import InputError
from tracking.own_bodies.mending import mended


def ball(radius: float = 10.0, at: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
    mesh = trimesh.creation.icosphere(subdivisions=3, radius=radius)
    return np.asarray(mesh.vertices) + np.array(at), np.asarray(mesh.faces, np.int64)


def both(*parts: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in parts)])
    faces = [part[1] + start for part, start in zip(parts, starts, strict=False)]
    return np.concatenate([part[0] for part in parts]), np.concatenate(faces)


def is_closed(vertices: np.ndarray, faces: np.ndarray) -> bool:
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    return bool(mesh.is_watertight and mesh.is_winding_consistent and mesh.volume > 0)


def test_a_sound_mesh_stays_as_it_is() -> None:
    vertices, faces = ball()
    found = mended(vertices, faces, "ball")
    assert found.notes == () and np.array_equal(found.vertices, vertices)
    assert np.array_equal(found.kept, np.arange(len(vertices)))


def test_small_holes_are_filled_crumbs_dropped_and_faces_turned() -> None:
    vertices, faces = ball()
    faces = faces[vertices[faces].mean(axis=1)[:, 2] < 9.9]
    faces[::3] = faces[::3, ::-1]
    vertices, faces = both((vertices, faces), ball(0.2, (0.0, 0.0, 12.0)))
    found = mended(vertices, faces, "ball")
    assert is_closed(found.vertices, found.faces)
    assert any("crumbs" in note for note in found.notes) and any("holes filled" in note for note in found.notes)


def test_a_sheet_that_stands_on_the_skin_is_cut_out() -> None:
    vertices, faces = ball()
    fin = np.concatenate([faces[0, :2], [len(vertices)]])
    outer = vertices[faces[0, :2]].mean(axis=0) * 1.1
    found = mended(np.vstack([vertices, outer]), np.vstack([faces, fin]), "ball")
    assert is_closed(found.vertices, found.faces) and "more than two triangles" in found.notes[0]


def test_parts_that_overlap_get_one_skin() -> None:
    found = mended(*both(ball(), ball(6.0, (11.0, 0.0, 0.0))), "two balls")
    assert is_closed(found.vertices, found.faces)
    volume = trimesh.Trimesh(found.vertices, found.faces, process=False).volume
    # The union of the balls, less than their sum.
    assert volume == pytest.approx(4 / 3 * np.pi * 1216 - 288, rel=0.06)


def test_two_bodies_and_large_holes_are_refused_with_their_place() -> None:
    with pytest.raises(InputError, match=r"two bodies, one of .* give one body alone"):
        mended(*both(ball(), ball(8.0, (40.0, 0.0, 0.0))), "two")
    vertices, faces = ball()
    with pytest.raises(InputError, match=r"hole \d+ mm across at \[.*\] mm"):
        mended(vertices, faces[vertices[faces].mean(axis=1)[:, 2] < 0.0], "half")
