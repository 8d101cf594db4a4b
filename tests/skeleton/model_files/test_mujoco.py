"""MuJoCo models: joints about their own points, classes, orientation words, real models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from calibration.foundation.errors import InputError
from skeleton.model_files.mujoco import read_mujoco

MODEL = """<mujoco model="arm"><compiler angle="degree"/>
<default><joint axis="0 1 0" limited="true"/><default class="elbow"><joint range="0 120"/></default></default>
<worldbody><body name="upper" pos="0 0 1" euler="0 0 90"><freejoint name="root"/>
  <body name="fore" pos="0.3 0 0" childclass="elbow"><joint name="elbow" pos="-0.1 0 0"/>
    <site name="tip" pos="0.2 0 0"/>
    <body name="hand" pos="0.2 0 0"><joint name="wrist" type="ball" range="0 40"/></body>
  </body></body></worldbody></mujoco>"""


def test_closed_form(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(MODEL)
    model = read_mujoco(tmp_path / "m.xml")
    body = model.body
    assert body.segment_names == ("upper", "fore", "hand")
    assert body.coordinate_names[6:] == ("elbow", "wrist_rx", "wrist_ry", "wrist_rz")
    column = body.coordinate_names.index("elbow")
    assert body.limits.upper[column] == pytest.approx(np.radians(120.0))
    assert body.limits.halves[0] == pytest.approx(np.radians(40.0))
    q = body.rest.copy()
    q[column] = np.pi / 2
    # The body's x points along world y; the elbow turns about the point 0.2 m out, taking x down to -z.
    tip = body.points(q[None], np.array([1]), model.sites.offsets)[0, 0]
    np.testing.assert_allclose(tip, [0.0, 200.0, 1000.0 - 300.0], atol=1e-9)


@pytest.mark.parametrize(
    "change, message",
    [
        (('type="ball"', 'type="screw"'), "unknown type 'screw'"),
        (('childclass="elbow"', 'childclass="knee"'), "unknown default class 'knee'"),
        (('pos="0 0 1"', 'pos="0 1"'), "wanted 3 numbers, got 2"),
        (("<mujoco", "<robot"), "not XML"),
    ],
)
def test_bad_models(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(MODEL.replace(*change))
    with pytest.raises(InputError, match=message):
        read_mujoco(tmp_path / "m.xml")


@pytest.mark.realdata
@pytest.mark.parametrize(
    "path, bodies, coordinates",
    [
        ("rodent_mocap/models/rodent.xml", 66, 73),
        ("rodent_mocap/models/mouse/mouse_with_meshes.xml", 224, 229),
        ("rat_model/rodent.xml", 65, 67),
    ],
)
def test_real_models_and_their_jacobians(shared_data: Path, path: str, bodies: int, coordinates: int) -> None:
    body = read_mujoco(shared_data / path).body
    assert (len(body.segment_names), body.dimension) == (bodies, coordinates)
    rng = np.random.default_rng(3)
    q = 0.1 * rng.normal(size=body.dimension)
    segments, offsets = np.arange(bodies), rng.normal(0.0, 10.0, (bodies, 3))
    _, derivative = body.jacobian(q, segments, offsets)
    for column in rng.choice(body.dimension, 12, replace=False):
        step = np.zeros(body.dimension)
        step[column] = 1e-6
        ahead, _ = body.jacobian(q + step, segments, offsets)
        behind, _ = body.jacobian(q - step, segments, offsets)
        np.testing.assert_allclose((ahead - behind) / 2e-6, derivative[..., column], atol=1e-5)
