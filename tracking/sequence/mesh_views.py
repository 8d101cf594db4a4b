"""Meshes as if they were filmed: virtual cameras around each mesh turn it into silhouettes for the tracker.

The tracker matches outlines, and outlines need no correspondence: a sequence of meshes that have nothing in common
but the subject (scans, visual hulls) is tracked from its shadows in a ring of cameras that goes along with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from calibration.cameras.rig import Rig
from calibration.cameras.ring import ring_rig
from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError
from tracking.observations.contours import Observation, observe
from tracking.observations.rasteriser import cast_masks
from tracking.observations.surface import Surface
from tracking.sequence.track import Track

__all__ = ["MeshSequence", "MeshViews", "views_around"]

#: Heights of the cameras, in turn, as shares of their distance: level, from above, from below.
HEIGHTS = (0.1, 0.75, -0.35)

#: Voxels of a mesh's distance field along its longest side.
CELLS = 90


def middle(vertices: Floats, faces: Ints) -> Floats:
    """Return the centre (3,) of a surface, weighted by area: the same however it is cut into triangles."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return np.asarray((area[:, None] * (a + b + c)).sum(axis=0) / (3.0 * area.sum()))


@dataclass(frozen=True, eq=False)
class MeshViews:
    """Virtual cameras around the origin, to which each mesh is brought by its middle."""

    rig: Rig

    def observe(self, vertices: Floats, faces: Ints) -> tuple[Observation, Floats]:
        """Return the silhouettes of a mesh, and the middle (3,) that was brought to the origin, mm."""
        centre = middle(vertices, faces)
        return observe(cast_masks(self.rig, vertices - centre, faces)), centre


def views_around(reach: float, *, cameras: int = 10, pixels: int = 480) -> MeshViews:
    """Place virtual cameras that see whatever lies within ``reach`` mm of the origin."""
    distance = 4.0 * reach
    heights = distance * np.array(HEIGHTS)
    rig = ring_rig(cameras, radius=distance, height=heights, size=(pixels, pixels), field_mm=2.3 * reach)
    return MeshViews(rig)


class MeshSequence:
    """A sequence of meshes seen by virtual cameras.

    Attributes:
        rig: the cameras. middles: (T, 3) of the meshes, mm.
    """

    def __init__(
        self,
        load: Callable[[int], tuple[Floats, Ints]],
        frames: Iterable[int],
        *,
        cameras: int = 10,
        pixels: int = 480,
        surfaces: bool = False,
    ) -> None:
        """Measure all meshes once.

        Args:
            load: gives the vertices (V, 3), mm, z up, and faces of a frame.
            frames: the frames of the sequence, by number.
            cameras: how many virtual cameras.
            pixels: width and height of their images.
            surfaces: whether each frame carries its mesh, too, with its distance field, for a solver that fits to it.
        """
        self._load, self._surfaces = load, surfaces
        self._frames = list(frames)
        if not self._frames:
            raise InputError("a mesh sequence needs at least one mesh")
        reach, middles = 0.0, []
        for frame in self._frames:
            vertices, faces = load(frame)
            middles.append(middle(vertices, faces))
            reach = max(reach, float(np.linalg.norm(vertices - middles[-1], axis=1).max()))
        self.middles = np.array(middles)
        self._views = views_around(reach, cameras=cameras, pixels=pixels)
        self.rig = self._views.rig

    def __len__(self) -> int:
        return len(self._frames)

    def observe(self, index: int) -> Observation:
        """Return the silhouettes of the mesh at a place in the sequence."""
        vertices, faces = self._load(self._frames[index])
        look, centre = self._views.observe(vertices, faces)
        if not self._surfaces:
            return look
        voxel = float(np.ptp(vertices, axis=0).max()) / CELLS
        return look.with_surface(Surface.of_mesh(vertices - centre, faces, voxel=voxel))

    def in_place(self, track: Track) -> Track:
        """Return a track of these silhouettes with every frame brought back to its mesh's own place."""
        fits = tuple(
            None if fit is None else replace(fit, pose=replace(fit.pose, centres=fit.pose.centres + at))
            for fit, at in zip(track.fits, self.middles, strict=True)
        )
        return replace(track, centres=track.centres + self.middles[:, None], fits=fits)
