"""X-ray: speed of bead tracking, and the accuracy of the whole chain on the rat sample from raw distorted images.

``python -m benchmarks.xray`` prints a table and, as its last line, one JSON object:
``fps`` (both views, 10 beads, 1024 x 1024, decoding excluded), ``bead_median_mm``, ``bead_p95_mm``,
``interbead_sd_mm``. The accuracy part copies sample_data/rat_xray to a temporary folder, forgets its rig, and runs
`vivarig xray undistort`, `calibrate`, `track` and `triangulate` as a user would.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np

from capture.results import open_results
from capture.studio.truth import load_truth
from tracking.beads.clip import ArrayClip, track_clip
from vivarig.cli import main as vivarig

REPOSITORY = Path(__file__).resolve().parent.parent


def drifting_beads(frames: int, size: int = 1024, beads: int = 10) -> tuple[ArrayClip, np.ndarray]:
    """Two views of beads that drift over a textured background, with photon noise; and where they are."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:size, 0:size].astype(np.float32)
    start = rng.uniform(250, size - 250, (2, beads, 2))
    phase = rng.uniform(0, 2 * np.pi, (2, beads, 2))
    t = np.arange(frames)[:, None, None, None]
    truth = start + 40 * np.sin(0.05 * t + phase)
    views = []
    for view in range(2):
        bone = 0.2 + 0.2 * np.tanh((x - 480 + 0.2 * y) / 6) + 0.2 * np.sin(x / 40) * np.cos(y / 50)
        noise = rng.normal(size=(size, size)).astype(np.float32)
        film = np.empty((frames, size, size), dtype=np.uint8)
        for frame in range(frames):
            depth = bone.copy()
            for px, py in truth[frame, view]:
                s = np.s_[int(py) - 9 : int(py) + 11, int(px) - 9 : int(px) + 11]
                depth[s] += 0.6 * np.exp(-0.5 * ((x[s] - px) ** 2 + (y[s] - py) ** 2) / 1.5**2)
            light = 190 * np.exp(-depth)
            film[frame] = np.clip(light + 1.5 * np.roll(noise, 37 * frame, axis=1), 0, 255)
        views.append(film)
    return ArrayClip(tuple(views)), truth


def measure_speed(frames: int) -> dict[str, float]:
    """Return frames per second of the tracker (wall clock, and by processor time of one core), and its error, px."""
    clip, truth = drifting_beads(frames)
    names, cameras = [f"b{k}" for k in range(10)], ["left", "right"]
    track_clip(ArrayClip(tuple(v[:4] for v in clip.views)), truth[0], names=names, cameras=cameras)  # compile
    wall, cpu = time.perf_counter(), time.process_time()
    tracks = track_clip(clip, truth[0], names=names, cameras=cameras)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    error = np.linalg.norm(tracks.pixels - truth, axis=-1)
    return {
        "fps": frames / wall,
        "fps_cpu": frames / cpu,
        "track_median_px": float(np.nanmedian(error)),
        "track_max_px": float(np.nanmax(error)),
        "found_share": float(tracks.found.mean()),
    }


def measure_accuracy(sample: Path) -> dict[str, float]:
    """Run the chain on a copy of the sample without its rig, and compare with the truth."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "rat_xray"
        shutil.copytree(sample, folder, ignore=shutil.ignore_patterns("results", "rig.toml"))
        toml = (folder / "recording.toml").read_text()
        (folder / "recording.toml").write_text(
            "\n".join(line for line in toml.splitlines() if not line.startswith("rig"))
        )
        for step in ("undistort", "calibrate", "track", "triangulate"):
            code = vivarig(["xray", step, str(folder)])
            if code == 2:
                raise SystemExit(f"vivarig xray {step} failed")
        truth = load_truth(folder / "truth.h5").beads
        with open_results(folder / "results" / "beads.h5", stage="beads") as file:
            raw = np.asarray(file["positions"][:])
            smooth = np.asarray(file["filtered"][:])
            bridged = np.asarray(file["bridged"][:])
    distance = np.linalg.norm(raw[:, :, None] - truth.positions[:, None], axis=-1)
    which = np.nanmedian(distance, axis=0).argmin(axis=1)
    true = truth.positions[:, which]
    result: dict[str, float] = {
        "beads_found": float(len(set(which.tolist()))),
        "beads_true": float(len(truth.names)),
        "seen_share": float(np.isfinite(raw[..., 0]).mean()),
    }
    for label, track in (("raw", raw), ("filtered", smooth)):
        error = np.linalg.norm(track - true, axis=-1)
        error = np.where(bridged & (label == "raw"), np.nan, error)
        result[f"{label}_median_mm"] = float(np.nanmedian(error))
        result[f"{label}_p95_mm"] = float(np.nanpercentile(error, 95))
        result[f"{label}_max_mm"] = float(np.nanmax(error))
        spread = []
        for a, b in combinations(range(len(which)), 2):
            rigid = np.linalg.norm(true[:, a] - true[:, b], axis=1)
            if rigid.std() > 1e-3:
                continue  # beads of two bones
            length = np.linalg.norm(track[:, a] - track[:, b], axis=1)
            if np.isfinite(length).sum() > 10:
                spread.append(float(np.nanstd(length, ddof=1)))
        result[f"{label}_interbead_sd_mm"] = float(np.median(spread)) if spread else float("nan")
    return result


def main() -> None:
    """Print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=120)
    parser.add_argument("--sample", type=Path, default=REPOSITORY / "sample_data" / "rat_xray")
    args = parser.parse_args()
    numbers = measure_speed(args.frames)
    numbers |= measure_accuracy(args.sample)
    for key, value in numbers.items():
        print(f"{key:28s} {value:10.4f}")
    # What a study uses is the filtered track; the raw one is printed above.
    numbers["bead_median_mm"] = numbers["filtered_median_mm"]
    numbers["bead_p95_mm"] = numbers["filtered_p95_mm"]
    numbers["interbead_sd_mm"] = numbers["filtered_interbead_sd_mm"]
    print(json.dumps({key: round(value, 5) for key, value in numbers.items()}))


if __name__ == "__main__":
    main()
