"""An actor performing: its skin over time for the cameras, its bones and beads for X-ray, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from calibration.foundation.arrays import Bools, Floats, Singles
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import quaternion_from_rotation
from capture.studio.scene.surfaces import MovingSurface
from capture.studio.scene.truth import NamedPoints, Truth
from capture.studio.xray.xray_images import BONE, SOFT_TISSUE, TANTALUM, Beads, Solid
from skeleton.actors.actor import Actor
from skeleton.tree.joint_tree import Pose

__all__ = ["Performance", "paint", "perform"]

#: Reflectance (red, green, blue) by words in a segment's name, first match; "" is everything else.
PAINTS: dict[str, tuple[tuple[str, tuple[float, float, float]], ...]] = {
    "mouse": (
        ("tail", (0.27, 0.22, 0.20)),
        ("toes", (0.34, 0.27, 0.25)),
        ("wrist", (0.32, 0.26, 0.24)),
        ("", (0.13, 0.115, 0.10)),
    ),
    "rat": (
        ("tail", (0.34, 0.27, 0.25)),
        ("toes", (0.36, 0.29, 0.27)),
        ("wrist", (0.36, 0.29, 0.27)),
        ("skull", (0.12, 0.11, 0.10)),
        ("cervical", (0.12, 0.11, 0.10)),
        ("", (0.24, 0.22, 0.20)),
    ),
    "human": (
        ("head", (0.52, 0.36, 0.28)),
        ("skull", (0.52, 0.36, 0.28)),
        ("neck", (0.52, 0.36, 0.28)),
        ("elbow", (0.50, 0.35, 0.27)),
        ("wrist", (0.50, 0.35, 0.27)),
        ("hand", (0.50, 0.35, 0.27)),
        ("toes", (0.08, 0.08, 0.09)),
        ("ankle", (0.10, 0.10, 0.11)),
        ("hip", (0.10, 0.13, 0.24)),
        ("knee", (0.10, 0.13, 0.24)),
        ("pelvis", (0.10, 0.13, 0.24)),
        ("", (0.42, 0.11, 0.10)),
    ),
}
#: Bead radius, mm, by body: tantalum as implanted for marker-based X-ray studies.
BEAD_RADIUS = {"mouse": 0.25, "rat": 0.4, "human": 0.5}
#: Frames that are skinned at once.
BLOCK = 16


def paint(actor: Actor) -> Floats:
    """Return the reflectance (V, 3) of an actor's skin: fur, bare paws and tail; or clothes."""
    names = actor.skeleton.joint_names
    table = PAINTS[actor.body]
    colours = np.array([next(colour for word, colour in table if word in name) for name in names])
    return np.asarray(np.einsum("vk,vki->vi", actor.weights, colours[actor.segments]))


@dataclass(frozen=True, eq=False)
class Performance:
    """An actor moving through T frames.

    Attributes:
        actor: who moves.
        coordinates: (T, D) of the actor's skeleton.
        rate_hz: frames per second.
        pose: of every frame.
        vertices: (T, V, 3) skin, mm.
        contact_names: feet.
        contacts: (T, K) whether the foot is planted.
    """

    actor: Actor
    coordinates: Floats
    rate_hz: float
    pose: Pose
    vertices: Singles
    contact_names: tuple[str, ...]
    contacts: Bools

    def __len__(self) -> int:
        return len(self.coordinates)

    @cached_property
    def surface(self) -> MovingSurface:
        """The skin as the cameras see it."""
        return MovingSurface(self.vertices, self.actor.faces, self.rate_hz, self.actor.rest_vertices, paint(self.actor))

    def solids(self, frame: int) -> list[Solid]:
        """Return what attenuates X-rays at a frame: the skin full of soft tissue, and the bones in it."""
        pose = self.pose[frame : frame + 1]
        skin = Solid(self.vertices[frame].astype(np.float64), self.actor.faces, SOFT_TISSUE)
        bones = [Solid(bone.posed(pose)[0], bone.faces, BONE - SOFT_TISSUE) for bone in self.actor.bones]
        return [skin, *bones]

    def beads(self, frame: int) -> Beads:
        """Return the implanted beads at a frame."""
        centres = self.actor.implanted_beads.positions(self.pose[frame : frame + 1])[0]
        radii = np.full(len(centres), BEAD_RADIUS[self.actor.body])
        return Beads(centres, radii, TANTALUM - BONE)

    def truth(self) -> Truth:
        """Return what really happens."""
        names, markers = self.actor.virtual_markers
        landmark_names, landmarks = self.actor.skeleton.landmarks(self.pose)
        beads = self.actor.implanted_beads
        return Truth(
            rate_hz=self.rate_hz,
            joints=NamedPoints(self.actor.skeleton.joint_names, self.pose.positions),
            rotations=quaternion_from_rotation(self.pose.rotations),
            coordinates=self.coordinates,
            landmarks=NamedPoints(tuple(landmark_names), landmarks),
            vertices=self.vertices,
            faces=self.actor.faces,
            markers=NamedPoints(tuple(names), self.vertices[:, markers].astype(np.float64)),
            beads=NamedPoints(beads.names, beads.positions(self.pose)),
            contact_names=self.contact_names,
            contacts=self.contacts,
            parameters={"body": self.actor.body},
        )


def perform(
    actor: Actor,
    coordinates: Floats,
    rate_hz: float,
    *,
    contact_names: Sequence[str] = (),
    contacts: Bools | None = None,
) -> Performance:
    """Let ``actor`` move through ``coordinates`` (T, D) of its skeleton, breathing.

    Args:
        contact_names: feet.
        contacts: (T, K) whether each foot is planted.
    """
    dimension = actor.skeleton.dimension
    motion = np.asarray(coordinates, dtype=np.float64)
    if motion.ndim != 2 or motion.shape[1] != dimension:
        raise InputError(
            f"actor '{actor.body}' has {dimension} coordinates per frame, the motion has shape {motion.shape}: "
            "it belongs to another skeleton; map its joints first"
        )
    if not len(motion) or not np.isfinite(motion).all():
        raise InputError(f"motion for actor '{actor.body}': wanted at least one frame of finite coordinates")
    pose = actor.skeleton.forward(motion)
    time = np.arange(len(motion)) / rate_hz
    skin = np.empty((len(motion), len(actor.bind_vertices), 3), dtype=np.float32)
    for start in range(0, len(motion), BLOCK):
        part = slice(start, start + BLOCK)
        skin[part] = actor.skin(pose[part], time[part])
    planted = np.zeros((len(motion), 0), dtype=np.bool_) if contacts is None else np.asarray(contacts, np.bool_)
    return Performance(actor, motion, rate_hz, pose, skin, tuple(contact_names), planted)
