"""Pictures of a moving surface on a stage through a real lens, by ray casting.

Each pixel's ray is exact for its lens. Pixels crossed by an apparent contour are sampled some 70 times, others once.
What stands still is rendered once per camera, one layer per lamp, so that a cast shadow only switches layers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Floats, Ints, Singles
from capture.raycasting import Hits, SurfaceScene
from capture.studio.light.pixels import CORNERS, SUBPIXELS, PixelRays, contour_pixels, pixel_rays
from capture.studio.light.shading import (
    blocked_light,
    interpolate_hits,
    lamp_light,
    reduce_channels,
    skin_reflectance,
)
from capture.studio.scene.stage import Stage
from capture.studio.scene.surfaces import MovingSurface, shading_normals

__all__ = ["LightPicture", "LightView", "Overlay", "SubjectPose"]

#: Subject samples that are shaded in an edge pixel; its coverage comes from all.
SHADED_SAMPLES = 2
#: Where a pixel of what stands still is sampled.
PLATE_SAMPLES = SUBPIXELS[:8]
#: Lines across an edge pixel on which the edge is looked for, and halvings on each (1/64 px).
EDGE_LINES, EDGE_STEPS = 8, 5


@dataclass(frozen=True, eq=False)
class SubjectPose:
    """The subject at one instant, ready for rays; shared by all cameras.

    Attributes:
        surface: its skin.
        vertices: (V, 3) at this instant, mm.
        others: meshes that cast shadows with it but are drawn otherwise.
    """

    surface: MovingSurface
    vertices: Floats
    others: tuple[tuple[Floats, Ints], ...] = ()

    @cached_property
    def scene(self) -> SurfaceScene:
        """For rays."""
        return SurfaceScene([(self.vertices, self.surface.faces)])

    @cached_property
    def blockers(self) -> SurfaceScene:
        """Everything that moves and casts shadows."""
        if not self.others:
            return self.scene
        return SurfaceScene([(self.vertices, self.surface.faces), *self.others])

    @cached_property
    def normals(self) -> Floats:
        """(V, 3) unit."""
        return shading_normals(self.vertices, self.surface.faces)


@dataclass(frozen=True, eq=False)
class LightPicture:
    """What arrives at the sensor, before gain and noise.

    Attributes:
        light: (H, W, 1 or 3) linear light; 1 is a white surface in full light. Three channels are BGR.
        coverage: (H, W) share of each pixel that the visible subject covers, 0 to 1.
    """

    light: Singles
    coverage: Singles

    @property
    def mask(self) -> Bools:
        """(H, W) true silhouette: the pixels covered by half or more."""
        mask: Bools = self.coverage >= 0.5
        return mask


@dataclass(frozen=True, eq=False)
class Overlay:
    """Something drawn over the stage before the subject.

    Attributes:
        light: (H, W, C) its light where it covers a pixel.
        coverage: (H, W) share of each pixel it covers.
        depth: (H, W) distance along the pixel's ray, infinite where it is not.
    """

    light: Singles
    coverage: Singles
    depth: Singles


@dataclass(frozen=True, eq=False)
class _Still:
    """What stands still, per pixel: layers (L + 1, n, C) of light, ambient first; points (n, 3); depth (n,)."""

    layers: Singles
    points: Floats
    depth: Singles


class LightView:
    """One camera on a stage; what stands still is computed at the first picture and kept."""

    def __init__(self, camera: Camera, stage: Stage) -> None:
        self.camera = camera
        self.stage = stage
        self._chips = None if stage.chips is None else SurfaceScene([stage.chips])

    @cached_property
    def rays(self) -> PixelRays:
        """Of all pixels."""
        return pixel_rays(self.camera)

    @cached_property
    def _seen(self) -> Bools:
        return np.asarray(np.isfinite(self.rays.directions).all(axis=2))

    @cached_property
    def _still(self) -> _Still:
        """Layers sampled over each pixel, depth and points at its centre."""
        height, width = self._seen.shape
        rows, columns = np.nonzero(self._seen)
        middle = self._static(self.rays.origin, self.rays.directions[rows, columns])
        total = np.zeros_like(middle.layers)
        for offset in PLATE_SAMPLES:
            directions = self.rays.between(rows, columns, offset[None])[:, 0]
            total += self._static(self.rays.origin, directions).layers
        layers = np.zeros((len(total), height, width, total.shape[2]), dtype=np.float32)
        layers[:, rows, columns] = total / np.float32(len(PLATE_SAMPLES))
        points = np.full((height, width, 3), np.nan)
        points[rows, columns] = middle.points
        depth = np.full((height, width), np.inf, dtype=np.float32)
        depth[rows, columns] = middle.depth
        return _Still(layers, points, depth)

    @cached_property
    def _chip_edges(self) -> Bools:
        """(H, W) pixels where bedding stands before something farther."""
        depth = np.nan_to_num(self._still.depth, posinf=1e6)
        if self._chips is None:
            return np.zeros(depth.shape, dtype=np.bool_)
        near = cv2.erode(depth, np.ones((3, 3), np.uint8))
        jump: Bools = (cv2.dilate(depth, np.ones((3, 3), np.uint8)) - near) > 0.02 * self.stage.scale
        return jump

    @cached_property
    def plate(self) -> Singles:
        """(H, W, C) linear light without the subject."""
        light: Singles = self._still.layers.sum(axis=0)
        if self._mirror is not None:
            share, _, _, reflected = self._mirror
            light = light + share[..., None] * (reflected - light)
        return light

    def _static(self, origins: Floats, directions: Singles) -> _Still:
        """Light of floor, bedding and backdrop along rays (n, 3), by lamp."""
        stage, count = self.stage, len(directions)
        heading = directions.astype(np.float64)
        start = np.broadcast_to(np.asarray(origins, dtype=np.float64), heading.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            down = -start[:, 2] / heading[:, 2]
        depth = np.where((down > 0.0) & np.isfinite(down), down, np.inf)
        points = start + np.where(np.isfinite(depth), depth, 0.0)[:, None] * heading
        on_floor = np.isfinite(depth) & (np.einsum("ij,ij->i", points[:, :2], points[:, :2]) < stage.floor_radius**2)
        depth = np.where(on_floor, depth, np.inf)
        normals = np.zeros((count, 3))
        normals[:, 2] = 1.0
        reflectance = np.zeros((count, 3), dtype=np.float32)
        reflectance[on_floor] = stage.floor_reflectance(points[on_floor])
        lit = on_floor.copy()
        if self._chips is not None and stage.chips is not None:
            hits = self._chips.first_hits(start, heading)
            nearer = hits.distance < depth
            depth = np.where(nearer, hits.distance, depth)
            points[nearer] = start[nearer] + depth[nearer, None] * heading[nearer]
            vertices, faces = stage.chips
            corners = vertices[faces[hits.triangle[nearer]]]
            across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            normals[nearer] = across / np.linalg.norm(across, axis=1, keepdims=True)
            reflectance[nearer] = stage.chip_reflectance(points[nearer])
            lit |= nearer
        layers = np.zeros((len(stage.lamps) + 1, count, 3), dtype=np.float32)
        layers[0, lit] = reflectance[lit] * stage.ambient.astype(np.float32)
        layers[0, ~lit] = stage.backdrop(heading[~lit])
        bias = 1e-4 * stage.scale
        factor = stage.unevenness(points[lit])[:, None]
        for number, lamp in enumerate(stage.lamps):
            light = reflectance[lit] * lamp_light(lamp, points[lit], normals[lit]) * factor
            if self._chips is not None and stage.options.shadows > 0.0:
                lifted = points[lit] + bias * normals[lit]
                hidden = self._chips.occluded(lifted, lamp.position - lifted, reach=1.0)
                light *= blocked_light(hidden, stage.options)[:, None]
            layers[number + 1, lit] = light
        return _Still(reduce_channels(layers, stage.options), points, depth.astype(np.float32))

    @cached_property
    def _mirror(self) -> tuple[Singles, Floats, Floats, Singles] | None:
        """Far walls as mirrors: share (H, W), exit points and mirrored directions (H, W, 3), static light (H, W, C)."""
        if self.stage.walls is None:
            return None
        half, top = self.stage.walls
        directions = self.rays.directions.astype(np.float64)
        origin = self.rays.origin
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (np.sign(directions[..., :2]) * half - origin[:2]) / directions[..., :2]
        reach = np.where(np.isfinite(reach), reach, np.inf)
        wall = np.argmin(reach, axis=2)
        exit_at = np.take_along_axis(reach, wall[..., None], axis=2)[..., 0]
        points = origin + np.where(np.isfinite(exit_at), exit_at, 0.0)[..., None] * directions
        hit = (
            (exit_at > 0.0)
            & np.isfinite(exit_at)
            & (exit_at < self._still.depth)
            & (points[..., 2] > 0.0)
            & (points[..., 2] < top)
            & (np.abs(points[..., :2]).max(axis=2) <= half * (1.0 + 1e-9))
        )
        bounced = directions.copy()
        np.put_along_axis(bounced, wall[..., None], -np.take_along_axis(bounced, wall[..., None], 2), 2)
        share = np.where(hit, np.float32(self.stage.options.reflections), np.float32(0.0))
        light = np.zeros((*hit.shape, self._still.layers.shape[3]), dtype=np.float32)
        rows, columns = np.nonzero(hit)
        light[rows, columns] = self._static(
            points[rows, columns], bounced[rows, columns].astype(np.float32)
        ).layers.sum(axis=0)
        return share.astype(np.float32), points, bounced, light

    def picture(self, subject: SubjectPose, overlay: Overlay | None = None) -> LightPicture:
        """Render the subject on the stage, and before or behind ``overlay``."""
        height, width = self._seen.shape
        base = self._shadowed(subject)
        depth = self._still.depth
        if overlay is not None:
            base += overlay.coverage[..., None] * (overlay.light - base)
            depth = np.minimum(depth, overlay.depth)
        coverage = np.zeros((height, width), dtype=np.float32)
        pixels = self.camera.project(subject.vertices)
        edge = np.zeros((height, width), dtype=np.bool_)
        contour_pixels(pixels, self.rays.origin, subject.vertices, subject.surface.faces, subject.surface.edges, edge)
        box = _box(pixels, width, height)
        if box is None:
            return LightPicture(self._reflected(base, coverage, subject), coverage)
        inside = np.zeros_like(edge)
        inside[box] = True
        edge = (edge | self._chip_edges) & inside & self._seen

        rows, columns = np.nonzero(inside & self._seen & ~edge)
        hits = subject.scene.first_hits(self.rays.origin, self.rays.directions[rows, columns])
        visible = hits.found & (hits.distance < depth[rows, columns])
        rows, columns = rows[visible], columns[visible]
        base[rows, columns] = self._shade(subject, hits, np.flatnonzero(visible))
        coverage[rows, columns] = 1.0

        rows, columns = np.nonzero(edge)
        if len(rows):
            self._fill_edges(subject, rows, columns, base, coverage, depth)
        return LightPicture(self._reflected(base, coverage, subject), coverage)

    def _fill_edges(
        self, subject: SubjectPose, rows: Ints, columns: Ints, base: Singles, coverage: Singles, depth: Singles
    ) -> None:
        """Blend the subject into the pixels that its contours cross."""
        offsets = np.concatenate([SUBPIXELS, CORNERS])
        grid = self._sees(subject, rows, columns, offsets, depth)
        # Shade the first covered samples of each pixel; the samples of one pixel differ little.
        chosen = grid & (np.cumsum(grid, axis=1) <= SHADED_SAMPLES)
        pixel, sample = np.nonzero(chosen)
        directions = self.rays.between(rows[pixel], columns[pixel], offsets[sample][:, None])[:, 0]
        hits = subject.scene.first_hits(self.rays.origin, directions)
        found = np.flatnonzero(hits.found)
        total = np.zeros((len(rows), base.shape[2]), dtype=np.float32)
        np.add.at(total, pixel[found], self._shade(subject, hits, found))
        number = np.bincount(pixel[found], minlength=len(rows))
        mean = total / np.maximum(number, 1).astype(np.float32)[:, None]
        share = grid[:, : len(SUBPIXELS)].mean(axis=1, dtype=np.float32)
        mixed = np.flatnonzero(grid.any(axis=1) & ~grid.all(axis=1))
        samples = grid[mixed, : len(SUBPIXELS)]
        share[mixed] = self._edge_share(subject, rows[mixed], columns[mixed], samples, depth)
        base[rows, columns] += share[:, None] * (mean - base[rows, columns])
        coverage[rows, columns] = share

    def _edge_share(self, subject: SubjectPose, rows: Ints, columns: Ints, grid: Bools, depth: Singles) -> Singles:
        """Covered share (n,) of pixels crossed by one edge, to some 0.005, from their samples (n, 16).

        Sixteen samples place a slanted edge to 0.1 px only. Here the edge is found by bisection on EDGE_LINES lines
        across the pixel, which run along the image axis nearer to the edge's normal. Where that does not fit the
        samples (two edges, a corner), their mean stands.
        """
        inside = grid.astype(np.float64)
        lean = np.abs(inside @ SUBPIXELS)
        axis = np.where(lean[:, 0] >= lean[:, 1], 0, 1)[:, None]
        across = np.tile((np.arange(EDGE_LINES) + 0.5) / EDGE_LINES - 0.5, (len(rows), 1))

        def sees(pixel: Ints, line: Ints, along: Floats) -> Bools:
            swap = axis[pixel, 0] == 0
            aside = across[pixel, line]
            offsets = np.stack([np.where(swap, along, aside), np.where(swap, aside, along)], axis=-1)
            return self._sees(subject, rows[pixel], columns[pixel], offsets[:, None], depth)[:, 0]

        pixel, line = (index.ravel() for index in np.indices(across.shape))
        at_low, at_high = sees(pixel, line, np.full(len(pixel), -0.5)), sees(pixel, line, np.full(len(pixel), 0.5))
        covered = at_low.astype(np.float64)
        open_ = np.flatnonzero(at_low != at_high)  # lines that the edge crosses
        low, high = np.full(len(open_), -0.5), np.full(len(open_), 0.5)
        for _ in range(EDGE_STEPS):
            middle = 0.5 * (low + high)
            same = sees(pixel[open_], line[open_], middle) == at_low[open_]
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        edge = 0.5 * (low + high) + 0.5
        covered[open_] = np.where(at_low[open_], edge, 1.0 - edge)
        fine = covered.reshape(across.shape).mean(axis=1)
        coarse = inside.mean(axis=1)
        return np.asarray(np.where(np.abs(fine - coarse) < 0.2, fine, coarse), dtype=np.float32)

    def _sees(self, subject: SubjectPose, rows: Ints, columns: Ints, offsets: Floats, depth: Singles) -> Bools:
        """Tell which rays at offsets ([n,] s, 2) in n pixels meet the visible subject, (n, s)."""
        samples = offsets.shape[-2]
        directions = self.rays.between(rows, columns, offsets).reshape(-1, 3)
        limit = depth[rows, columns]
        reach = np.repeat(np.where(np.isfinite(limit), limit * (1.0 + 1e-4), 1e6).astype(np.float32), samples)
        if self._chips is not None:
            # Next to a chip the depth of the pixel's centre may be the chip's: ask the chips for each sample.
            chips = self._chips.first_hits(self.rays.origin, directions)
            reach = np.where(chips.found, chips.distance, np.float32(1e6))
        directions *= reach[:, None]
        return subject.scene.occluded(self.rays.origin, directions, reach=1.0).reshape(len(rows), samples)

    def _shade(self, subject: SubjectPose, hits: Hits, chosen: Ints) -> Singles:
        """Light (n, C) that leaves the subject at the chosen hits."""
        stage = self.stage
        surface = subject.surface
        points, normals, rest, colours = interpolate_hits(
            hits.triangle[chosen],
            hits.barycentric[chosen],
            surface.faces,
            subject.vertices,
            subject.normals,
            surface.rest,
            surface.colours,
        )
        reflectance = skin_reflectance(stage, rest, colours)
        light = np.tile(stage.ambient.astype(np.float32), (len(points), 1))
        # Light from everywhere is mostly from above.
        light *= (0.75 + 0.25 * normals[:, 2:3]).astype(np.float32)
        factor = stage.unevenness(points)[:, None]
        lifted = points + 0.004 * stage.scale * normals
        for lamp in stage.lamps:
            falling = lamp_light(lamp, points, normals) * factor
            if stage.options.shadows > 0.0:
                lit = np.flatnonzero(falling[:, 0] > 0.0)
                hidden = subject.blockers.occluded(lifted[lit], lamp.position - lifted[lit], reach=1.0)
                falling[lit] *= blocked_light(hidden, stage.options)[:, None]
            light += falling
        return reduce_channels(reflectance * light, stage.options)

    def _shadowed(self, subject: SubjectPose) -> Singles:
        """What stands still with the subject's shadows on it, (H, W, C)."""
        still, stage = self._still, self.stage
        light: Singles = still.layers.sum(axis=0)
        if stage.options.shadows == 0.0:
            return light
        height, width = self._seen.shape
        for number, lamp in enumerate(stage.lamps):
            moving = np.concatenate([subject.vertices, *(vertices for vertices, _ in subject.others)])
            fall = lamp.position[2] - moving[:, 2]
            if fall.min() <= 0.0:  # the body reaches above the lamp: its shadow may fall anywhere
                box: tuple[slice, slice] | None = (slice(0, height), slice(0, width))
            else:
                stretch = (lamp.position[2] / fall)[:, None]
                floor = lamp.position + stretch * (moving - lamp.position)
                corners = np.concatenate([floor, moving if self._chips is not None else floor])
                box = _box(self.camera.project(corners), width, height)
            if box is None:
                continue
            points = still.points[box].reshape(-1, 3)
            known = np.flatnonzero(np.isfinite(still.depth[box].ravel()))
            lifted = points[known]
            lifted[:, 2] += 1e-3 * stage.scale
            blocked = np.zeros(len(points), dtype=np.float32)
            blocked[known] = subject.blockers.occluded(lifted, lamp.position - lifted, reach=1.0)
            rows, columns = box
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            # A lamp has a size: its shadow's edge is about a pixel soft.
            soft = cv2.GaussianBlur(blocked.reshape(shape), (0, 0), 0.7, borderType=cv2.BORDER_REPLICATE)
            light[box] -= np.float32(stage.options.shadows) * soft[..., None] * still.layers[number + 1][box]
        return light

    def _reflected(self, light: Singles, coverage: Singles, subject: SubjectPose) -> Singles:
        """Add the mirror images in the far walls."""
        if self._mirror is None:
            return light
        share, points, bounced, reflected = self._mirror
        rows, columns = np.nonzero(share > 0.0)
        seen = reflected.copy()
        if len(rows):
            hits = subject.scene.first_hits(points[rows, columns], bounced[rows, columns])
            found = np.flatnonzero(hits.found)
            seen[rows[found], columns[found]] = self._shade(subject, hits, found)
        # The subject stands inside the walls, so it hides its own mirror image.
        weight = (share * (1.0 - coverage))[..., None]
        return np.asarray(light + weight * (seen - light))


def _box(pixels: Floats, width: int, height: int) -> tuple[slice, slice] | None:
    """Return the image box that holds projected points (n, 2), the whole image if some are behind the camera."""
    if not np.isfinite(pixels).all():
        if not np.isfinite(pixels).any():
            return None
        return slice(0, height), slice(0, width)
    low = np.floor(pixels.min(axis=0)).astype(int) - 2
    high = np.ceil(pixels.max(axis=0)).astype(int) + 3
    left, top = max(int(low[0]), 0), max(int(low[1]), 0)
    right, bottom = min(int(high[0]), width), min(int(high[1]), height)
    if left >= right or top >= bottom:
        return None
    return slice(top, bottom), slice(left, right)
