"""The rat skin of `rat_model` (65 bones, not our rat), moved by its own weights and joint angles of its own model."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from benchmarks.animals.moving_skin import MovingSkin
from benchmarks.animals.mujoco_skin import read_skin
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_vector
from skeleton.model_files.mujoco import read_mujoco

__all__ = ["moving_rat"]

STRIDE = 14
"""Frames of one stride."""


def moving_rat(folder: Path, motion: str, frames: int) -> MovingSkin:
    """Return the skin of the rat through a motion: walk, turn or rear."""
    skin = read_skin(folder / "rodent_walker_skin.skn")
    model = read_mujoco(folder / "rodent.xml").body
    which = skin.bodies(model)
    angles = np.repeat(model.rest[None], frames, axis=0)
    for name, values in _angles(motion, frames).items():
        column = model.coordinate_names.index(name)
        low, high = model.limits.lower[column], model.limits.upper[column]
        angles[:, column] = np.clip(values, low, high)
    rotations = np.asarray(model.forward(angles)[1])[:, which]
    # The model was shrunk after its skin was bound: the bones keep the places they had then.
    parents = _parents(folder / "rodent.xml", skin.bones)
    root, turn = _root(motion, frames)
    positions = np.empty((frames, len(skin.bones), 3))
    for bone, parent in enumerate(parents):
        if parent < 0:
            positions[:, bone] = skin.places[bone]
        else:
            arm = skin.places[bone] - skin.places[parent]
            positions[:, bone] = positions[:, parent] + rotations[:, parent] @ arm
    vertices = skin.posed(positions, rotations)
    middle = skin.places[0]
    vertices = np.einsum("tij,tvj->tvi", turn, vertices - middle) + middle + root[:, None]
    return MovingSkin(skin.vertices, skin.faces, vertices)


def _parents(path: Path, bones: tuple[str, ...]) -> Ints:
    """(B,) bone that each hangs on, the nearest of its body's ancestors that is one; -1 for the first."""
    above: dict[str, str] = {}
    root = ElementTree.parse(path).getroot()
    for body in root.iter("body"):
        for child in body.findall("body"):
            above[child.attrib["name"]] = body.attrib["name"]
    result = []
    for bone in bones:
        parent = above.get(bone)
        while parent is not None and parent not in bones:
            parent = above.get(parent)
        result.append(-1 if parent is None else bones.index(parent))
    return np.array(result)


def _angles(motion: str, frames: int) -> dict[str, Floats]:
    """Joint angles of the model over time, rad."""
    time = np.arange(frames) / STRIDE
    slow = 2 * np.pi * np.arange(frames) / max(frames, 1)

    def wave(phase: float, size: float, middle: float = 0.0) -> Floats:
        return np.asarray(middle + size * np.sin(2 * np.pi * (time + phase)))

    step = 0.5 if motion == "rear" else 1.0
    found = {}
    for side, phase in (("L", 0.0), ("R", 0.5)):
        found |= {
            f"hip_{side}_extend": wave(phase, 0.45 * step),
            f"knee_{side}": wave(phase + 0.25, 0.4 * step, 0.1),
            f"ankle_{side}": wave(phase + 0.4, 0.35 * step, 0.3),
            f"scapula_{side}_extend": wave(phase + 0.5, 0.12 * step),
            f"shoulder_{side}": wave(phase + 0.5, 0.45 * step),
            f"elbow_{side}": wave(phase + 0.8, 0.35 * step, 0.4),
            f"wrist_{side}": wave(phase + 0.9, 0.3 * step),
        }
    bend = {"walk": 0.08, "turn": 0.3, "rear": 0.05}[motion]
    arch = {"walk": 0.05, "turn": 0.1, "rear": -0.25}[motion]
    for name in ("vertebra_2_bend", "vertebra_5_bend"):
        found[name] = bend * np.sin(slow + 0.3) * 1.5
    for name in ("vertebra_1_extend", "vertebra_4_extend"):
        found[name] = arch * np.sin(0.5 * slow) + 0.04 * np.sin(2 * np.pi * time)
    for name in ("vertebra_cervical_1_bend", "vertebra_cervical_4_bend"):
        found[name] = (0.2 if motion == "walk" else 0.45) * np.sin(2 * slow)
    found["vertebra_cervical_2_extend"] = 0.25 * np.sin(1.5 * slow)
    for number in range(1, 31):
        found[f"vertebra_C{number}_bend"] = 0.12 * np.sin(slow * 2 + 0.25 * number)
        found[f"vertebra_C{number}_extend"] = 0.05 * np.sin(slow + 0.2 * number)
    return {name: values for name, values in found.items() if not _absent(name)}


def _absent(name: str) -> bool:
    """The far half of the tail bends at every second vertebra, one way or the other."""
    if not name.startswith("vertebra_C"):
        return False
    number, kind = name.removeprefix("vertebra_C").split("_")
    count = int(number)
    if count <= 6:
        return False
    bends = (count - 7) % 4 == 2
    return count % 2 == 0 or count > 29 or (kind == "bend") != bends


def _root(motion: str, frames: int) -> tuple[Floats, Floats]:
    """Way (T, 3), mm, and turn (T, 3, 3) of the whole body."""
    share = np.linspace(0.0, 1.0, frames)
    heading = {"walk": 0.3, "turn": 1.6, "rear": 0.2}[motion] * share
    pitch = (0.9 if motion == "rear" else 0.05) * np.sin(np.pi * share) ** 2
    turn = rotation_from_vector(np.array([0.0, 0.0, 1.0]) * heading[:, None])
    turn = turn @ rotation_from_vector(np.array([0.0, -1.0, 0.0]) * pitch[:, None])
    speed = {"walk": 6.0, "turn": 2.5, "rear": 0.5}[motion]
    way = np.cumsum(speed * np.stack([np.cos(heading), np.sin(heading), np.zeros(frames)], axis=1), axis=0)
    way[:, 2] += 60.0 * np.sin(pitch)
    return way - way.mean(axis=0) * np.array([1.0, 1.0, 0.0]), turn
