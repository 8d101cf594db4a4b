"""Ears of a body: larger ones stand higher and further out from the head.

The outer ear is the one part of a rodent's head that tells it turned about its long axis, and the one that differs most
between animals of one size: the built-in mouse's are those of a small one, a grown black mouse's stand 20 mm apart.
"""

from __future__ import annotations

import numpy as np

from calibration.foundation.arrays import Floats
from skeleton.actors.actor import Actor
from skeleton.tree.joint_tree import Pose

__all__ = ["EARS", "with_ears"]

EARS = "ears"
"""Name of the part whose factor this is, among the girths of a shape."""
BASE = np.array([1.0, 3.0, 2.8])
"""Inner edge of the left ear's root on the built-in head, in the skull's frame, mm."""
MIDDLE, REACH = np.array([1.5, 6.9, 6.2]), np.array([7.0, 7.5, 7.5])
"""Its middle, and how far from there skin is the ear's, mm."""
ROOT = 2.0
"""Distance above and beside its root over which an ear begins to move, mm."""


def with_ears(actor: Actor, skin: Floats, pose: Pose, factor: float) -> Floats:
    """Return the skin (V, 3) of a posed actor with ears of another size.

    Args:
        actor: a body with a skull.
        skin: (V, 3) in the pose, mm.
        pose: of one frame.
        factor: size of the ears against those that go with the head.
    """
    if factor == 1.0:
        return skin
    skull = actor.skeleton.index("skull")
    turn, place, size = pose.rotations[0, skull], pose.positions[0, skull], float(actor.girth[skull])
    local = (skin - place) @ turn / size
    shift = np.zeros_like(local)
    for side in (1.0, -1.0):
        mirrored = local * [1.0, side, 1.0]
        own = np.linalg.norm((mirrored - MIDDLE) / REACH, axis=1) < 1.0
        beyond = mirrored - BASE
        share = np.where(own, np.clip(beyond[:, 1:] / ROOT, 0.0, 1.0).prod(axis=1), 0.0)
        shift += (factor - 1.0) * share[:, None] * beyond * [0.0, side, 1.0]
    return np.asarray(skin + size * shift @ turn.T)
