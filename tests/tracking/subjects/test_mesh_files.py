"""Meshes of other programs: order of files, units and axes, joined vertices, what is closed and what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import trimesh

from calibration.foundation.errors import InputError
from tracking.subjects.mesh_files import mesh_paths, mesh_volume, read_mesh, require_closed


def box(path: Path) -> Path:
    """Write a box of 1 x 2 x 3 units, y up, with its corner at the origin."""
    mesh = trimesh.creation.box(extents=(1.0, 3.0, 2.0))
    mesh.apply_translation((0.5, 1.5, 1.0))
    mesh.export(path)
    return path


def test_files_come_in_natural_order(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        box(tmp_path / f"frame_{number}.ply")
    (tmp_path / "notes.txt").write_text("not a mesh")
    assert [path.stem for path in mesh_paths(tmp_path)] == ["frame_1", "frame_2", "frame_10"]
    box(tmp_path / "frame_1.obj")
    with pytest.raises(InputError, match="several kinds"):
        mesh_paths(tmp_path)


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl", "glb"])
def test_units_and_axes_are_brought_to_mm_and_z_up(tmp_path: Path, suffix: str) -> None:
    vertices, faces = read_mesh(box(tmp_path / f"box.{suffix}"), unit_mm=10.0, up="y")
    # y, 3 units high, is the vertical; STL holds separate triangles, whose corners are joined again.
    assert len(vertices) == 8 and len(faces) == 12
    np.testing.assert_allclose(np.ptp(vertices, axis=0), [20.0, 10.0, 30.0], atol=1e-5)
    assert mesh_volume(vertices, faces) == pytest.approx(6000.0, rel=1e-6)
    assert require_closed(vertices, faces, "box") is faces


def test_a_mirrored_mesh_is_turned_outwards(tmp_path: Path) -> None:
    vertices, faces = read_mesh(box(tmp_path / "box.ply"))
    turned = require_closed(vertices, faces[:, ::-1], "box")
    np.testing.assert_array_equal(turned, faces)


def test_open_and_broken_meshes_are_refused(tmp_path: Path) -> None:
    vertices, faces = read_mesh(box(tmp_path / "box.ply"))
    with pytest.raises(InputError, match="not closed: 3 edges"):
        require_closed(vertices, faces[1:], "scan.ply")
    turned = faces.copy()
    turned[0] = turned[0, ::-1]
    with pytest.raises(InputError, match="opposite ways"):
        require_closed(vertices, turned, "scan.ply")
    (tmp_path / "bad.ply").write_bytes(b"ply\nformat ascii 1.0\nelement vertex")
    with pytest.raises(InputError, match=r"bad\.ply"):
        read_mesh(tmp_path / "bad.ply")
    with pytest.raises(InputError, match="not a mesh file"):
        read_mesh(tmp_path / "scan.mp4")
    with pytest.raises(InputError, match="no such folder"):
        mesh_paths(tmp_path / "nowhere")
