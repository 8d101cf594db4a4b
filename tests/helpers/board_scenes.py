"""Synthetic board sessions with known truth: cameras round a volume, a board waved through it, wrong corners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibration.boards.board import Board
from calibration.boards.sightings import Sightings
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import FisheyeLens, PinholeLens
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Floats
from calibration.geometry.transforms import RigidTransform, rotation_from_vector

CHARUCO = Board("charuco", 8, 6, 40.0, 30.0, "DICT_4X4_50")


@dataclass(frozen=True, eq=False)
class Scene:
    rig: Rig
    world_from_board: list[RigidTransform]
    sightings: Sightings


def looking_at(centre: Floats, target: Floats, roll: float = 0.0) -> RigidTransform:
    """camera_from_world of a camera at ``centre`` that looks at ``target``, world z up."""
    z = (target - centre) / np.linalg.norm(target - centre)
    x = np.cross(z, [0.0, 0.0, 1.0])
    x /= np.linalg.norm(x)
    rotation = rotation_from_vector([0.0, 0.0, roll]) @ np.stack([x, np.cross(z, x), z])
    return RigidTransform(rotation, -rotation @ centre)


def ring_rig(cameras: int, rng: np.random.Generator, *, fisheye: bool = False, radius: float = 1500.0) -> Rig:
    """Cameras on a ring above the floor, all looking at the middle of the volume, each lens different."""
    made = []
    for c in range(cameras):
        angle = 2 * np.pi * c / cameras + rng.uniform(-0.1, 0.1)
        height = 700.0 + 500.0 * (c % 2) + rng.uniform(-50, 50)
        centre = np.array([radius * np.cos(angle), radius * np.sin(angle), height])
        pose = looking_at(centre, np.array([0.0, 0.0, 300.0]) + rng.normal(0, 20, 3), rng.normal(0, 0.02))
        f = 1000.0 * rng.uniform(0.95, 1.05)
        k = np.array(
            [
                [f, 0, 640 + rng.uniform(-15, 15)],
                [0, f * rng.uniform(0.999, 1.001), 512 + rng.uniform(-15, 15)],
                [0, 0, 1],
            ]
        )
        if fisheye:
            lens: PinholeLens | FisheyeLens = FisheyeLens(
                (1280, 1024), k * [[0.6, 1, 1], [1, 0.6, 1], [1, 1, 1]], rng.normal(0, 0.01, 4)
            )
        else:
            terms = np.array([rng.uniform(-0.25, -0.1), rng.uniform(0.02, 0.1), *rng.normal(0, 5e-4, 2), 0.0])
            lens = PinholeLens((1280, 1024), k, terms)
        made.append(LensCamera(f"cam{c + 1}", lens, pose))
    return Rig(tuple(made))


def waved_board(frames: int, rng: np.random.Generator, board: Board) -> list[RigidTransform]:
    """Poses of a board waved through the volume, tilted every way, one frame flat on the floor (the first)."""
    flat = RigidTransform(np.diag([1.0, -1.0, -1.0]), np.array([-100.0, 60.0, 0.0]))
    poses = [flat]
    middle = board.points_mm.mean(0)
    for _ in range(frames - 1):
        # the printed side faces up or outwards, where the cameras are
        tilt = rng.uniform(0.1, 1.2)
        axis = rng.uniform(0, 2 * np.pi)
        turn = rotation_from_vector(tilt * np.array([np.cos(axis), np.sin(axis), 0.0]))
        spin = rotation_from_vector([0.0, 0.0, rng.uniform(0, 2 * np.pi)])
        rotation = turn @ spin @ np.diag([1.0, -1.0, -1.0])
        centre = np.array([*rng.uniform(-350, 350, 2), rng.uniform(100, 700)])
        poses.append(RigidTransform(rotation, centre - rotation @ middle))
    return poses


def film(rig: Rig, poses: list[RigidTransform], board: Board, *, two_sided: bool = False) -> Sightings:
    """Noiseless sightings of every corner that a camera sees from the printed side, inside its image."""
    rows = []
    for f, pose in enumerate(poses):
        points = pose.apply(board.points_mm)
        out_of_print = -pose.rotation[:, 2]
        for c, camera in enumerate(rig):
            towards = camera.centre - points.mean(0)
            if not two_sided and out_of_print @ towards < 0.25 * np.linalg.norm(towards):
                continue
            pixels = camera.project(points)
            w, h = camera.size
            seen = np.isfinite(pixels).all(1) & (pixels > 5).all(1) & (pixels[:, 0] < w - 6) & (pixels[:, 1] < h - 6)
            if seen.sum() >= 8:
                rows += [(c, f, k, *pixels[k]) for k in np.flatnonzero(seen)]
    table = np.array(rows)
    whole = table[:, :3].astype(np.int64)
    return Sightings(
        cameras=rig.names,
        sizes=tuple(camera.size for camera in rig),
        boards=(board,),
        camera=whole[:, 0],
        frame=whole[:, 1],
        board=np.zeros(len(whole), np.int64),
        corner=whole[:, 2],
        pixels=table[:, 3:5],
    ).sorted()


def disturb(sightings: Sightings, rng: np.random.Generator, *, noise: float = 0.2, wrong: float = 0.02) -> Sightings:
    """Add Gaussian noise to every corner, and move a share of them by 3 to 40 pixels."""
    from dataclasses import replace

    pixels = sightings.pixels + rng.normal(0, noise, sightings.pixels.shape)
    bad = rng.random(len(pixels)) < wrong
    angle = rng.uniform(0, 2 * np.pi, bad.sum())
    pixels[bad] += rng.uniform(3, 40, bad.sum())[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    return replace(sightings, pixels=pixels)


def scene(
    seed: int, *, cameras: int = 8, frames: int = 60, board: Board = CHARUCO, noise: float = 0.2, wrong: float = 0.02
) -> Scene:
    """A studio rig and what it saw."""
    rng = np.random.default_rng(seed)
    rig = ring_rig(cameras, rng)
    poses = waved_board(frames, rng, board)
    return Scene(rig, poses, disturb(film(rig, poses, board), rng, noise=noise, wrong=wrong))
