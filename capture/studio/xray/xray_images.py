"""X-ray pictures: what is left of a beam after bones, soft tissue and metal (Beer-Lambert), seen by an intensifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bytes, Floats, Ints, Singles
from calibration.foundation.errors import InputError
from capture.studio.light.pixels import PixelRays, pixel_rays
from capture.studio.xray.attenuation import add_mesh_lengths, add_sphere_lengths
from capture.studio.xray.intensifier import Intensifier

__all__ = ["BONE", "METAL", "SOFT_TISSUE", "TANTALUM", "Beads", "Solid", "XrayOptions", "XrayView"]

#: Linear attenuation, 1/mm, at the 60 keV or so of a fluoroscope: water-like tissue, cortical bone, steel.
SOFT_TISSUE, BONE, METAL = 0.0205, 0.060, 0.95
#: 1/mm, tantalum of implanted beads.
TANTALUM = 4.5
#: Grey levels of the unattenuated beam.
FULL_SCALE = 215.0


@dataclass(frozen=True, eq=False)
class Solid:
    """A closed mesh that attenuates.

    Attributes:
        vertices: (V, 3) mm.
        faces: (F, 3) outward.
        attenuation: 1/mm, in excess of what the solid lies in: bone in tissue counts ``BONE - SOFT_TISSUE``.
    """

    vertices: Floats
    faces: Ints
    attenuation: float


@dataclass(frozen=True, eq=False)
class Beads:
    """Metal spheres: ``centres`` (n, 3) and ``radii`` (n,) mm, ``attenuation`` 1/mm in excess of what is around."""

    centres: Floats
    radii: Floats
    attenuation: float = METAL


@dataclass(frozen=True)
class XrayOptions:
    """Difficulty of the X-ray images; each off by default.

    Attributes:
        seed: of the quantum noise.
        photons: counted per pixel in the open beam; 0 means no noise. The relative noise is 1 / sqrt(photons).
        scatter: share of the light that arrives as a wide glow, 0 to 1.
        focal_blur: standard deviation of the focal spot and screen blur, px.
        oversampling: rays along each side of a pixel through the bodies; 1 takes its centre only.
    """

    seed: int = 0
    photons: float = 0.0
    scatter: float = 0.0
    focal_blur: float = 0.0
    oversampling: int = 1

    def __post_init__(self) -> None:
        if self.photons < 0.0 or not 0.0 <= self.scatter < 1.0 or self.focal_blur < 0.0 or self.oversampling < 1:
            raise InputError(f"X-ray options: photons >= 0, scatter in 0 to 1, blur >= 0, oversampling >= 1: {self}")


class XrayView:
    """One X-ray source and intensifier.

    Args:
        camera: the ideal pinhole: its centre is the source, its pixels those of the undistorted image.
        intensifier: bends the image and dims its rim; None gives the ideal image.
        number: place in the rig; tells apart the noise of two views.
    """

    def __init__(
        self, camera: Camera, options: XrayOptions, *, intensifier: Intensifier | None = None, number: int = 0
    ) -> None:
        self.camera = camera
        self.options = options
        self.intensifier = intensifier
        self.number = number

    @cached_property
    def rays(self) -> PixelRays:
        """Rays of the observed pixels."""
        return pixel_rays(self.camera, None if self.intensifier is None else self.intensifier.remove)

    @cached_property
    def _offsets(self) -> Floats:
        steps = (np.arange(self.options.oversampling) + 0.5) / self.options.oversampling - 0.5
        return np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)

    def observed(self, points: Floats) -> Floats:
        """Return the observed pixels (..., 2) of world points (..., 3)."""
        ideal = self.camera.project(points)
        return ideal if self.intensifier is None else self.intensifier.apply(ideal)

    def optical_depth(self, solids: Sequence[Solid], offset: Floats | None = None) -> Floats:
        """Return the attenuation (H, W) summed along each pixel's ray, at ``offset`` (2,) px from its centre."""
        width, height = self.camera.size
        depth = np.zeros((height, width))
        directions = self.rays.directions.astype(np.float64)
        if offset is not None:
            directions = directions + offset[0] * self.rays.across + offset[1] * self.rays.down
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        # Turned by a millionth of a pixel in no special direction: no ray then runs exactly through a vertex, where
        # rounding could make the edges around it contradict each other.
        directions = np.nan_to_num(directions) + 1e-9 * np.array([0.614, -0.353, 0.706])
        for solid in solids:
            vertices = np.ascontiguousarray(solid.vertices, dtype=np.float64)
            faces = np.ascontiguousarray(solid.faces, dtype=np.int64)
            pixels = self.observed(vertices) - (0.0 if offset is None else offset)
            add_mesh_lengths(self.rays.origin, directions, vertices, faces, pixels, solid.attenuation, depth)
        return depth

    def transmission(self, solids: Sequence[Solid], beads: Sequence[Beads] = ()) -> Singles:
        """Return the share (H, W) of the beam that arrives: exp(-sum of attenuation times length)."""
        metal = np.zeros(self.camera.size[::-1])
        for group in beads:
            centres = np.ascontiguousarray(group.centres, dtype=np.float64)
            pixels = self.observed(centres)
            distance = np.linalg.norm(centres - self.rays.origin, axis=1)
            # px per rad, from the ray field at the image's middle; half as much again for the bent rim
            row, column = (n // 2 for n in self.camera.size[::-1])
            per_rad = 1.0 / float(np.linalg.norm(self.rays.across[row, column]))
            reach = 1.5 * group.radii / distance * per_rad + 1.0
            add_sphere_lengths(
                self.rays.origin,
                np.nan_to_num(self.rays.directions.astype(np.float64)),
                self.rays.across,
                self.rays.down,
                centres,
                np.asarray(group.radii, dtype=np.float64),
                pixels,
                reach,
                group.attenuation,
                4,
                metal,
            )
        if self.options.oversampling == 1:
            depth = self.optical_depth(solids)
            return np.asarray(np.exp(-(depth + metal)), dtype=np.float32)
        total = np.zeros_like(metal)
        for offset in self._offsets:
            total += np.exp(-self.optical_depth(solids, offset))
        return np.asarray(total / len(self._offsets) * np.exp(-metal), dtype=np.float32)

    def expose(self, transmission: Singles, *, frame: int, take: int = 0) -> Bytes:
        """Return the 8-bit image (H, W): glow, blur, vignetting, quantum noise."""
        light = transmission
        if self.options.focal_blur > 0.0:
            light = cv2.GaussianBlur(light, (0, 0), self.options.focal_blur, borderType=cv2.BORDER_REPLICATE)
        if self.options.scatter > 0.0:
            # Scatter is smooth over a tenth of the image: blurred at an eighth of the size, to spare the time.
            small = cv2.resize(light, None, fx=0.125, fy=0.125, interpolation=cv2.INTER_AREA)
            glow = cv2.GaussianBlur(small, (0, 0), 0.1 * small.shape[1], borderType=cv2.BORDER_REPLICATE)
            glow = cv2.resize(glow, (light.shape[1], light.shape[0]), interpolation=cv2.INTER_LINEAR)
            light = (1.0 - np.float32(self.options.scatter)) * light + np.float32(self.options.scatter) * glow
        if self.intensifier is not None:
            light = light * self.intensifier.aperture()
        if self.options.photons > 0.0:
            rng = np.random.default_rng([self.options.seed, 503, take, self.number, frame])
            counted = rng.poisson(np.maximum(light, 0.0) * self.options.photons)
            light = (counted / self.options.photons).astype(np.float32)
        return np.asarray(np.clip(np.rint(light * FULL_SCALE), 0, 255), dtype=np.uint8)
