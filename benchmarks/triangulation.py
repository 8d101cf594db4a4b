"""Triangulation against aniposelib: 20,000 points, 8 cameras, 20 % missing, 0.5 px noise, 5 % of detections wrong.

python -m benchmarks.triangulation
"""

from __future__ import annotations

import json
import resource
import time

import numpy as np

from benchmarks.measuring.reference_kernel import reference_kernel_s
from benchmarks.peers.running import run_peer
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.cameras.triangulation import triangulate, triangulate_linear
from calibration.geometry.transforms import RigidTransform, vector_from_rotation

POINTS, CAMERAS = 20_000, 8
#: The peer's robust mode takes minutes on all points: it gets the first so many, and the time is per point.
PEER_ROBUST_POINTS = 500

PEER = """
import time
from aniposelib.cameras import Camera, CameraGroup
cameras = [Camera(matrix=given["K"][c], dist=given["dist"][c], rvec=given["rvec"][c], tvec=given["tvec"][c],
                  size=(640, 480), name=str(c)) for c in range(len(given["K"]))]
group = CameraGroup(cameras)
group.triangulate(given["clean"][:, :100].copy(), progress=False)   # compile, if it does
start = time.perf_counter()
out["linear"] = group.triangulate(given["clean"].copy(), progress=False)
out["linear_s"] = time.perf_counter() - start
robust = given["wrong"][:, :int(given["robust_points"])]
start, begun = time.perf_counter(), time.process_time()
result = group.triangulate_ransac(robust.copy(), min_cams=2, progress=False)
out["robust_s"], out["robust_cpu_s"] = time.perf_counter() - start, time.process_time() - begun
out["robust"] = result[0]
"""


def ring_rig() -> Rig:
    """Return eight cameras with lens distortion around a 16 cm field."""
    cameras = []
    for k in range(CAMERAS):
        angle = 2 * np.pi * k / CAMERAS
        centre = np.array([600 * np.cos(angle), 600 * np.sin(angle), 300 + 50 * (k % 2)])
        z = -centre / np.linalg.norm(centre)
        x = np.cross(z, [0.0, 0.0, 1.0])
        x /= np.linalg.norm(x)
        rotation = np.stack([x, np.cross(z, x), z])
        lens = PinholeLens(
            (640, 480),
            np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]]),
            np.array([-0.2, 0.05, 0.001, -0.001, 0]),
        )
        cameras.append(LensCamera(f"cam{k}", lens, RigidTransform(rotation, -rotation @ centre)))
    return Rig(tuple(cameras))


def detections(rig: Rig, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true points (n, 3), pixels with noise and gaps (C, n, 2), and the same with 5 % wrong by 20-200 px."""
    truth = rng.uniform(-80, 80, (POINTS, 3))
    clean = rig.project(truth) + rng.normal(0, 0.5, (CAMERAS, POINTS, 2))
    clean[rng.random((CAMERAS, POINTS)) < 0.2] = np.nan
    is_wrong = rng.random((CAMERAS, POINTS)) < 0.05
    angle, far = rng.uniform(0, 2 * np.pi, is_wrong.shape), rng.uniform(20, 200, is_wrong.shape)
    shift = far[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return truth, clean, clean + np.where(is_wrong[..., None], shift, 0)


def fastest(function, *arguments) -> float:
    """Return the least time of three calls, seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


def peer_of(rig: Rig, clean: np.ndarray, wrong: np.ndarray) -> dict[str, np.ndarray]:
    """Run aniposelib on the same detections."""
    return run_peer(
        "aniposelib",
        PEER,
        {
            "K": np.stack([c.lens.intrinsics for c in rig]),
            "dist": np.stack([c.lens.distortion for c in rig]),
            "rvec": np.stack([vector_from_rotation(c.camera_from_world.rotation) for c in rig]),
            "tvec": np.stack([c.camera_from_world.translation for c in rig]),
            "clean": clean,
            "wrong": wrong,
            "robust_points": np.array(PEER_ROBUST_POINTS),
        },
    )


def main() -> None:
    """Run both, print a table and the JSON line."""
    rig = ring_rig()
    truth, clean, wrong = detections(rig, np.random.default_rng(1))
    triangulate(rig, wrong[:, :100]), triangulate_linear(rig, clean[:, :100])  # compile
    robust_s, linear_s = fastest(triangulate, rig, wrong), fastest(triangulate_linear, rig, clean)
    ours, ours_linear = triangulate(rig, wrong).points, triangulate_linear(rig, clean)
    peer = peer_of(rig, clean, wrong)
    part = slice(0, PEER_ROBUST_POINTS)
    both = np.isfinite(ours[part]).all(1) & np.isfinite(peer["robust"]).all(1)

    def mean_error(points: np.ndarray, which: np.ndarray) -> float:
        return float(np.linalg.norm(points[part][which] - truth[part][which], axis=1).mean())

    per_point_peer = float(peer["robust_s"]) / PEER_ROBUST_POINTS
    numbers = {
        "speed_vs_aniposelib_robust": per_point_peer / (robust_s / POINTS),
        "speed_vs_aniposelib_linear": float(peer["linear_s"]) / linear_s,
        "error_mm": mean_error(ours, both),
        "error_mm_aniposelib": mean_error(peer["robust"], both),
        "linear_error_mm": float(np.nanmean(np.linalg.norm(ours_linear - truth, axis=1))),
        "linear_error_mm_aniposelib": float(np.nanmean(np.linalg.norm(peer["linear"] - truth, axis=1))),
        "points_without_position": int(np.isnan(ours[part]).any(1).sum()),
        "points_without_position_aniposelib": int(np.isnan(peer["robust"]).any(1).sum()),
        "points_per_s": POINTS / robust_s,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "reference_kernel_s": reference_kernel_s(),
    }
    print(f"{'':28}{'ours':>12}{'aniposelib':>12}")
    print(f"{'robust, us per point':28}{robust_s / POINTS * 1e6:12.1f}{per_point_peer * 1e6:12.1f}")
    print(f"{'linear, us per point':28}{linear_s / POINTS * 1e6:12.1f}{float(peer['linear_s']) / POINTS * 1e6:12.1f}")
    print(f"{'robust, mean error mm':28}{numbers['error_mm']:12.4f}{numbers['error_mm_aniposelib']:12.4f}")
    ours_mm, peer_mm = numbers["linear_error_mm"], numbers["linear_error_mm_aniposelib"]
    print(f"{'linear, mean error mm':28}{ours_mm:12.4f}{peer_mm:12.4f}")
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
