"""Sightings: which camera saw which corner of which board in which frame, as one flat table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from calibration.boards.board import Board
from calibration.foundation.arrays import Bools, Floats, Ints
from calibration.foundation.errors import InputError

__all__ = ["Sightings", "Targets", "merge_sightings"]


@dataclass(frozen=True, eq=False)
class Sightings:
    """Corners seen by the cameras of a rig; one row per corner, sorted by frame, board, camera, corner.

    Attributes:
        cameras: camera names, in the rig's order.
        sizes: image size (width, height) of each camera, px.
        boards: the boards that were shown.
        camera, frame, board, corner: (n,) indices; equal frame numbers are the same instant.
        pixels: (n, 2) image points, px.
        velocity: (n, 2) motion of the corner in its image, px per frame; 0 where the frames beside do not show it.
    """

    cameras: tuple[str, ...]
    sizes: tuple[tuple[int, int], ...]
    boards: tuple[Board, ...]
    camera: Ints
    frame: Ints
    board: Ints
    corner: Ints
    pixels: Floats
    velocity: Floats = field(default_factory=lambda: np.empty((0, 2)))

    def __post_init__(self) -> None:
        if len(self.velocity) != len(self.camera):
            object.__setattr__(self, "velocity", np.zeros((len(self.camera), 2)))

    def __len__(self) -> int:
        return len(self.camera)

    def where(self, mask: Bools) -> Sightings:
        """Return the rows where ``mask`` (n,) holds."""
        return replace(
            self,
            camera=self.camera[mask],
            frame=self.frame[mask],
            board=self.board[mask],
            corner=self.corner[mask],
            pixels=self.pixels[mask],
            velocity=self.velocity[mask],
        )

    def of_camera(self, index: int) -> Sightings:
        """Return what one camera saw, as a rig of that camera alone."""
        rows = self.where(self.camera == index)
        return replace(
            rows,
            cameras=(self.cameras[index],),
            sizes=(self.sizes[index],),
            camera=np.zeros(len(rows), np.int64),
        )

    def of_cameras(self, names: Sequence[str]) -> Sightings:
        """Return what the named cameras saw, renumbered in the order given."""
        for name in names:
            if name not in self.cameras:
                raise InputError(f"unknown camera '{name}'; the session has {', '.join(self.cameras)}")
        old = [self.cameras.index(name) for name in names]
        new = np.full(len(self.cameras), -1, np.int64)
        new[old] = np.arange(len(old))
        kept = self.where(new[self.camera] >= 0)
        renumbered = replace(
            kept,
            cameras=tuple(names),
            sizes=tuple(self.sizes[i] for i in old),
            camera=new[kept.camera],
        )
        return renumbered.sorted()

    def of_frames(self, frames: Ints) -> Sightings:
        """Return the rows of the given frames."""
        return self.where(np.isin(self.frame, frames))

    def sorted(self) -> Sightings:
        """Return the rows in the order that the solvers expect."""
        order = np.lexsort((self.corner, self.camera, self.board, self.frame))
        return replace(
            self,
            camera=self.camera[order],
            frame=self.frame[order],
            board=self.board[order],
            corner=self.corner[order],
            pixels=self.pixels[order],
            velocity=self.velocity[order],
        )

    def with_velocities(self) -> Sightings:
        """Return the table with each corner's image velocity, from the frames beside it (central difference)."""
        if not len(self):
            return self
        base = np.array([1, len(self.cameras), len(self.boards), int(self.corner.max()) + 1], np.int64)
        key = ((self.frame * base[1] + self.camera) * base[2] + self.board) * base[3] + self.corner
        step = int(base[1] * base[2] * base[3])
        order = np.argsort(key)
        ranked = key[order]

        def beside(offset: int) -> tuple[Floats, Bools]:
            place = np.clip(np.searchsorted(ranked, key + offset * step), 0, len(key) - 1)
            found = ranked[place] == key + offset * step
            return self.pixels[order[place]], found

        (before, had), (after, has) = beside(-1), beside(1)
        start = np.where(had[:, None], before, self.pixels)
        end = np.where(has[:, None], after, self.pixels)
        span = np.maximum(had.astype(float) + has, 1.0)
        return replace(self, velocity=(end - start) / span[:, None])

    def at_common_time(self, offsets: Floats) -> Sightings:
        """Return the corners moved on to where the cameras' common clock has them; ``offsets`` (c,) frames late."""
        return replace(self, pixels=self.pixels + self.velocity * np.asarray(offsets)[self.camera, None])

    def targets(self) -> Targets:
        """Number the board poses: one target for each (frame, board) that any camera saw."""
        key = self.frame * max(len(self.boards), 1) + self.board
        unique, index = np.unique(key, return_inverse=True)
        return Targets(
            frame=unique // max(len(self.boards), 1),
            board=unique % max(len(self.boards), 1),
            of_row=index.astype(np.int64),
        )

    def views(self) -> dict[tuple[int, int, int], Ints]:
        """Return the row numbers of each view, keyed (camera, frame, board), in sorted order."""
        key = np.stack([self.camera, self.frame, self.board], 1)
        unique, index = np.unique(key, axis=0, return_inverse=True)
        order = np.argsort(index.ravel(), kind="stable")
        ends = np.cumsum(np.bincount(index.ravel(), minlength=len(unique)))
        rows = np.split(order, ends[:-1])
        return {(int(k[0]), int(k[1]), int(k[2])): r for k, r in zip(unique, rows, strict=True)}

    def view_runs(self) -> tuple[Ints, Ints, Ints]:
        """Return camera and target (v,) of each view and where its rows end: the rows of a view follow each other."""
        of_row = self.targets().of_row
        change = (np.diff(of_row) != 0) | (np.diff(self.camera) != 0)
        ends = np.append(np.flatnonzero(change) + 1, len(self)).astype(np.int64)
        return self.camera[ends - 1], of_row[ends - 1], ends

    def model_points(self) -> tuple[Floats, Ints]:
        """Return the corners of all boards (p, 3), mm, and for each row its index among them."""
        starts = np.cumsum([0] + [board.corners for board in self.boards])[:-1]
        points = np.concatenate([board.points_mm for board in self.boards])
        return points, np.asarray(starts, np.int64)[self.board] + self.corner


@dataclass(frozen=True, eq=False)
class Targets:
    """The board poses to solve for: frame and board of each (t,), and the target of each sighting (n,)."""

    frame: Ints
    board: Ints
    of_row: Ints

    def __len__(self) -> int:
        return len(self.frame)


def merge_sightings(parts: Sequence[Sightings]) -> Sightings:
    """Join the sightings of single cameras into those of a rig."""
    if not parts:
        raise InputError("no camera: a session needs at least one")
    names = [name for part in parts for name in part.cameras]
    if len(set(names)) < len(names):
        raise InputError(f"two cameras have the same name: {', '.join(names)}")
    offsets = np.cumsum([0] + [len(part.cameras) for part in parts])
    return Sightings(
        cameras=tuple(names),
        sizes=tuple(size for part in parts for size in part.sizes),
        boards=parts[0].boards,
        camera=np.concatenate([p.camera + o for p, o in zip(parts, offsets, strict=False)]),
        frame=np.concatenate([p.frame for p in parts]),
        board=np.concatenate([p.board for p in parts]),
        corner=np.concatenate([p.corner for p in parts]),
        pixels=np.concatenate([p.pixels for p in parts]),
        velocity=np.concatenate([p.velocity for p in parts]),
    ).sorted()
