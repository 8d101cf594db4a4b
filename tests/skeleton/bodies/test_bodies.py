"""Built-in bodies: sizes, symmetry, landmarks, limits, sources."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.bodies import BODIES, load_body, skeleton_from_toml

RODENT_LANDMARKS = {
    "nose", "skull_base", "neck", "mid_thorax", "lumbar", "tail_base", "tail_tip", "left_shoulder", "left_elbow",
    "left_wrist", "left_hip", "left_knee", "left_ankle", "right_shoulder", "right_elbow", "right_wrist", "right_hip",
    "right_knee", "right_ankle",
}  # fmt: skip

THORACIC = tuple(f"Thoracic{i}_interim_0" for i in (12, 11, 10, 9))


@pytest.mark.parametrize("name", BODIES)
def test_bodies_are_symmetric_and_stand_on_the_floor(name: str) -> None:
    body = load_body(name)
    names = [*body.joint_names, *(site.name for site in body.sites)]
    points = body.forward(body.rest()).points(*body.points(names))[0]
    assert 0.0 <= points[:, 2].min() < 2.5
    for i, left in enumerate(names):
        if left.startswith("left_"):
            right = points[names.index(left.replace("left_", "right_"))]
            np.testing.assert_allclose(right, points[i] * [1, -1, 1], atol=1e-12)
    violation = body.limit_violation(body.rest())
    assert violation.angle.max() == 0.0


@pytest.mark.parametrize("name", BODIES)
def test_mirrored_coordinates_give_mirrored_poses(name: str) -> None:
    """Angles of the left joints, mirrored onto the right, must be legal and reflect the pose exactly."""
    body = load_body(name)
    rng = np.random.default_rng(0)
    q = body.clamp(rng.normal(size=(5, body.dimension)))
    q[:, :6] = 0.0
    mirrored = q.copy()
    turn = np.array([-1.0, 1.0, -1.0])
    for joint in body.joints[1:]:
        other = (
            joint.name.replace("left_", "right_")
            if joint.name.startswith("left_")
            else joint.name.replace("right_", "left_")
        )
        source, target = body.columns(other), body.columns(joint.name)
        if joint.kind == "ball":
            mirrored[:, target] = q[:, source] * turn
        elif other != joint.name:
            mirrored[:, target] = q[:, source]
        else:  # the tail: pitch stays, yaw changes sign
            mirrored[:, target] = q[:, source] * [1.0, -1.0]
        if joint.shift_mm > 0:
            start, mine = (body.packed.shifts[body.index(n)] for n in (other, joint.name))
            mirrored[:, mine : mine + 3] = q[:, start : start + 3] * [1, -1, 1]
    assert body.limit_violation(mirrored).angle.max() < 1e-9
    pose, reflected = body.forward(q), body.forward(mirrored)
    for i, name_i in enumerate(body.joint_names):
        swapped = name_i.replace("left_", "R").replace("right_", "left_").replace("R", "right_")
        np.testing.assert_allclose(
            reflected.positions[:, body.index(swapped)], pose.positions[:, i] * [1, -1, 1], atol=1e-9
        )


def test_sizes() -> None:
    def lengths(name: str) -> tuple[float, float]:
        body = load_body(name)
        order = ["tail_1", "pelvis", "lumbar_2", "lumbar_3", "thoracic_1", "thoracic_2", "thoracic_3"]
        order += ["cervical_1", "cervical_2", "skull", "nose"]
        points = body.forward(body.rest()).points(*body.points(order))[0]
        return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum()), body.mass_g

    spine, mass = lengths("mouse")
    assert 85 <= spine <= 95 and 18 <= mass <= 22
    spine, mass = lengths("rat")
    assert 180 <= spine <= 210 and 200 <= mass <= 300
    human = load_body("human")
    top = human.forward(human.rest()).points(*human.points(["head_top"]))[0, 0, 2]
    assert 1740 <= top <= 1760 and 70_000 <= human.mass_g <= 80_000


def test_landmarks() -> None:
    assert set(load_body("mouse").landmark_names) == RODENT_LANDMARKS
    assert set(load_body("rat").landmark_names) == RODENT_LANDMARKS
    assert len(load_body("human").landmark_names) == 15


@pytest.mark.parametrize("name", BODIES)
def test_every_length_and_limit_names_its_source(name: str) -> None:
    body = load_body(name)
    assert len(body.source) > 200
    for joint in body.joints:
        assert joint.source, joint.name
        if joint.kind != "free":
            assert np.isfinite(joint.bounds).all(), joint.name


def test_bad_files_say_what_is_wrong() -> None:
    with pytest.raises(InputError, match="unknown body 'mose'; did you mean 'mouse'"):
        load_body("mose")
    with pytest.raises(InputError, match="not TOML"):
        skeleton_from_toml("[[joint", "x.toml")
    with pytest.raises(InputError, match="unknown key 'ofset'; did you mean 'offset'"):
        skeleton_from_toml('[[joint]]\nname="a"\nkind="free"\nofset=[0,0,0]', "x.toml")
    with pytest.raises(InputError, match="'kind' is missing"):
        skeleton_from_toml('[[joint]]\nname="a"\noffset=[0,0,0]', "x.toml")
    with pytest.raises(InputError, match="mirror = true needs"):
        skeleton_from_toml('[[joint]]\nname="a"\nkind="free"\noffset=[0,0,0]\nmirror=true', "x.toml")


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("body", "file", "bones"),
    [
        (
            "rat",
            "rat_model/rodent.xml",
            {"left_knee": "lower_leg_L", "left_ankle": "foot_L", "left_toes": "toe_L", "left_elbow": "lower_arm_L"},
        ),
        (
            "mouse",
            "rodent_mocap/models/mouse/mouse_with_meshes.xml",
            {"lumbar_3": ("Lumbar4_interim_0", "Lumbar3_interim_0"), "thoracic_2": THORACIC},
        ),
    ],
)
def test_lengths_are_near_published_models(
    shared_data: Path, body: str, file: str, bones: dict[str, str | tuple[str, ...]]
) -> None:
    """Offsets of our joints against the same bones of the MuJoCo models: within 25 %."""
    skeleton = load_body(body)
    root = ElementTree.parse(shared_data / file).getroot()
    places = {
        node.get("name", ""): np.array([float(x) for x in node.get("pos", "0 0 0").split()]) * 1000
        for node in root.iter("body")
    }
    for joint, names in bones.items():
        ours = float(np.linalg.norm(skeleton.joints[skeleton.index(joint)].offset))
        chain = (names,) if isinstance(names, str) else names
        prefix = "" if body == "rat" else "mouse__"
        theirs = float(np.linalg.norm(sum(places[prefix + name] for name in chain)))
        assert ours == pytest.approx(theirs, rel=0.25), joint


def test_a_person_may_crouch_with_the_knees_apart() -> None:
    body = load_body("human")
    crouched = body.rest()
    for side, out in (("left", 1.0), ("right", -1.0)):
        # The thigh lifted by 115 degrees, spread by 45 and turned outwards by 30.
        crouched[0, body.columns(f"{side}_hip")] = np.radians([45.0 * out, -115.0, 30.0 * out])
        crouched[0, body.columns(f"{side}_knee")] = np.radians(155.0)
    assert body.limit_violation(crouched).angle.max() == 0
