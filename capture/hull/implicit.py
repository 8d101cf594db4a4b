"""The implicit engine: field from signed distances, coarse to fine, then marching cubes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.cameras.camera import Camera
from calibration.cameras.rig import Rig
from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError
from capture.hull.agreement import silhouette_agreement
from capture.hull.blocks import BLOCK, Grid, active_blocks
from capture.hull.bounds import Box, bounding_box
from capture.hull.distance import DistanceImage, Extent, Outside, distance_image, pack_distances
from capture.hull.facing import facing_cameras
from capture.hull.field import FieldViews, surface_normals
from capture.hull.marching import enclosed_volume, extent_of, march
from capture.hull.result import Hull, HullFlag, SignedField, no_hull
from capture.hull.sampling import dense_field, interpolation_error, project_corners, sample_blocks
from capture.hull.scales import view_scales

__all__ = ["Evidence", "gather", "hull_field", "implicit_hull"]

Silhouette = NDArray[Any] | DistanceImage | None
#: Cells along the longest side that an automatic voxel size may give.
_MOST_CELLS = 104
#: Projections are interpolated inside blocks while that is this good, px.
_INTERPOLATION_PX = 0.05


@dataclass(frozen=True, eq=False)
class Evidence:
    """The views of one frame that take part in a hull, ready for the engines.

    Attributes:
        cameras, images: those of the used views, in the rig's order.
        used: (C,) which they are.
        box: where the subject is, None if the silhouettes contradict each other.
        least: number of views that must be able to tell about a point.
        flags: `HullFlag` code of what was found so far.
    """

    cameras: list[Camera]
    images: list[DistanceImage]
    used: Bools
    box: Box | None
    least: int
    flags: int


def gather(
    silhouettes: Sequence[Silhouette],
    rig: Rig,
    *,
    views: NDArray[np.bool_] | None = None,
    bounds: Box | None = None,
    tolerated: int = 0,
    least_views: int = 2,
    wanted_views: int | None = None,
    outside: Outside = Outside.AUTO,
    everywhere: bool = False,
) -> Evidence:
    """Sort out which views take part and where the subject is.

    A view takes part if it is not flagged (``views`` False), saw something and is not all white. The frame is
    marked when fewer than ``wanted_views`` (by default three quarters of the rig) do, or some see a part only.
    ``everywhere`` as in `distance_image`.
    """
    if len(silhouettes) != len(rig):
        raise InputError(f"hull: wanted one silhouette per camera of the rig ({len(rig)}), got {len(silhouettes)}")
    if tolerated < 0 or least_views < 1:
        raise InputError("hull: tolerated views must be 0 or more and the least number of views 1 or more")
    flags = HullFlag(0)
    used = np.zeros(len(rig), dtype=bool)
    cameras: list[Camera] = []
    images: list[DistanceImage] = []
    for index, (camera, silhouette) in enumerate(zip(rig, silhouettes, strict=True)):
        if views is not None and not views[index]:
            flags |= HullFlag.VIEW_LEFT_OUT
            continue
        if silhouette is None:
            flags |= HullFlag.EMPTY_SILHOUETTE
            continue
        if isinstance(silhouette, DistanceImage):
            image = silhouette
        else:
            width, height = camera.size
            if silhouette.shape != (height, width):
                raise InputError(
                    f"camera '{camera.name}': silhouette must be ({height}, {width}), got {silhouette.shape}"
                )
            image = distance_image(silhouette, outside=outside, everywhere=everywhere)
        if image.view is Extent.EMPTY:
            flags |= HullFlag.EMPTY_SILHOUETTE
        elif image.view is Extent.FULL:
            flags |= HullFlag.FULL_SILHOUETTE
        else:
            if image.view is Extent.PARTIAL:
                flags |= HullFlag.PARTLY_OUT_OF_VIEW
            used[index] = True
            cameras.append(camera)
            images.append(image)
    wanted = int(np.ceil(0.75 * len(rig))) if wanted_views is None else wanted_views
    complete = sum(image.view is Extent.COMPLETE for image in images)
    if complete < wanted:
        flags |= HullFlag.FEW_VIEWS
    if not images:
        return Evidence(cameras, images, used, None, least_views, int(flags | HullFlag.NO_SILHOUETTE))
    cameras = facing_cameras(cameras, images)
    box, _certain = (bounds, True) if bounds is not None else bounding_box(cameras, images, tolerated=tolerated)
    if box is None:
        flags |= HullFlag.EMPTY_HULL
    return Evidence(cameras, images, used, box, least_views, int(flags))


@dataclass(frozen=True, eq=False)
class _Sampled:
    grid: Grid
    views: FieldViews
    active: NDArray[np.int32]
    values: NDArray[np.float32]
    decides: NDArray[np.int8]


def _sample(
    evidence: Evidence, box: Box, voxel_mm: float | None, tolerated: int, enough: float, most_cells: int = _MOST_CELLS
) -> _Sampled:
    cameras = evidence.cameras
    rows = np.array([camera.packed() for camera in cameras])
    scales = view_scales(rows, box)
    if voxel_mm is None:
        distances = np.array([np.linalg.norm(box.centre - camera.centre) for camera in cameras])
        voxel_mm = max(2.0 * float(np.median(scales.metric * distances)), float(box.size.max()) / most_cells)
    if not voxel_mm > 0:
        raise InputError(f"hull: voxel size must be positive, got {voxel_mm} mm")
    grid = Grid.around(box, voxel_mm)
    if float(np.prod(grid.blocks)) > 3e8:
        raise InputError(
            f"hull: voxels of {voxel_mm:g} mm in a box of {np.round(box.size).tolist()} mm are too many; "
            "take a larger voxel or give bounds"
        )
    packed = pack_distances(evidence.images)
    least = min(evidence.least, len(cameras))
    views = FieldViews(rows, scales.metric, scales.gain, packed.values, packed.layout, tolerated, least)
    active = active_blocks(views, grid)
    corners = project_corners(rows, grid, active)
    interpolate = interpolation_error(rows, grid, active, corners) < _INTERPOLATION_PX
    active, values, decides = sample_blocks(views, grid, active, corners, interpolate, enough * grid.spacing)
    return _Sampled(grid, views, active, values, decides)


# Twelve parameters: silhouettes and rig, then keywords with a default.
def implicit_hull(
    silhouettes: Sequence[Silhouette],
    rig: Rig,
    bounds: Box | None = None,
    voxel_mm: float | None = None,
    *,
    views: NDArray[np.bool_] | None = None,
    tolerated: int = 0,
    least_views: int = 2,
    wanted_views: int | None = None,
    outside: Outside = Outside.AUTO,
    most_cells: int = _MOST_CELLS,
    sharp: bool = True,
    score: bool = True,
) -> Hull:
    """Return the visual hull of one frame as a closed mesh with sub-voxel accuracy.

    Args:
        silhouettes: one per camera: (H, W) mask or alpha matte, a `DistanceImage`, or None (not observed).
        rig: the calibrated cameras.
        bounds: where to look; by default found from the silhouettes.
        voxel_mm: side of a cell; by default two pixels at the subject, at most ``most_cells`` along a side.
        views: (C,) False leaves a view out.
        tolerated: number of views that may be wrong at any point (robust mode).
        least_views: a point that fewer views have inside is not part of the hull.
        wanted_views: fewer complete views than this flag the frame; by default three quarters of the rig.
        outside: what to assume outside a view's frame.
        most_cells: cells along the longest side of the box where no ``voxel_mm`` is given.
        sharp: keep the hull's edges and corners instead of cutting them off within a cell.
        score: also draw the hull into the views and measure the agreement.
    """
    evidence = gather(
        silhouettes,
        rig,
        views=views,
        bounds=bounds,
        tolerated=tolerated,
        least_views=least_views,
        wanted_views=wanted_views,
        outside=outside,
    )
    if evidence.box is None:
        return no_hull(len(rig), evidence.used, evidence.flags)
    sampled = _sample(evidence, evidence.box, voxel_mm, tolerated, 1.5, most_cells)
    grid = sampled.grid

    def normals_at(points: Floats, known: NDArray[np.int8]) -> Floats:
        return surface_normals(sampled.views, points, known, 0.5 * grid.spacing)

    vertices, faces = march(
        sampled.active,
        sampled.values,
        grid.origin,
        grid.spacing,
        grid.blocks,
        decides=sampled.decides,
        normals_at=normals_at if sharp else None,
    )
    if len(faces) == 0:
        return no_hull(len(rig), evidence.used, evidence.flags | HullFlag.EMPTY_HULL)
    flags = evidence.flags
    reach = grid.origin + grid.spacing * BLOCK * np.array(grid.blocks)
    low, high = extent_of(vertices)
    if (low < grid.origin + grid.spacing).any() or (high > reach - grid.spacing).any():
        flags |= HullFlag.CUT_BY_BOUNDS
    agreement = np.full(len(rig), np.nan)
    if score:
        masks = [mask for mask in _masks(silhouettes, evidence.used) if mask is not None]
        if len(masks) == len(evidence.cameras):
            agreement[evidence.used] = silhouette_agreement(evidence.cameras, masks, vertices, faces)
    volume = enclosed_volume(vertices, faces)
    return Hull(vertices, faces, volume, evidence.used, agreement, int(flags))


def _masks(silhouettes: Sequence[Silhouette], used: Bools) -> list[Bools | None]:
    masks: list[Bools | None] = []
    for silhouette, takes_part in zip(silhouettes, used, strict=True):
        if silhouette is None or isinstance(silhouette, DistanceImage) or not takes_part:
            masks.append(None)
        elif silhouette.dtype == np.bool_:
            masks.append(silhouette)
        else:
            masks.append(silhouette > (127 if silhouette.dtype == np.uint8 else 0.5))
    return masks


def hull_field(
    silhouettes: Sequence[Silhouette],
    rig: Rig,
    bounds: Box | None = None,
    voxel_mm: float | None = None,
    *,
    views: NDArray[np.bool_] | None = None,
    tolerated: int = 0,
    least_views: int = 2,
    margin_mm: float = 0.0,
    outside: Outside = Outside.AUTO,
) -> SignedField | None:
    """Return the hull's field on a grid for the tracker, or None where the frame has no hull.

    Exact near the surface, interpolated from every fourth grid point elsewhere. ``margin_mm`` adds room around
    the box, for templates that start outside the hull. Other arguments as in `implicit_hull`.
    """
    evidence = gather(
        silhouettes, rig, views=views, bounds=bounds, tolerated=tolerated, least_views=least_views, outside=outside,
        everywhere=True,
    )  # fmt: skip
    if evidence.box is None:
        return None
    sampled = _sample(evidence, evidence.box.grown(margin_mm), voxel_mm, tolerated, np.inf)
    if not (sampled.values < 0).any():
        return None
    grid = sampled.grid
    values = dense_field(sampled.views, grid, sampled.active, sampled.values)
    return SignedField(values, grid.origin, grid.spacing)
