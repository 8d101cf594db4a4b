"""Animals drawn from a few lines: limbs of given thickness melted together, moved by weights of their own.

A horse, a bird and a lizard: builds that no built-in body has. Their joints.toml is not read off the drawing's own
joints: every place is moved by a few per cent of the body's thickness there, as a person would place it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from skimage.measure import marching_cubes

from benchmarks.animals.moving_skin import MovingSkin
from calibration.foundation.arrays import Floats, Ints
from calibration.geometry.transforms import rotation_from_vector
from tracking.own_bodies.joints_file import BodyPlan

__all__ = ["ANIMALS", "drawn_plan", "moving_drawn"]

#: Name, parent, place (mm, x forward, y left, z up) and half thickness; "left_" is mirrored.
_HORSE = """
pelvis - -520 0 1130 210; loin pelvis -180 0 1170 220; withers loin 250 0 1180 215; neck withers 480 0 1370 120
poll neck 720 0 1680 95; muzzle poll 960 0 1430 60; tail_1 pelvis -760 0 1130 45; tail_2 tail_1 -860 0 900 38
tail_end tail_2 -890 0 620 28; left_hip pelvis -560 110 1000 150; left_stifle left_hip -430 165 760 95
left_hock left_stifle -640 165 520 58; left_hind_fetlock left_hock -590 165 200 40
left_hind_hoof left_hind_fetlock -530 165 40 48; left_shoulder withers 330 100 960 130
left_elbow left_shoulder 260 150 760 75; left_knee left_elbow 290 150 440 48
left_fetlock left_knee 280 150 180 38; left_hoof left_fetlock 340 150 40 46
"""
_BIRD = """
body - 0 0 210 62; chest body 60 0 250 58; neck chest 105 0 310 30; head neck 135 0 372 34
beak head 200 0 366 10; rump body -70 0 190 40; tail_end rump -180 0 165 20; left_shoulder chest 45 55 285 26
left_wing_elbow left_shoulder -25 125 300 20; left_wing_wrist left_wing_elbow 35 200 305 16
left_wing_tip left_wing_wrist -60 310 295 10; left_hip body -15 38 165 30; left_knee left_hip 20 44 110 18
left_ankle left_knee -20 44 60 11; left_foot left_ankle -8 44 14 10; left_toes left_foot 42 46 10 9
"""
_LIZARD = """
pelvis - -60 0 40 26; belly pelvis 0 0 42 30; chest belly 65 0 42 27; neck chest 105 0 46 20
skull neck 130 0 50 20; snout skull 180 0 44 9; tail_1 pelvis -110 0 36 17; tail_2 tail_1 -170 0 28 13
tail_3 tail_2 -240 0 20 10; tail_4 tail_3 -310 0 15 7; tail_end tail_4 -380 0 12 5; left_hip pelvis -62 28 36 14
left_knee left_hip -45 62 46 11; left_ankle left_knee -70 82 16 8; left_hind_toes left_ankle -40 104 8 6
left_shoulder chest 68 28 36 13; left_elbow left_shoulder 52 60 44 9; left_wrist left_elbow 74 80 16 7
left_fingers left_wrist 102 96 8 6
"""
ANIMALS = {"horse": _HORSE, "bird": _BIRD, "lizard": _LIZARD}
MELT = 0.35
"""How softly limbs melt into each other, as a share of their thickness."""
CELLS = 55


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Joints with thickness: names, parents (J,), places (J, 3) mm, radii (J,) mm."""

    names: tuple[str, ...]
    parents: Ints
    places: Floats
    radii: Floats


def _drawing(animal: str) -> _Drawing:
    rows: list[tuple[str, str, Floats, float]] = []
    for words in ANIMALS[animal].replace("\n", ";").split(";"):
        if not words.strip():
            continue
        name, parent, *numbers = words.split()
        x, y, z, radius = map(float, numbers)
        rows.append((name, parent, np.array([x, y, z]), radius))
        if name.startswith("left_"):
            other = parent.replace("left_", "right_")
            rows.append((name.replace("left_", "right_"), other, np.array([x, -y, z]), radius))
    names = [row[0] for row in rows]
    parents = np.array([-1 if row[1] == "-" else names.index(row[1]) for row in rows])
    return _Drawing(tuple(names), parents, np.array([row[2] for row in rows]), np.array([row[3] for row in rows]))


def drawn_plan(animal: str, seed: int = 5) -> BodyPlan:
    """Return the joints of an animal as a person would place them, mm."""
    drawing = _drawing(animal)
    rng = np.random.default_rng(seed)
    away = rng.uniform(-0.12, 0.12, drawing.places.shape) * drawing.radii[:, None]
    order = _depth_first(drawing.parents)
    place = {old: new for new, old in enumerate(order)}
    return BodyPlan(
        tuple(drawing.names[index] for index in order),
        np.array([-1 if drawing.parents[index] < 0 else place[int(drawing.parents[index])] for index in order]),
        (drawing.places + away)[order],
        np.full(len(order), np.nan),
    )


def _depth_first(parents: Ints) -> list[int]:
    order, waiting = [], [int(np.flatnonzero(parents < 0)[0])]
    while waiting:
        order.append(waiting.pop())
        waiting += [int(child) for child in np.flatnonzero(parents == order[-1])[::-1]]
    return order


def _distances(points: Floats, drawing: _Drawing) -> Floats:
    """(P, J) distance of points from the limb that ends at each joint, less its thickness; of the root's, its ball."""
    result = np.empty((len(points), len(drawing.names)))
    for joint, parent in enumerate(drawing.parents):
        start = drawing.places[joint if parent < 0 else parent]
        first = drawing.radii[joint if parent < 0 else parent]
        # A limb is no thicker than its far joint says, but where it leaves its parent.
        first = min(first, 1.3 * drawing.radii[joint])
        way = drawing.places[joint] - start
        share = np.clip((points - start) @ way / max(float(way @ way), 1e-9), 0.0, 1.0)
        radius = (1 - share) * first + share * drawing.radii[joint]
        result[:, joint] = np.linalg.norm(points - start - share[:, None] * way, axis=1) - radius
    return result


def _skin(drawing: _Drawing) -> tuple[Floats, Ints, Floats]:
    """Vertices (V, 3), faces (F, 3) and weights (V, J) of the melted limbs."""
    low = (drawing.places - 1.5 * drawing.radii[:, None]).min(axis=0)
    high = (drawing.places + 1.5 * drawing.radii[:, None]).max(axis=0)
    step = float((high - low).max()) / CELLS / 1.6
    axes = [np.arange(low[k], high[k] + step, step) for k in range(3)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    soft = MELT * float(np.median(drawing.radii))
    flat = grid.reshape(-1, 3)
    field = np.concatenate(
        [-soft * np.log(np.sum(np.exp(-np.minimum(_distances(part, drawing) / soft, 50.0)), axis=1)) for part in
         np.array_split(flat, 40)]
    ).reshape(grid.shape[:3])  # fmt: skip
    vertices, faces, _, _ = marching_cubes(field, 0.0, spacing=(step,) * 3)
    vertices = vertices.astype(float) + low
    away = _distances(vertices, drawing)
    share = np.exp(-(away - away.min(axis=1, keepdims=True)) / (0.35 * soft))
    return vertices, faces[:, ::-1].astype(np.int64), share / share.sum(axis=1, keepdims=True)


def moving_drawn(animal: str, motion: str, frames: int, *, stride: int = 16) -> MovingSkin:
    """Return a drawn animal through a motion: walk (limbs swing, sides in turn) or play (all joints wander)."""
    drawing = _drawing(animal)
    vertices, faces, weights = _skin(drawing)
    local = _bends(drawing, motion, frames, stride)
    rotations = np.empty((frames, len(drawing.names), 3, 3))
    positions = np.empty((frames, len(drawing.names), 3))
    way, turn = _root(float(np.ptp(vertices, axis=0).max()), motion, frames)
    for joint in _depth_first(drawing.parents):
        parent = int(drawing.parents[joint])
        if parent < 0:
            rotations[:, joint], positions[:, joint] = turn @ local[:, joint], drawing.places[joint] + way
        else:
            rotations[:, joint] = rotations[:, parent] @ local[:, joint]
            arm = drawing.places[joint] - drawing.places[parent]
            positions[:, joint] = positions[:, parent] + rotations[:, parent] @ arm
    # The limb that ends at a joint turns with its parent.
    carrier = np.where(drawing.parents < 0, np.arange(len(drawing.names)), drawing.parents)
    turns = rotations[:, carrier]
    shift = positions[:, carrier] - np.einsum("tbij,bj->tbi", turns, drawing.places[carrier])
    mixed = np.einsum("vb,tbij->tvij", weights, turns, optimize=True)
    moved = np.einsum("tvij,vj->tvi", mixed, vertices) + np.einsum("vb,tbi->tvi", weights, shift)
    return MovingSkin(vertices, faces, moved)


def _bends(drawing: _Drawing, motion: str, frames: int, stride: int) -> Floats:
    """Local rotations (T, J, 3, 3)."""
    time = np.arange(frames)
    rng = np.random.default_rng(11)
    result = np.tile(np.eye(3), (frames, len(drawing.names), 1, 1))
    for joint, name in enumerate(drawing.names):
        limb = name.startswith(("left_", "right_", "tail"))
        size = 0.4 if limb else 0.1
        if motion == "walk":
            fore = any(word in name for word in ("shoulder", "elbow", "knee", "wrist", "fetlock", "hoof"))
            phase = 0.5 * name.startswith("right_") + 0.25 * fore + 0.15 * int(_steps(drawing, joint))
            swing = size * np.sin(2 * np.pi * (time / stride + phase))
            vectors = np.stack([0.15 * swing, swing, 0.2 * swing], axis=1)
            if name.startswith("tail"):
                vectors = vectors[:, [0, 2, 1]]
        else:
            phases, rates = rng.uniform(0, 1, 3), rng.uniform(0.5, 1.3, 3)
            vectors = (
                size * np.array([0.4, 0.8, 0.8]) * np.sin(2 * np.pi * (time[:, None] / (2 * stride) * rates + phases))
            )
        result[:, joint] = rotation_from_vector(vectors)
    return result


def _steps(drawing: _Drawing, joint: int) -> int:
    count = 0
    while drawing.parents[joint] >= 0:
        joint, count = int(drawing.parents[joint]), count + 1
    return count


def _root(size: float, motion: str, frames: int) -> tuple[Floats, Floats]:
    share = np.linspace(0.0, 1.0, frames)
    heading = (0.5 if motion == "walk" else 1.2) * share
    speed = (0.02 if motion == "walk" else 0.005) * size
    way = np.cumsum(speed * np.stack([np.cos(heading), np.sin(heading), np.zeros(frames)], axis=1), axis=0)
    tilt = (0.05 if motion == "walk" else 0.25) * np.sin(2 * np.pi * share)
    turn = rotation_from_vector(np.array([0.0, 0.0, 1.0]) * heading[:, None])
    return way, turn @ rotation_from_vector(np.array([0.3, 1.0, 0.0]) * tilt[:, None])
