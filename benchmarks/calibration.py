"""Calibration against aniposelib, caliscope, OpenCV and COLMAP on the four-webcam ChArUco sessions.

    python -m benchmarks.calibration                 # the real sessions
    python -m benchmarks.calibration --peers opencv  # against one of them
    python -m benchmarks.calibration --studio 50     # and 50 synthetic rigs of 8 cameras

All solve the same detections of the same training frames, each as it ships: lenses and poses from nothing (OpenCV:
calibrateMultiview, five distortion terms less k3, views of six corners or more; COLMAP: pycolmap's bundle adjustment of
a rig over the board's corners, on Ceres, with Cauchy's loss, started from lenses and poses that OpenCV finds).
The held-out corners are triangulated by one routine for all (`calibration.accuracy.measures.measure`).

The webcams do not run in step: one is 0.6 frames late. So there are two rounds. *raw*: detections as found, our
time offsets switched off. *in step*: the same detections moved to a common clock by our offsets, before any of the
others sees them. The keys are means over the sessions of the round *raw*; the others carry ``in_step_``.
Speed is a ratio of CPU seconds of the solve, from detections to rig, lenses and choice of model included; set
OMP_NUM_THREADS=1 for all. Import and compilation do not count; of us and caliscope the fastest of three runs
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
from benchmarks.peers.calibration_scripts import SCRIPTS
from benchmarks.peers.running import run_peer
from calibration.accuracy.measures import HeldOut, held_out_frames, measure
from calibration.boards.session import open_session
from calibration.boards.sightings import Sightings, merge_sightings
from calibration.cameras.camera import LensCamera
from calibration.cameras.lens import PinholeLens
from calibration.cameras.rig import Rig
from calibration.geometry.transforms import RigidTransform, rotation_from_vector
from calibration.solving.rig_solver import SolveOptions, solve_rig, start_lenses
from vivarig.calibration_stage.board_footage import detect_session

ROOT = Path(__file__).resolve().parent.parent
SESSIONS = ("charuco_calibration", "4_cam_recording")


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
