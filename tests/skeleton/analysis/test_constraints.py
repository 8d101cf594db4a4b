"""Geometric constraints: plants of a walk that becomes a run and a walk again, hinges, points, joints of bones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.arrays import Floats
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import rotation_from_vector
from skeleton.analysis.constraints import Template, find_constraints, instant_motion
from skeleton.analysis.joint_types import joint_motion

WALK, RUN = 1.0, 8.0


def walk_run_walk(seed: int = 4) -> tuple[Floats, list[tuple[int, int]]]:
    """Return 350 frames at 25 Hz of a foot that goes 17 m: four plants of a walk and six of a run, less still."""
    rng = np.random.default_rng(seed)
    plants = [(34, 42), (66, 74), (98, 106), (140, 145), (156, 161), (172, 177), (188, 193), (204, 209), (220, 225)]
    plants.append((300, 308))
    soft = [WALK] * 3 + [RUN] * 6 + [WALK]
    stops = np.linspace(0.0, 17000.0, len(plants) + 1)[1:]
    place, tilt = np.zeros((350, 3)), np.zeros(350)
    before, where = 0, 0.0
    for (start, end), stop, loose in zip(plants, stops, soft, strict=True):
        share = np.linspace(0.0, 1.0, start - before + 1)[:-1]
        place[before:start, 0] = where + (stop - where) * share
        place[before:start, 2] = 200.0 * np.sin(np.pi * share)
        tilt[before:start] = 0.8 * np.sin(2 * np.pi * share + 0.4) - 0.8 * np.sin(0.4) + 0.3 * share
        place[start:end, 0] = stop
        place[start:end] += loose * rng.uniform(-0.5, 0.5, (end - start, 3))
        tilt[start:end] = 0.3 + 0.004 * loose * rng.uniform(-0.5, 0.5, end - start)
        before, where = end, stop
    share = np.linspace(0.0, 1.0, 350 - before)
    place[before:, 0], place[before:, 2], tilt[before:] = (
        where + 900.0 * share,
        200.0 * np.sin(np.pi * share),
        0.8 * share,
    )
    poses = np.broadcast_to(np.eye(4), (350, 4, 4)).copy()
    poses[:, :3, :3] = rotation_from_vector(np.stack([0 * tilt, tilt, 0 * tilt], axis=1))
    poses[:, :3, 3] = place
    return poses, plants


def _found(poses: Floats, **options: object) -> list[tuple[int, int]]:
    some = find_constraints(poses, 25.0, **options)  # type: ignore[arg-type]
    return [(one.first, one.last + 1) for one in some if one.kind == "space"]


def _within(found: list[tuple[int, int]], plants: list[tuple[int, int]], frames: int = 1) -> bool:
    return len(found) == len(plants) and all(
        abs(a - c) <= frames and abs(b - d) <= frames for (a, b), (c, d) in zip(found, plants, strict=True)
    )


def test_dynamic_thresholds_find_all_plants_of_walk_and_run() -> None:
    poses, plants = walk_run_walk()
    walk, run, last = Template("space", 34, 41), Template("space", 156, 160), Template("space", 300, 307)
    assert _within(_found(poses, templates=[walk, run, last]), plants)
    assert _within(_found(poses), plants)  # and without any template
    one = _found(poses, templates=[walk])
    walks = [plants[k] for k in (0, 1, 2, 9)]
    assert _within(one, walks)  # a walk's template alone misses the run


def test_a_template_of_four_steps_serves_all_stances_of_its_kind() -> None:
    templates = [Template("space", 34, 41), Template("space", 156, 160), Template("space", 300, 307)]
    for seed in range(5, 9):  # its own steps alone would lose stances of seeds 5 and 6
        poses, plants = walk_run_walk(seed)
        assert _within(_found(poses, templates=templates), plants)


def test_the_step_in_the_parts_own_frame_does_not_care_where_it_is() -> None:
    poses, _ = walk_run_walk()
    moved = poses.copy()
    moved[:, 0, 3] += 17000.0
    templates = [Template("space", 34, 41), Template("space", 156, 160), Template("space", 300, 307)]
    assert _found(moved, templates=templates) == _found(poses, templates=templates)
    # The global form's residual grows with the distance: one threshold no longer serves.
    near = instant_motion(poses, local=False).shift[35:40].max()
    far = instant_motion(moved, local=False).shift[35:40].max()
    assert far > 3.0 * near
    assert len(_found(poses, templates=[Template("space", 34, 41)], local=False)) < 4


def test_a_mislabelled_template_is_rejected() -> None:
    poses, plants = walk_run_walk()
    wrong = [Template("space", 98, 111)]  # five frames of swing in it
    walks = [plants[k] for k in (0, 1, 2, 9)]
    robust, naive = _found(poses, templates=wrong), _found(poses, templates=wrong, robust=False)
    assert _within([one for one in robust if one[0] < 130 or one[0] > 250], walks)
    assert all(any(a - 1 <= c and d <= b + 1 for a, b in plants) for c, d in robust)  # nothing beyond true plants
    assert not _within(naive, walks, 3)


def test_a_lid_turns_about_its_hinge_and_a_stick_about_its_point() -> None:
    angle = 0.9 * np.sin(np.linspace(0.0, 3.0, 60))
    hinge, offset = np.array([10.0, 20.0, 30.0]), np.array([100.0, 0.0, 0.0])
    lid = np.broadcast_to(np.eye(4), (60, 4, 4)).copy()
    lid[:, :3, :3] = rotation_from_vector(np.stack([0 * angle, angle, 0 * angle], axis=1))
    lid[:, :3, 3] = hinge + lid[:, :3, :3] @ offset
    found = find_constraints(lid, 25.0, templates=[Template("line", 2, 20)])
    line = max(found, key=lambda one: one.last - one.first)
    assert line.kind == "line" and abs(line.axis[1]) > 0.999
    np.testing.assert_allclose(line.place[[0, 2]], hinge[[0, 2]], atol=0.5)
    stick = lid.copy()
    t = np.linspace(0.0, 9.0, 60)
    stick[:, :3, :3] = rotation_from_vector(
        np.stack([0.6 * np.sin(t), 0.6 * np.cos(1.3 * t), 0.4 * np.sin(0.7 * t)], 1)
    )
    stick[:, :3, 3] = hinge + stick[:, :3, :3] @ np.array([0.0, 0.0, 50.0])
    found = find_constraints(stick, 25.0, templates=[Template("line", 2, 57)], robust=False)
    assert any(one.kind == "point" and np.linalg.norm(one.place - hinge) < 1.0 for one in found)


@pytest.mark.realdata
def test_the_jaw_is_a_hinge_that_slides(shared_data: Path) -> None:
    bones = []
    for name in ("RigidBody001_Upper", "RigidBody002_lower"):
        rows = np.genfromtxt(shared_data / "jaw_xray" / f"{name}_transformation.csv", delimiter=",", skip_header=1)
        poses = np.swapaxes(rows.reshape(-1, 4, 4), 1, 2)  # row-vector form, cm
        poses[:, :3, 3] *= 10.0
        bones.append(poses)
    joint = joint_motion(*bones)
    assert joint.kind == "hinge" and joint.slides
    assert joint.about_axis > 0.9 and 5.0 < joint.range_deg < 60.0 and 0.5 < joint.slide_mm < 20.0


def test_bad_input() -> None:
    with pytest.raises(InputError, match="finite poses"):
        find_constraints(np.zeros((3, 4, 4)), 25.0)
    with pytest.raises(InputError, match="wanted space or line"):
        find_constraints(np.broadcast_to(np.eye(4), (9, 4, 4)), 25.0, templates=[Template("cone", 0, 4)])
    with pytest.raises(InputError, match="5 frames with both bones"):
        joint_motion(np.full((9, 4, 4), np.nan), np.full((9, 4, 4), np.nan))
