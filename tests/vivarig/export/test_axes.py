"""What exported files say of the vertical, and bones that the body does not have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from example_rigs import ring

from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig, camera_of_world
from calibration.geometry.transforms import RigidTransform
from vivarig.export.motions import axes_in_words, up_axis
from vivarig.xray.triangulate import unused_bones


def findings(rig: Rig) -> Any:
    """Results of a recording of which only the rig matters here."""
    return SimpleNamespace(recording=SimpleNamespace(rig=rig, need_rig=lambda: rig))


def test_a_rig_without_a_floor_is_not_called_z_up() -> None:
    standing = ring(3)
    assert camera_of_world(standing) is None
    assert up_axis(findings(standing)) == "z" and axes_in_words(findings(standing)) == "mm, z up"
    first = standing[0]
    assert isinstance(first, LensCamera)
    back = first.camera_from_world.inverse()
    moved = Rig(tuple(LensCamera(c.name, c.lens, c.camera_from_world @ back) for c in standing))  # type: ignore[attr-defined]
    assert isinstance(moved[0], LensCamera) and isinstance(moved[0].camera_from_world, RigidTransform)
    assert camera_of_world(moved) == "cam1"
    assert up_axis(findings(moved)) == "" and "not z up: the rig has no floor" in axes_in_words(findings(moved))


def test_bones_that_the_body_lacks_are_said() -> None:
    assert unused_bones({"left_hip": ["a"]}, "mouse") == "" and unused_bones(None, "mouse") == ""
    said = unused_bones({"left_hip": ["a"], "femur_l": ["b", "c"]}, "mouse")
    assert "femur_l is no segment of the mouse" in said
    assert unused_bones({"femur_l": ["b"]}, "my_subject") == ""
