"""Ray queries on triangle meshes: the one module that loads Open3D (Embree underneath).

Open3D links against libusb-1.0, which a fresh machine lacks; `libusb_package` carries it and it is loaded first.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import libusb_package
import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.cameras.camera import Camera
from calibration.foundation.arrays import Bools, Floats, Singles
from calibration.foundation.errors import InputError

__all__ = ["Hits", "SurfaceScene", "cast_silhouette", "open3d"]


@cache
def open3d() -> Any:
    """Return the Open3D module, loaded once, with libusb-1.0 before it."""
    library = libusb_package.get_library_path()
    if library is not None:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    return importlib.import_module("open3d")


@dataclass(frozen=True, eq=False)
class Hits:
    """First surface met by each of n rays.

    Attributes:
        distance: (n,) along the ray in units of its direction, infinity where nothing is met.
        mesh: (n,) index of the mesh met, -1 for none.
        triangle: (n,) index of the triangle in its mesh; meaningless where ``mesh`` is -1.
        barycentric: (n, 2) weights of the triangle's second and third corner.
    """

    distance: Singles
    mesh: NDArray[np.int32]
    triangle: NDArray[np.int64]
    barycentric: Singles

    @property
    def found(self) -> Bools:
        """(n,) whether the ray met anything."""
        found: Bools = self.mesh >= 0
        return found


class SurfaceScene:
    """Triangle meshes ready for ray and distance queries (float32 inside).

    Args:
        meshes: pairs of vertices (V, 3) mm and faces (F, 3).
        threads: of the queries; 1 keeps a worker on its core, 0 takes all. Results do not depend on it.
    """

    def __init__(self, meshes: Sequence[tuple[ArrayLike, ArrayLike]], *, threads: int = 1) -> None:
        module = open3d()
        self._threads = threads
        self._scene = module.t.geometry.RaycastingScene(nthreads=threads)
        self._tensor = module.core.Tensor
        for number, (vertices, faces) in enumerate(meshes):
            corners = np.ascontiguousarray(vertices, dtype=np.float32)
            triangles = np.ascontiguousarray(faces, dtype=np.uint32)
            if corners.ndim != 2 or corners.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3:
                raise InputError(
                    f"mesh {number}: wanted vertices (V, 3) and faces (F, 3), got {corners.shape} and {triangles.shape}"
                )
            if len(triangles) and int(triangles.max()) >= len(corners):
                raise InputError(f"mesh {number}: face index {triangles.max()} but only {len(corners)} vertices")
            if not np.isfinite(corners).all():
                raise InputError(f"mesh {number}: vertices must be finite numbers")
            self._scene.add_triangles(self._tensor(corners), self._tensor(triangles))

    def first_hits(self, origins: ArrayLike, directions: ArrayLike) -> Hits:
        """Return the first surface met from ``origins`` (n, 3) or (3,) along ``directions`` (n, 3)."""
        answer = self._scene.cast_rays(self._tensor(_pack(origins, directions)), nthreads=self._threads)
        mesh = answer["geometry_ids"].numpy().astype(np.int64)
        return Hits(
            distance=answer["t_hit"].numpy(),
            mesh=np.where(mesh == self._scene.INVALID_ID, -1, mesh).astype(np.int32),
            triangle=answer["primitive_ids"].numpy().astype(np.int64),
            barycentric=answer["primitive_uvs"].numpy(),
        )

    def occluded(self, origins: ArrayLike, directions: ArrayLike, *, reach: float = np.inf) -> Bools:
        """Tell which rays (n, 3) meet anything nearer than ``reach`` times their direction's length."""
        blocked: Bools = self._scene.test_occlusions(
            self._tensor(_pack(origins, directions)), tnear=0.0, tfar=float(reach), nthreads=self._threads
        ).numpy()
        return blocked

    def all_hits(self, origins: ArrayLike, directions: ArrayLike) -> tuple[NDArray[np.int64], Singles]:
        """Return every surface met: ray index (m,) and distance (m,), in order of ray.

        A ray through a shared edge may be counted twice: `studio.attenuation` is the watertight way.
        """
        answer = self._scene.list_intersections(self._tensor(_pack(origins, directions)), nthreads=self._threads)
        return answer["ray_ids"].numpy().astype(np.int64), answer["t_hit"].numpy()

    def signed_distances(self, points: ArrayLike) -> Floats:
        """Return the distance of ``points`` (n, 3) to the surface, mm, negative inside (closed meshes)."""
        queries = self._tensor(np.ascontiguousarray(points, dtype=np.float32))
        # With one sample single points flip sign where the ray grazes an edge; three vote.
        answer: Floats = (
            self._scene.compute_signed_distance(queries, nthreads=self._threads, nsamples=3).numpy().astype(np.float64)
        )
        return answer

    def inside(self, points: ArrayLike) -> Bools:
        """Tell which ``points`` (n, 3) lie inside the closed meshes."""
        inside: Bools = self.signed_distances(points) < 0.0
        return inside


def cast_silhouette(camera: Camera, vertices: ArrayLike, faces: ArrayLike, *, threads: int = 1) -> Bools:
    """Return the mask (H, W) of the pixels whose centre's ray meets the mesh."""
    width, height = camera.size
    columns, rows = np.meshgrid(np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64))
    origins, directions = camera.rays(np.stack([columns.ravel(), rows.ravel()], axis=1))
    seen = np.isfinite(directions).all(axis=1)
    mask = np.zeros(height * width, dtype=np.bool_)
    scene = SurfaceScene([(vertices, faces)], threads=threads)
    origins = np.broadcast_to(origins, directions.shape)
    mask[seen] = scene.occluded(origins[seen], directions[seen])
    return mask.reshape(height, width)


def _pack(origins: ArrayLike, directions: ArrayLike) -> Singles:
    heading = np.asarray(directions)
    rays = np.empty((len(heading), 6), dtype=np.float32)
    rays[:, :3] = origins
    rays[:, 3:] = heading
    return rays
