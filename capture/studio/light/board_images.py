"""A calibration board in front of the cameras: its print sampled exactly, held by a hand that hides part of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import cv2
import numpy as np

from calibration.boards.board import Board, marker_dictionary
from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bytes, Floats, Ints, Singles
from calibration.foundation.compiled import compiled
from calibration.foundation.errors import InputError
from calibration.geometry.transforms import RigidTransform
from capture.studio.light.light_images import LightPicture, LightView, Overlay, SubjectPose
from capture.studio.light.shading import lamp_light, reduce_channels
from capture.studio.scene.stage import Stage
from capture.studio.scene.surfaces import MovingSurface, icosphere

__all__ = ["BoardSheet", "FilmedBoard"]

#: Reflectance of paper, ink and the sheet's back.
PAPER, INK, BACK = 0.82, 0.06, 0.45
SKIN = (0.52, 0.36, 0.28)
#: Texels along a square. A marker of 3/4 of a square with 4x4 bits then has whole texels.
TEXELS = 64


def board_pattern(board: Board) -> Bytes:
    """Return the print (rows * TEXELS, columns * TEXELS), 0 ink to 255 paper, without a margin."""
    if board.kind == "charuco":
        ids = np.arange(board.first_marker, board.first_marker + board.markers)
        print_ = cv2.aruco.CharucoBoard(
            (board.columns, board.rows), board.square_mm, board.marker_mm, marker_dictionary(board.dictionary), ids
        )
        print_.setLegacyPattern(board.legacy)
        image = print_.generateImage((board.columns * TEXELS, board.rows * TEXELS), marginSize=0, borderBits=1)
    elif board.kind == "chessboard":
        rows, columns = np.mgrid[0 : board.rows, 0 : board.columns]
        squares = np.where((rows + columns) % 2 == 0, 0, 255).astype(np.uint8)
        image = np.kron(squares, np.ones((TEXELS, TEXELS), dtype=np.uint8))
    else:
        raise InputError(f"the studio prints charuco and chessboard, not {board.kind}")
    return np.asarray(255 - image if board.inverted else image)


@dataclass(frozen=True, eq=False)
class BoardSheet:
    """A stiff sheet with a board's print, in the frame of the print: x right, y down from its outer corner, z away.

    Attributes:
        board: what is printed.
        margin_mm: white border around the print.
    """

    board: Board
    margin_mm: float

    @cached_property
    def reflectance(self) -> Singles:
        """(rows, columns) of the print's texels."""
        return (INK + (PAPER - INK) * board_pattern(self.board).astype(np.float32) / 255.0).astype(np.float32)

    @property
    def origin(self) -> Floats:
        """(2,) where the print's outer corner lies in the board's own frame (see `Board.points_mm`), mm."""
        shift = -self.board.square_mm if self.board.kind == "chessboard" else 0.0
        return np.array([shift, shift])

    @cached_property
    def corners(self) -> Floats:
        """(4, 3) corners of the sheet in the board's own frame, mm."""
        width, height = self.board.size_mm
        m = self.margin_mm
        flat = np.array([[-m, -m], [width + m, -m], [width + m, height + m], [-m, height + m]]) + self.origin
        return np.column_stack([flat, np.zeros(4)])

    def slab(self, world_from_board: RigidTransform, thickness: float = 1.0) -> tuple[Floats, Ints]:
        """Return the sheet as a closed box behind its print, for shadows."""
        front = self.corners
        back = front + np.array([0.0, 0.0, thickness])
        faces = [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7]]
        for i in range(4):
            j = (i + 1) % 4
            faces += [[i, j, j + 4], [i, j + 4, i + 4]]
        return world_from_board.apply(np.concatenate([front, back])), np.array(faces, dtype=np.int64)

    def hand(self, side: float, width: float) -> tuple[Floats, Ints]:
        """Return fingers that hold the sheet's lower edge, in the board's frame; ``side`` 0 to 1 along the edge."""
        corner, other = self.corners[3], self.corners[2]
        grip = corner + side * (other - corner)
        ball, faces = icosphere(1.0, subdivisions=3)
        parts, triangles = [], []
        for number, (x, y, z) in enumerate([(0.0, 0.0, -0.6), (-0.7, -0.05, 0.8), (0.0, -0.15, 0.9), (0.7, -0.1, 0.8)]):
            axes = width * np.array([0.38, 1.0, 0.34])
            parts.append(ball * axes + grip + width * np.array([x, y + 0.45, z]))
            triangles.append(faces + number * len(ball))
        parts.append(ball * width * np.array([1.5, 1.3, 0.9]) + grip + width * np.array([0.0, 2.2, 0.3]))
        triangles.append(faces + 4 * len(ball))
        return np.concatenate(parts), np.concatenate(triangles)


class _Pixels(NamedTuple):
    """A camera's pixels: the eye (3,), and per pixel (H, W, 3) its ray and how that changes across and down."""

    origin: Floats
    directions: Singles
    across: Singles
    down: Singles


class _Print(NamedTuple):
    """A sheet in space: pose, reflectance of the print's texels, of its paper and back; places in mm."""

    rotation: Floats
    translation: Floats
    texels: Singles
    origin: Floats
    size: Floats
    margin: float
    paper: float
    back: float


class _Drawn(NamedTuple):
    """What is drawn (H, W): reflectance, covered share, distance."""

    light: Singles
    coverage: Singles
    depth: Singles


@compiled
def _sample_sheet(pixels: _Pixels, sheet: _Print, samples: int, drawn: _Drawn, box: tuple[int, int, int, int]) -> None:
    """Average samples x samples rays over each pixel of ``box`` (first and last row, first and last column)."""
    origin, directions, across, down = pixels
    rotation, translation, texels, print_origin, print_size, margin, paper, back = sheet
    light, coverage, depth = drawn
    first_row, last_row, first_column, last_column = box
    # the eye in the board's frame
    eye = np.zeros(3)
    for i in range(3):
        for j in range(3):
            eye[i] += rotation[j, i] * (origin[j] - translation[j])
    seen_from_front = eye[2] < 0.0
    ray = np.empty(3)
    for row in range(first_row, last_row):
        for column in range(first_column, last_column):
            total, covered, nearest = 0.0, 0, np.inf
            for a in range(samples):
                for b in range(samples):
                    du, dv = (a + 0.5) / samples - 0.5, (b + 0.5) / samples - 0.5
                    for i in range(3):
                        ray[i] = 0.0
                    for j in range(3):
                        d = directions[row, column, j] + du * across[row, column, j] + dv * down[row, column, j]
                        for i in range(3):
                            ray[i] += rotation[j, i] * d
                    if ray[2] == 0.0:
                        continue
                    t = -eye[2] / ray[2]
                    if not t > 0.0:
                        continue
                    x = eye[0] + t * ray[0] - print_origin[0]
                    y = eye[1] + t * ray[1] - print_origin[1]
                    if x < -margin or y < -margin or x > print_size[0] + margin or y > print_size[1] + margin:
                        continue
                    covered += 1
                    nearest = min(nearest, t)
                    if not seen_from_front:
                        total += back
                    elif x < 0.0 or y < 0.0 or x >= print_size[0] or y >= print_size[1]:
                        total += paper
                    else:
                        i_row = int(y / print_size[1] * texels.shape[0])
                        i_column = int(x / print_size[0] * texels.shape[1])
                        total += texels[min(i_row, texels.shape[0] - 1), min(i_column, texels.shape[1] - 1)]
            if covered > 0:
                light[row, column] = total / covered
                coverage[row, column] = covered / (samples * samples)
                depth[row, column] = nearest


class FilmedBoard:
    """One camera that films a board on a stage.

    Args:
        grip: place of the hand along the sheet's lower edge, 0 to 1; None holds it with nothing (floor board).
        samples: rays along each side of a pixel.
    """

    def __init__(
        self, camera: Camera, stage: Stage, sheet: BoardSheet, *, grip: float | None = None, samples: int = 6
    ) -> None:
        self.view = LightView(camera, stage)
        self.sheet = sheet
        self.samples = samples
        self._hand: MovingSurface | None = None
        if grip is not None:
            fingers, faces = sheet.hand(grip, 0.35 * sheet.board.square_mm)
            self._hand = MovingSurface(fingers[None], faces, 1.0, fingers, np.tile(SKIN, (len(fingers), 1)))

    def picture(self, world_from_board: RigidTransform, *others: RigidTransform) -> LightPicture:
        """Render the board at a pose, its print averaged with that at ``others`` of the same exposure.

        ``coverage`` is the hand's, which is drawn at the first pose only, as are the shadows.
        """
        overlay = _mean_overlay([self.overlay(pose) for pose in (world_from_board, *others)])
        if self._hand is None:
            light = self.view.plate + overlay.coverage[..., None] * (overlay.light - self.view.plate)
            return LightPicture(light, np.zeros_like(overlay.coverage))
        vertices = world_from_board.apply(self._hand.rest)
        pose = SubjectPose(self._hand, vertices, (self.sheet.slab(world_from_board),))
        return self.view.picture(pose, overlay)

    def overlay(self, world_from_board: RigidTransform) -> Overlay:
        """Return the sheet alone."""
        camera, stage, rays = self.view.camera, self.view.stage, self.view.rays
        width, height = camera.size
        shape = (height, width)
        value = np.zeros(shape, dtype=np.float32)
        coverage = np.zeros(shape, dtype=np.float32)
        depth = np.full(shape, np.inf, dtype=np.float32)
        box = self._box(world_from_board, width, height)
        sheet = _Print(
            np.ascontiguousarray(world_from_board.rotation, dtype=np.float64),
            np.asarray(world_from_board.translation, dtype=np.float64),
            self.sheet.reflectance,
            self.sheet.origin,
            np.array(self.sheet.board.size_mm),
            float(self.sheet.margin_mm),
            PAPER,
            BACK,
        )
        pixels = _Pixels(rays.origin, rays.directions, rays.across, rays.down)
        _sample_sheet(pixels, sheet, self.samples, _Drawn(value, coverage, depth), box)
        rows, columns = np.nonzero(coverage > 0.0)
        points = rays.origin + depth[rows, columns, None].astype(np.float64) * rays.directions[rows, columns]
        normal = world_from_board.rotation[:, 2].copy()
        if normal @ (rays.origin - world_from_board.translation) < 0.0:
            normal = -normal
        normals = np.broadcast_to(normal, points.shape)
        falling = np.tile(stage.ambient.astype(np.float32), (len(points), 1))
        factor = stage.unevenness(points)[:, None]
        for lamp in stage.lamps:
            falling += lamp_light(lamp, points, normals) * factor
        shade = np.zeros((*shape, 3), dtype=np.float32)
        shade[rows, columns] = value[rows, columns, None] * falling
        return Overlay(reduce_channels(shade, stage.options), coverage, depth)

    def _box(self, world_from_board: RigidTransform, width: int, height: int) -> tuple[int, int, int, int]:
        """Rows and columns that the sheet may touch; the whole image if part of it is behind the camera."""
        outline = np.linspace(self.sheet.corners, np.roll(self.sheet.corners, -1, axis=0), 17).reshape(-1, 3)
        pixels = self.view.camera.project(world_from_board.apply(outline))
        if not np.isfinite(pixels).all():
            return (0, height, 0, width)
        low, high = np.floor(pixels.min(axis=0)) - 2, np.ceil(pixels.max(axis=0)) + 3
        rows = np.clip([low[1], high[1]], 0, height).astype(int)
        columns = np.clip([low[0], high[0]], 0, width).astype(int)
        return int(rows[0]), int(rows[1]), int(columns[0]), int(columns[1])


def _mean_overlay(overlays: list[Overlay]) -> Overlay:
    """Average what covers each pixel during one exposure."""
    if len(overlays) == 1:
        return overlays[0]
    coverage = np.mean([o.coverage for o in overlays], axis=0, dtype=np.float32)
    light = np.sum([o.light * o.coverage[..., None] for o in overlays], axis=0, dtype=np.float32)
    weight = np.maximum(coverage * np.float32(len(overlays)), np.float32(1e-6))[..., None]
    return Overlay(np.asarray(light / weight, dtype=np.float32), np.asarray(coverage), overlays[0].depth)
