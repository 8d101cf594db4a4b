"""Hulls and silhouettes: the sample mouse, 8 views of 640x480.

    python -m benchmarks.hull

The reference surface is the exact intersection of the cones over the (unsimplified) outlines. The dense grid is refined
until its next step would be better than our default: equal error means that the dense one is still not below ours.
Times are CPU seconds of one thread, best of several turns: other programs on the machine disturb them least. "On 2
cores" means two threads that share nothing, so frames per second are twice those of one thread; the wall clock is
printed beside.
"""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import h5py
import manifold3d
import numpy as np
import trimesh
from skimage.measure import marching_cubes

from benchmarks.silhouettes import steady_speed
from calibration.cameras.camera import LensCamera
from calibration.cameras.rig import Rig
from capture.hull import exact_hull, implicit_hull, mesh_silhouette
from capture.hull.contours import mask_contours, outline_of
from capture.hull.exact import TOLERANCE_PX, cone
from capture.hull.implicit import gather
from capture.recordings.recording import load_recording

SAMPLE = Path(__file__).resolve().parent.parent / "sample_data" / "mouse"
DENSE_MM = (4.0, 2.0, 1.0, 0.85, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45)
"""Voxels of the dense grid, from coarse to fine; the finest takes some 2 GB."""
T = TypeVar("T")


def cpu_seconds(call: Callable[[], T], turns: int = 3) -> tuple[float, T]:
    """Return the best CPU time of a call in this thread, and its result."""
    best = np.inf
    for _ in range(turns):
        start = time.thread_time()
        result = call()
        best = min(best, time.thread_time() - start)
    return best, result


def true_masks(rig: Rig, frame: int) -> list[np.ndarray]:
    """Cast the true skin of a frame into all views."""
    with h5py.File(SAMPLE / "truth.h5") as truth:
        vertices = truth["skin/vertices"][frame].astype(np.float64)
        faces = truth["skin/faces"][()].astype(np.int32)
    return [mesh_silhouette(camera, vertices, faces) for camera in rig]


def numpy_project(camera: LensCamera, points: np.ndarray) -> np.ndarray:
    """Project points (n, 3) with numpy alone, as the dense carver would."""
    local = points @ camera.camera_from_world.rotation.T + camera.camera_from_world.translation
    x, y = local[:, 0] / local[:, 2], local[:, 1] / local[:, 2]
    k1, k2, p1, p2, k3 = np.concatenate([camera.lens.distortion, np.zeros(5)])[:5]
    r2 = x * x + y * y
    radial = 1 + r2 * (k1 + r2 * (k2 + r2 * k3))
    xd = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    yd = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    k = camera.lens.intrinsics
    return np.stack([k[0, 0] * xd + k[0, 1] * yd + k[0, 2], k[1, 1] * yd + k[1, 2]], axis=1)


def dense_hull(
    masks: list[np.ndarray], cameras: list[LensCamera], low: np.ndarray, high: np.ndarray, voxel: float
) -> Any:
    """Carve a dense grid with numpy and run scikit-image's marching cubes on the occupancy."""
    axes = [np.arange(a - 2 * voxel, b + 3 * voxel, voxel) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    inside = np.ones(len(points), dtype=bool)
    for camera, mask in zip(cameras, masks, strict=True):
        pixels = np.rint(numpy_project(camera, points)).astype(int)
        seen = (pixels >= 0).all(axis=1) & (pixels[:, 0] < mask.shape[1]) & (pixels[:, 1] < mask.shape[0])
        hit = np.zeros(len(points), dtype=bool)
        hit[seen] = mask[pixels[seen, 1], pixels[seen, 0]]
        inside &= hit
    grid = inside.reshape([len(axis) for axis in axes])
    vertices, faces, _, _ = marching_cubes(grid.astype(np.float32), 0.5, spacing=(voxel,) * 3)
    return vertices + [axis[0] for axis in axes], faces


def surface_error(vertices: np.ndarray, faces: np.ndarray, reference: trimesh.Trimesh) -> float:
    """Return the mean distance between two surfaces, both ways, mm."""
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    rng = np.random.default_rng(0)
    ways = []
    for source, target in ((mesh, reference), (reference, mesh)):
        points, _ = trimesh.sample.sample_surface(source, 6000, seed=rng)
        ways.append(trimesh.proximity.closest_point(target, points)[1].mean())
    return float(np.mean(ways))


def manifold_seconds(
    masks: list[np.ndarray], cameras: list[LensCamera], low: np.ndarray, high: np.ndarray
) -> tuple[float, float]:
    """Return the CPU seconds of manifold3d's n-ary intersection: of cones as it extrudes them, and of ours."""
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T
    extruded, ours = [], []
    for camera, mask in zip(cameras, masks, strict=True):
        outline = outline_of(camera, mask_contours(mask))
        depths = (corners - outline.centre) @ outline.forward
        near, far = 0.95 * depths.min(), 1.05 * depths.max()
        section = manifold3d.CrossSection(outline.polygons, manifold3d.FillRule.EvenOdd).simplify(TOLERANCE_PX)
        solid = section.scale((near / outline.scale,) * 2).extrude(far - near, scale_top=(far / near,) * 2)
        axes = np.stack([outline.right, outline.down, outline.forward], axis=1)
        moved = outline.centre + near * outline.forward
        extruded.append(solid.transform(np.concatenate([axes, moved[:, None]], axis=1)))
        ours.append(cone(outline, far, TOLERANCE_PX))
    seconds = []
    for cones in (extruded, ours):
        sum(solid.num_tri() for solid in cones)  # built now, not within the measured call
        spent, _ = cpu_seconds(
            lambda cones=cones: manifold3d.Manifold.batch_boolean(cones, manifold3d.OpType.Intersect).num_tri()
        )
        seconds.append(spent)
    return seconds[0], seconds[1]


# Over 80 lines: the rows of one table, one after another.
def main() -> None:
    """Measure and print."""
    recording = load_recording(SAMPLE)
    rig = recording.need_rig()
    frames = [f for f in range(0, 100, 4) if _complete(true_masks(rig, f))][:8] or [0]
    masks = true_masks(rig, frames[0])
    cameras = [camera for camera in rig if isinstance(camera, LensCamera)]
    evidence = gather(masks, rig)
    assert evidence.box is not None
    reference_hull = exact_hull(masks, rig, tolerance_px=0.05, score=False)
    reference = trimesh.Trimesh(reference_hull.vertices, reference_hull.faces, process=False)
    print(
        f"reference: exact cones of frame {frames[0]}, {len(reference.faces)} faces, "
        f"{reference_hull.volume / 1000:.3f} ml"
    )

    print(f"{'engine':<24}{'voxel mm':>9}{'CPU ms':>10}{'error mm':>10}")
    implicit: dict[float | None, tuple[float, float]] = {}
    for voxel in (4.0, 2.0, None, 1.0):
        implicit_hull(masks, rig, voxel_mm=voxel)
        seconds, hull = cpu_seconds(lambda voxel=voxel: implicit_hull(masks, rig, voxel_mm=voxel, score=False), 9)
        error = surface_error(hull.vertices, hull.faces, reference)
        implicit[voxel] = (seconds, error)
        print(f"{'implicit':<24}{voxel or 'default':>9}{1e3 * seconds:>10.1f}{error:>10.3f}")
    ours_s, ours_error = implicit[None]
    dense: dict[float, tuple[float, float]] = {}
    for voxel in DENSE_MM:
        seconds, (vertices, faces) = cpu_seconds(
            lambda voxel=voxel: dense_hull(masks, cameras, evidence.box.low, evidence.box.high, voxel), 2
        )
        error = surface_error(vertices, faces, reference)
        print(f"{'dense numpy + skimage':<24}{voxel:>9.2f}{1e3 * seconds:>10.1f}{error:>10.3f}")
        if error < ours_error:
            break
        dense[voxel] = (seconds, error)
    seconds_exact, exact = cpu_seconds(lambda: exact_hull(masks, rig, score=False))
    error_exact = surface_error(exact.vertices, exact.faces, reference)
    print(f"{'exact (0.7 px outlines)':<24}{'':>9}{1e3 * seconds_exact:>10.1f}{error_exact:>10.3f}")

    chosen = min(dense)
    speed = dense[chosen][0] / ours_s
    print(f"implicit at its default against dense {chosen} mm, the finest that is not better: {speed:.0f} times faster")

    peer_s, own_s = manifold_seconds(masks, cameras, evidence.box.low, evidence.box.high)
    print(
        f"manifold3d alone, n-ary intersection of the same cones, extruded beforehand: {1e3 * peer_s:.1f} ms; "
        f"of the cones as the exact engine builds them: {1e3 * own_s:.1f} ms (the engine calls it)"
    )

    sets = [true_masks(rig, frame) for frame in frames]

    def one(index: int) -> int:
        return len(implicit_hull(sets[index % len(sets)], rig).faces)

    one(0)
    number = 32
    start_cpu, start = time.process_time(), time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(number)))
    fps = 2 * number / (time.process_time() - start_cpu)
    wall = number / (time.perf_counter() - start)
    print(f"hulls at the default with agreement: {fps:.1f} frames/s on 2 cores (by the wall clock {wall:.1f})")
    silhouette_fps, by_the_wall = steady_speed(recording.folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"silhouettes: {silhouette_fps:.0f} camera-frames/s on 2 cores (by the wall clock {by_the_wall:.0f})"
        f"; peak memory {peak:.0f} MB"
    )
    print(
        json.dumps(
            {
                "speed_vs_dense": speed,
                "speed_vs_dense_same_voxel": dense[2.0][0] / implicit[2.0][0],
                "error_mm": ours_error,
                "error_mm_dense": dense[chosen][1],
                "error_mm_exact": error_exact,
                "fps": fps,
                "exact_speed_vs_manifold3d": peer_s / seconds_exact,
                "exact_overhead_ms": 1e3 * (seconds_exact - own_s),
                "silhouette_fps": silhouette_fps,
                "peak_rss_mb": peak,
            }
        )
    )


def _complete(masks: list[np.ndarray]) -> bool:
    return all(m.any() and not (m[:3].any() or m[-3:].any() or m[:, :3].any() or m[:, -3:].any()) for m in masks)


if __name__ == "__main__":
    main()
