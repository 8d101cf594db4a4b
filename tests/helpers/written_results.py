"""Results that were never computed: a track and a skeleton of known trust, for tests of what shows them."""

from __future__ import annotations

import numpy as np
import trimesh

from calibration.foundation.result_files import create_results, text_array
from calibration.geometry.transforms import quaternion_from_rotation
from capture.recordings.recording import Recording
from skeleton.bodies import load_body
from tracking.sequence.trust import Reason

LIMBS = ("trunk", "left_fore")
DOUBTED = slice(4, 8)
"""Frames in which the left fore limb is hidden."""
LOST = slice(10, 12)
"""Frames in which nothing was tracked."""


def write_results(recording: Recording, frames: int) -> None:
    """Write ``track.h5`` and ``skeleton.h5`` of a mouse in its rest pose that slides along x, 1 mm a frame."""
    body = load_body("mouse")
    rest = body.rest()
    coordinates = np.repeat(np.atleast_2d(rest), frames, axis=0)
    coordinates[:, 0] += np.arange(frames)
    pose = body.forward(coordinates)
    limb_trust, limb_reason = np.zeros((frames, 2), np.uint8), np.zeros((frames, 2), np.uint8)
    limb_trust[DOUBTED, 1], limb_reason[DOUBTED, 1] = 1, int(Reason.HIDDEN)
    limb_trust[LOST], limb_reason[LOST] = 2, int(Reason.TOO_FEW_VIEWS)
    trust, reason = np.zeros(frames, np.uint8), np.zeros(frames, np.uint8)
    trust[LOST], reason[LOST] = 2, int(Reason.TOO_FEW_VIEWS)
    ball = trimesh.creation.icosphere(subdivisions=4, radius=15.0)
    middle = pose.positions.mean(axis=1)
    with create_results(recording.results / "track.h5", stage="track", parameters={"subject": "mouse"}) as file:
        file["reasons"] = text_array([one.name.lower().replace("_", " ") for one in Reason])
        file["trust"], file["reason"], file["limb_trust"], file["limb_reason"] = trust, reason, limb_trust, limb_reason
        file["limb_names"] = text_array(list(LIMBS))
        file["marker_names"] = text_array(["nose", "paw"])
        file["marker_limbs"] = np.array([0, 1], np.uint8)
        file["markers"] = middle[:, None] + np.array([[0.0, 0.0, 0.0], [20.0, 0.0, 0.0]])
        file["marker_sigma"] = np.tile([0.5, 4.0], (frames, 1))
        file["agreement"] = np.where(trust > 0, 0.5, 0.93)
        file["residual"] = np.zeros(frames)
        file["faces"] = ball.faces.astype(np.int32)
        file["vertices"] = (middle[:, None] + ball.vertices).astype(np.float32)
        file["quad_names"] = text_array(["trunk"])
        file["centres"], file["rotations"] = middle[:, None], np.tile(np.eye(3), (frames, 1, 1, 1))
    with create_results(recording.results / "skeleton.h5", stage="skeleton", parameters={}) as file:
        file.attrs["body"], file.attrs["rate_hz"] = "mouse", recording.rate_hz
        file["joint_names"] = text_array(list(body.joint_names))
        file["joint_parents"] = body.parents
        file["joint_offsets"] = np.zeros((len(body.joints), 3))
        file["coordinate_names"] = text_array(list(body.coordinate_names))
        file["positions"], file["coordinates"] = pose.positions, coordinates
        file["rotations"] = quaternion_from_rotation(pose.rotations)
        file["sigma"] = np.full(pose.positions.shape[:2], 0.5)
        file["trust"] = trust
        file["joint_trust"] = np.repeat(trust[:, None], len(body.joints), axis=1)
        names, places = body.landmarks(pose)
        file["landmark_names"], file["landmarks"] = text_array(list(names)), places
        file["landmark_joints"] = np.zeros(len(names), np.int64)
