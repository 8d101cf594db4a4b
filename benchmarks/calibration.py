"""Calibration against aniposelib, caliscope and OpenCV's calibrateMultiview on the four-webcam ChArUco sessions.

    python -m benchmarks.calibration                 # the real sessions
    python -m benchmarks.calibration --peers opencv  # against one of them
    python -m benchmarks.calibration --studio 50     # and 50 synthetic rigs of 8 cameras

All solve the same detections of the same training frames, each as it ships: lenses and poses from nothing (OpenCV:
five distortion terms less k3, views of six corners or more).
The held-out corners are triangulated by one routine for all (`calibration.accuracy.measures.measure`).

The webcams do not run in step: one is 0.6 frames late. So there are two rounds. *raw*: detections as found, our
time offsets switched off. *in step*: the same detections moved to a common clock by our offsets, before any of the
three sees them. The keys are means over the sessions of the round *raw*; the others carry ``in_step_``.
Speed is a ratio of CPU seconds of the solve, from detections to rig, lenses and choice of model included; set
OMP_NUM_THREADS=1 for all three. Import and compilation do not count; of us and caliscope the fastest of three runs
is taken. aniposelib refines lenses (one focal length, one radial term) and poses, as we do; caliscope fits each lens
alone and, on this footage, refines poses only: ``speed_poses_vs_caliscope`` compares that part, with its
lenses held in both.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np

from benchmarks.measuring.reference_kernel import reference_kernel_s
from benchmarks.measuring.studio_boards import studio_coverage
from benchmarks.peers.running import run_peer
from calibration.accuracy.measures import HeldOut, held_out_frames, measure
from calibration.boards.session import open_session
from calibration.boards.sightings import Sightings, merge_sightings
from calibration.cameras.camera import LensCamera, PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.solving.rig_solver import SolveOptions, solve_rig, start_lenses
from vivarig.calibration_stage.board_footage import detect_session

ROOT = Path(__file__).resolve().parent.parent
SESSIONS = ("charuco_calibration", "4_cam_recording")

ANIPOSELIB = """
import time, contextlib, io
from aniposelib.boards import CharucoBoard
from aniposelib.cameras import CameraGroup
columns, rows, side, marker = given["board"]
board = CharucoBoard(int(columns), int(rows), float(side), float(marker), marker_bits=4, dict_size=1000)
count = int(given["camera"].max()) + 1
group = CameraGroup.from_names([str(c) for c in range(count)])
tables = []
for c, cam in enumerate(group.cameras):
    cam.set_size(tuple(int(v) for v in given["sizes"][c]))
    mine, table = given["camera"] == c, []
    for f in np.unique(given["frame"][mine]):
        here = mine & (given["frame"] == f)
        table.append({"framenum": (0, int(f)), "corners": given["pixels"][here].reshape(-1, 1, 2).astype("float32"),
                      "ids": given["corner"][here].reshape(-1, 1).astype("int32")})
    tables.append(board.fill_points_rows(table) if hasattr(board, "fill_points_rows") else table)
np.random.seed(0)
start, cpu = time.perf_counter(), time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    group.calibrate_rows(tables, board, verbose=False)
out["seconds"], out["cpu"] = time.perf_counter() - start, time.process_time() - cpu
out["K"] = np.stack([cam.get_camera_matrix() for cam in group.cameras])
out["dist"] = np.stack([np.resize(cam.get_distortions(), 5) for cam in group.cameras])
out["rvec"] = np.stack([cam.get_rotation() for cam in group.cameras])
out["tvec"] = np.stack([cam.get_translation() for cam in group.cameras])
"""

OPENCV = """
import time
import cv2
camera, frame, corner = (given[key] for key in ("camera", "frame", "corner"))
frames, count = np.unique(frame), int(camera.max()) + 1
most = int(corner.max()) + 1
model = np.zeros((most, 3), "float32")
model[corner] = given["model"] / 1000  # in metres: it divides by the square of the board's size, and refuses mm
row = np.searchsorted(frames, frame)
places = np.full((count, len(frames), most, 2), -1.0, "float32")
places[camera, row, corner] = given["pixels"]
mask = ((places[..., 0] >= 0).sum(axis=2) >= 6).astype("uint8")  # fewer give no pose of a plane
kept = mask.any(axis=0)
places, mask = places[:, kept], np.ascontiguousarray(mask[:, kept])
objects = [model] * int(kept.sum())
pictures = [list(one) for one in places]
sizes = [tuple(int(v) for v in size) for size in given["sizes"]]
models = np.full(count, cv2.CALIB_MODEL_PINHOLE, "uint8")
flags = np.full(count, cv2.CALIB_FIX_K3, "int32")
start, cpu = time.perf_counter(), time.process_time()
rms, K, dist, R, t = cv2.calibrateMultiview(
    objects, pictures, sizes, mask, models, None, None, None, None, flagsForIntrinsics=flags
)
out["seconds"], out["cpu"], out["rms"] = time.perf_counter() - start, time.process_time() - cpu, rms
out["K"] = np.stack(K)
out["dist"] = np.stack([np.ravel(one)[:5] for one in dist])
out["rvec"] = np.stack([np.ravel(one if np.size(one) == 3 else cv2.Rodrigues(one)[0]) for one in R])
out["tvec"] = np.stack([1000 * np.ravel(one) for one in t])
"""

CALISCOPE = """
import time
import cv2, pandas as pd
from caliscope.cameras.camera_array import CameraArray, CameraData
from caliscope.core.calibrate_extrinsics import calibrate_extrinsics
from caliscope.core.calibrate_intrinsics import run_intrinsic_calibration
from caliscope.core.charuco import Charuco
from caliscope.core.constraints import ConstraintSet
from caliscope.core.point_data import ImagePoints
columns, rows, side, marker = given["board"]
charuco = Charuco.from_squares(int(columns), int(rows), float(side) / 10, dictionary="DICT_4X4_1000",
                               aruco_scale=float(marker / side))
table = pd.DataFrame({"sync_index": given["frame"], "cam_id": given["camera"], "frame_index": given["frame"],
    "object_id": 0, "keypoint_id": given["corner"], "img_loc_x": given["pixels"][:, 0],
    "img_loc_y": given["pixels"][:, 1], "obj_loc_x": given["model"][:, 0] / 1000,
    "obj_loc_y": given["model"][:, 1] / 1000, "obj_loc_z": 0.0})
points = ImagePoints(table)
count = int(given["camera"].max()) + 1
out["cpu"] = out["cpu_poses"] = np.inf
for _ in range(3):
    start, cpu = time.perf_counter(), time.process_time()
    cameras = {}
    for c in range(count):
        bare = CameraData(cam_id=c, size=tuple(int(v) for v in given["sizes"][c]))
        cameras[c] = run_intrinsic_calibration(bare, ImagePoints(table[table.cam_id == c].copy())).camera
    out["K0"] = np.stack([cameras[c].matrix for c in range(count)])
    out["dist0"] = np.stack([np.resize(np.ravel(cameras[c].distortions), 5) for c in range(count)])
    poses = time.process_time()
    run = calibrate_extrinsics(points, CameraArray(cameras), ConstraintSet.from_charuco(charuco))
    if time.process_time() - cpu < out["cpu"]:
        out["seconds"], out["cpu"] = time.perf_counter() - start, time.process_time() - cpu
    out["cpu_poses"] = min(out["cpu_poses"], time.process_time() - poses)
solved = [run.capture_volume.camera_array.cameras[c] for c in range(count)]
out["K"] = np.stack([cam.matrix for cam in solved])
out["dist"] = np.stack([np.resize(np.ravel(cam.distortions), 5) for cam in solved])
out["rvec"] = np.stack([cv2.Rodrigues(np.asarray(cam.rotation))[0].ravel() for cam in solved])
out["tvec"] = np.stack([np.ravel(cam.translation) * 1000 for cam in solved])
"""


def sessions(data: Path) -> dict[str, Sightings]:
    """Return the detections of the two sessions, from the cache under .bench if they were made before."""
    found = {}
    for name in SESSIONS:
        session = open_session(data / "caliscope" / name)
        boards, detections, _ = detect_session(
            session, ROOT / ".bench" / "calibration" / name, workers=os.cpu_count() or 1, step=1, trim=False
        )
        found[name] = merge_sightings([d.sightings(boards) for d in detections]).with_velocities()
    return found


def peer_rig(peer: str, script: str, train: Sightings) -> tuple[Rig, float, float, dict[str, np.ndarray]]:
    """Return the rig a peer makes of the training frames, its seconds by the clock and of CPU, and its raw output."""
    board = train.boards[0]
    model, index = train.model_points()
    given = {
        "camera": train.camera,
        "frame": train.frame,
        "corner": train.corner,
        "pixels": train.pixels,
        "model": model[index],
        "sizes": np.array(train.sizes),
        "board": np.array([board.columns, board.rows, board.square_mm, board.marker_mm]),
    }
    out = run_peer(peer, script, given)
    cameras = [
        LensCamera(
            name,
            PinholeLens(train.sizes[c], _upper(out["K"][c]), out["dist"][c]),
            RigidTransform(rotation_from_vector(out["rvec"][c]), out["tvec"][c]),
        )
        for c, name in enumerate(train.cameras)
    ]
    return Rig(tuple(cameras)), float(out["seconds"]), float(out["cpu"]), out


def _upper(k: np.ndarray) -> np.ndarray:
    return np.array([[k[0, 0], k[0, 1], k[0, 2]], [0, k[1, 1], k[1, 2]], [0, 0, 1.0]])


def ours(train: Sightings, clocks: str) -> tuple[Rig, float, float, np.ndarray]:
    """Return our rig, the seconds of the whole solve (model choice included; clock, CPU) and the time offsets."""
    start, cpu = time.perf_counter(), time.process_time()
    solution = solve_rig(train, SolveOptions(clocks=clocks))
    return (
        solution.rig,
        time.perf_counter() - start,
        time.process_time() - cpu,
        solution.bundle.bundle.offsets,
    )


def poses_only(train: Sightings, out: dict[str, np.ndarray]) -> float:
    """Return our CPU seconds for the poses alone, with the peer's own lenses: what its bundle solves here."""
    lenses = {
        n: PinholeLens(train.sizes[c], _upper(out["K0"][c]), out["dist0"][c]) for c, n in enumerate(train.cameras)
    }
    best = np.inf
    for _ in range(3):
        cpu = time.process_time()
        solve_rig(train, SolveOptions(fixed=dict(lenses), clocks="off"))
        best = min(best, time.process_time() - cpu)
    return float(best)


def row(name: str, score: HeldOut, seconds: float, cpu: float) -> str:
    """Return one line of the table."""
    return (
        f"    {name:<11} {score.rms_px:.3f} px ({score.raw_rms_px:.3f} with outliers)  squares {score.square_mm:.3f}, "
        f"bias {score.square_bias_mm:+.3f}, longest {score.long_mm:.3f} mm  {seconds:6.2f} s, CPU {cpu:6.2f} s"
    )


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studio", type=int, default=0, metavar="SEEDS", help="synthetic rigs to solve as well")
    parser.add_argument("--peers", default=",".join(SCRIPTS), help="whom to run (default: all)")
    parser.add_argument("--no-real", action="store_true", help="the synthetic rigs only")
    args = parser.parse_args()
    data = Path(os.environ.get("VIVARIG_DATA", ROOT.parent / "shared" / "data"))
    result: dict[str, object] = {}
    if not args.no_real:
        result.update(compare(sessions(data), args.peers.split(",")))
    if args.studio:
        result["studio"] = studio_coverage(args.studio)
    result["reference_kernel_s"] = reference_kernel_s()
    result["peak_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


SCRIPTS = {"aniposelib": ANIPOSELIB, "caliscope": CALISCOPE, "opencv": OPENCV}


def compare(found: dict[str, Sightings], peers: list[str]) -> dict[str, object]:
    """Return the keys of the benchmark, printing a table on the way."""
    collected: dict[str, list[float]] = {}

    def keep(key: str, value: float) -> None:
        collected.setdefault(key, []).append(value)

    first = next(iter(found.values()))
    start_lenses(first, SolveOptions())  # compile before the clock runs
    solve_rig(first, SolveOptions())
    for name, sightings in found.items():
        held = np.isin(sightings.frame, held_out_frames(sightings))
        _, _, _, offsets = ours(sightings.where(~held), "on")
        print(f"{name}: frames late {np.round(offsets, 2).tolist()}")
        for words, table in (("raw", sightings), ("in step", sightings.at_common_time(offsets))):
            train, test = table.where(~held), table.where(held)
            prefix = "" if words == "raw" else "in_step_"
            print(f"  {words}: {len(np.unique(train.frame))} training frames, {len(np.unique(test.frame))} held out")
            runs = [ours(train, "off") for _ in range(3)]
            rig, seconds, best, _ = min(runs, key=lambda run: run[2])
            score = measure(rig, test)
            print(row("vivarig", score, seconds, best))
            keep(prefix + "heldout_rms_px", score.rms_px)
            keep(prefix + "board_mm", score.square_mm)
            for peer in peers:
                rig, seconds, cpu, out = peer_rig(peer, SCRIPTS[peer], train)
                score = measure(rig, test)
                print(row(peer, score, seconds, cpu), flush=True)
                keep(f"{prefix}heldout_rms_px_{peer}", score.rms_px)
                keep(f"{prefix}board_mm_{peer}", score.square_mm)
                keep(f"{prefix}speed_vs_{peer}", cpu / best)
                if peer == "caliscope":
                    keep(f"{prefix}speed_poses_vs_caliscope", float(out["cpu_poses"]) / poses_only(train, out))
    return {key: float(np.mean(values)) for key, values in collected.items()} | {"each": collected}


if __name__ == "__main__":
    main()
