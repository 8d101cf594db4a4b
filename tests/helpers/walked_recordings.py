"""Recordings with a fitted skeleton that walks, made without filming: for tests of tables and statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from calibration.foundation.result_files import create_results, text_array
from calibration.geometry.transforms import quaternion_from_rotation
from skeleton.bodies import load_body
from skeleton.motions import make_motion

FRAMES, RATE = 240, 60.0


def walked_recording(
    place: Path, *, seed: int, size: float = 1.0, body: str = "human", gaits: tuple[str, ...] = ("walk",)
) -> Path:
    """Make a recording of a body of some size that walks, 4 s of each gait, one where the last ended."""
    skeleton = load_body(body).scaled(size)
    coordinates = np.empty((0, skeleton.dimension))
    for gait in gaits:
        motion = make_motion(skeleton, gait, frames=FRAMES, rate_hz=RATE, rng=np.random.default_rng(seed))
        more = motion.coordinates.copy()
        if len(coordinates):
            more[:, :2] += 2.0 * coordinates[-1, :2] - coordinates[-2, :2] - more[0, :2]
        coordinates = np.concatenate([coordinates, more])
    (place / "results").mkdir(parents=True)
    (place / "meshes").mkdir()
    (place / "recording.toml").write_text(
        f'name = "{place.name}"\nrate_hz = {RATE}\nmeshes = "meshes"\n\n[session]\nsubject_id = "{place.name}"\n'
    )
    pose = skeleton.forward(coordinates)
    with create_results(place / "results" / "skeleton.h5", stage="skeleton", parameters={"body": body}) as file:
        file.attrs.update({"body": body, "rate_hz": RATE})
        file["joint_names"] = text_array(list(skeleton.joint_names))
        file["coordinate_names"] = text_array(list(skeleton.coordinate_names))
        file["landmark_names"] = text_array(list(skeleton.landmark_names))
        file["joint_parents"] = skeleton.parents
        file["joint_offsets"] = np.array([joint.offset for joint in skeleton.joints])
        file["coordinates"], file["positions"] = coordinates, pose.positions
        file["rotations"] = quaternion_from_rotation(pose.rotations)
        file["landmarks"] = skeleton.landmarks(pose)[1]
        file["sigma"] = np.ones(pose.positions.shape[:2])
        file["trust"] = np.zeros(len(coordinates), dtype=np.uint8)
    return place
