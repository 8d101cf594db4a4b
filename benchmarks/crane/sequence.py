"""The crane sequence as a measuring rig: a captured person with true correspondence, filmed by virtual cameras.

Everything the tracker may know is made here from what protocol.json allows: the template (mesh of frame 0), its quads
(placed by hand on that mesh), key poses (quads fitted to the meshes of the key frames), silhouettes cast from the true
meshes, and the scores.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.geometry.transforms import RigidTransform
from tracking.observations.rasteriser import cast_masks
from tracking.quads.deformation import CageRig
from tracking.quads.placement import Cut, Enclosure, enclose, quads_at_cuts

__all__ = ["Crane", "crane_rig", "data_folder"]

FORWARD, UP, LEFT = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])


def data_folder() -> Path:
    """Folder of the borrowed data sets."""
    default = Path(__file__).resolve().parents[3] / "shared" / "data"
    return Path(os.environ.get("VIVARIG_DATA", default))


@dataclass(frozen=True, eq=False)
class Crane:
    """The sequence and its protocol.

    Attributes:
        vertices: (175, 10002, 3) true meshes, mm, y up.
        faces: (20000, 3).
        protocol: protocol.json.
    """

    vertices: Floats
    faces: Ints
    protocol: dict[str, Any]

    @classmethod
    def load(cls) -> Crane:
        """Read the sequence."""
        folder = data_folder() / "crane"
        with np.load(folder / "crane.npz") as arrays:
            vertices = arrays["vertices_mm"].astype(np.float64)
            faces = arrays["faces"].astype(np.int64)
        return cls(vertices, faces, json.loads((folder / "protocol.json").read_text()))

    @cached_property
    def joint_sets(self) -> list[Ints]:
        """Vertex sets of the 15 joints."""
        return [np.array(ids) for ids in self.protocol["joints"].values()]

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints."""
        return list(self.protocol["joints"])

    def joints(self, vertices: Floats) -> Floats:
        """Return (..., 15, 3) joints of meshes (..., 10002, 3)."""
        return np.stack([vertices[..., ids, :].mean(axis=-2) for ids in self.joint_sets], axis=-2)

    def cameras(self, views: int) -> Rig:
        """Return the protocol's rig of 8 or 4 cameras."""
        return Rig(
            tuple(
                LensCamera(
                    name=camera["name"],
                    lens=PinholeLens((camera["size"][0], camera["size"][1]), np.array(camera["K"]), np.zeros(0)),
                    camera_from_world=RigidTransform(np.array(camera["R"]), np.array(camera["t"])),
                )
                for camera in self.protocol[f"rig{views}"]
            )
        )

    def masks(self, views: int, frames: Ints | None = None) -> list[Bools]:
        """Cast (T, H, W) silhouettes of the true meshes, one array per camera."""
        rig = self.cameras(views)
        meshes = self.vertices if frames is None else self.vertices[frames]
        per_frame = [cast_masks(rig, mesh, self.faces) for mesh in meshes]
        return [np.stack([masks[camera] for masks in per_frame]) for camera in range(len(rig))]

    def noisy_masks(self) -> list[Bools]:
        """Read the protocol's noisy silhouettes of the 4-camera rig."""
        with np.load(data_folder() / "crane" / "masks_4_noisy.npz") as arrays:
            masks = np.unpackbits(arrays["packed"], axis=-1).astype(bool)
        return [masks[:, camera] for camera in range(masks.shape[1])]


# Over 80 lines: the quads of one body, listed from the pelvis outwards.
def crane_rig(crane: Crane, *, fine: bool = True, margin: float = 6.0) -> Enclosure:
    """Place quads by hand on the mesh of frame 0: 21 as in the paper, or 32.

    The finer rig cuts the legs along the groin, from the crotch up and outwards: of the positions tried, that one
    brings the fitted quads nearest to the key frames' meshes.
    """
    mesh = crane.vertices[0]
    joint = dict(zip(crane.joint_names, crane.joints(mesh), strict=True))
    middle = 0.5 * (joint["hip_left"][2] + joint["hip_right"][2])

    def at(x: float, y: float, z: float) -> Floats:
        return np.array([x, y, z])

    cuts = [
        Cut("waist", at(1135, 985, middle), UP, FORWARD),
        Cut("chest", at(1125, 1170, middle), UP, FORWARD),
        Cut("neck", at(1112, 1588, -61), UP + 0.25 * FORWARD, FORWARD),
        Cut("head", at(1112, 1668, -60), UP + 0.1 * FORWARD, FORWARD),
        Cut("crown", at(1115, 1840, -59), UP, FORWARD, np.array([75.0, 75.0, 60.0, 60.0])),
    ]
    regions: list[tuple[str, list[str]]] = [
        ("thorax", ["chest", "neck", "shoulder_left", "shoulder_right"]),
        ("throat", ["neck", "head"]),
        ("skull", ["head", "crown"]),
        ("pelvis", ["waist", "hip_left", "hip_right"]),
    ]
    if fine:
        cuts.insert(1, Cut("belly", at(1130, 1080, middle), UP, FORWARD))
        regions += [("loin", ["waist", "belly"]), ("flank", ["belly", "chest"])]
    else:
        regions.append(("loin", ["waist", "chest"]))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        elbow, wrist = joint[f"elbow_{side}"], joint[f"wrist_{side}"]
        knee, ankle = joint[f"knee_{side}"], joint[f"ankle_{side}"]
        shoulder = at(1122, 1385, middle + 12 + sign * 232)
        upper = elbow - shoulder
        lower = wrist - elbow
        upper, lower = upper / np.linalg.norm(upper), lower / np.linalg.norm(lower)
        bend = upper + lower
        near = np.linalg.norm(mesh - wrist, axis=1) < 220
        reach = float(((mesh[near] - wrist) @ lower).max())
        hand = wrist + (reach + margin + 4) * lower
        hip = at(1125, 838 if fine else 768, middle + sign * 118)
        shank = ankle - knee
        shank /= np.linalg.norm(shank)
        thigh = knee - hip
        thigh /= np.linalg.norm(thigh)
        foot_points = mesh[(np.abs(mesh[:, 2] - ankle[2]) < 110) & (mesh[:, 1] < 120)]
        toe = foot_points[np.argmin(foot_points[:, 0])]
        along = toe - ankle
        along[1] = 0
        along /= np.linalg.norm(along)
        length = float(((foot_points - ankle) @ along).max())
        instep = at(ankle[0], 112, ankle[2]) - 12 * along
        cuts += [
            Cut(f"shoulder_{side}", shoulder, sign * LEFT - 0.15 * UP, FORWARD),
            Cut(f"elbow_{side}", elbow, bend, FORWARD),
            Cut(f"wrist_{side}", wrist, lower, FORWARD),
            Cut(f"hand_{side}", hand, lower, FORWARD, np.array([38.0, 38.0, 38.0, 38.0])),
            Cut(f"hip_{side}", hip, -UP + (0.9 if fine else 0.35) * sign * LEFT, FORWARD),
            Cut(f"knee_{side}", knee, thigh + shank, FORWARD),
            Cut(f"ankle_{side}", instep, along - 1.2 * UP, FORWARD),
            Cut(
                f"toe_{side}",
                at(float((ankle + (length + margin + 4) * along)[0]), 40, float((ankle + length * along)[2])),
                along,
                LEFT,
                np.array([50.0, 50.0, 32.0, 38.0]),
            ),
        ]
        chains = [
            ["shoulder", "elbow"],
            ["elbow", "wrist"],
            ["wrist", "hand"],
            ["hip", "knee"],
            ["knee", "ankle"],
            ["ankle", "toe"],
        ]
        if fine:
            ball = ankle + 0.55 * length * along
            ball[1] = 45
            cuts += [
                Cut(f"arm_{side}", 0.42 * shoulder + 0.58 * elbow, upper + 0.25 * sign * LEFT, FORWARD),
                Cut(f"forearm_{side}", 0.5 * (elbow + wrist), lower, FORWARD),
                Cut(f"thigh_{side}", 0.6 * hip + 0.4 * knee, thigh, FORWARD),
                Cut(f"shin_{side}", 0.5 * (knee + ankle) + 20 * UP, shank, FORWARD),
                Cut(f"ball_{side}", ball, along, LEFT),
            ]
            chains = [
                ["shoulder", "arm", "elbow", "forearm", "wrist", "hand"],
                ["hip", "thigh", "knee", "shin", "ankle", "ball", "toe"],
            ]
        for chain in chains:
            for first, second in pairwise(chain):
                regions.append((f"{first}_{second}_{side}", [f"{first}_{side}", f"{second}_{side}"]))
    rig = quads_at_cuts(
        "crane_fine" if fine else "crane", mesh, crane.faces, cuts, regions, root="waist", margin=margin + 4
    )
    return enclose(rig, mesh, margin=margin)


def crane_cage(enclosure: Enclosure) -> CageRig:
    """Return the cage rig of an enclosure."""
    return CageRig(enclosure.rig, enclosure.cage)
