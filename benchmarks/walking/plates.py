"""A real walk on a treadmill with force plates: events, strides and belt from markers alone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats
from skeleton.analysis.contacts import detect_contacts, ground_of
from skeleton.motion_files import read_trc

__all__ = ["data_folder", "plate_scores"]

ROOT = Path(__file__).resolve().parents[2]
THRESHOLD_N = 20.0
"""Force from which a foot counts as on the plate."""


def data_folder() -> Path:
    """Return the folder of the shared data."""
    return Path(os.environ.get("VIVARIG_DATA", ROOT.parent / "shared" / "data"))


def plate_events(path: Path) -> dict[str, Floats]:
    """Return per foot the times at which its force passes the threshold, s; up and down alternate."""
    lines = path.read_text().splitlines()
    header = next(i for i, line in enumerate(lines) if line.strip() == "endheader")
    names = lines[header + 1].split()
    rows = np.array([[float(word) for word in line.split()] for line in lines[header + 2 :] if line.strip()])
    out = {}
    for foot, column in (("R", "ground_force_vy"), ("L", "1_ground_force_vy")):
        force = rows[:, names.index(column)] - THRESHOLD_N
        change = np.flatnonzero(force[:-1] * force[1:] < 0)
        share = force[change] / (force[change] - force[change + 1])
        times = rows[change, 0] + share * (rows[change + 1, 0] - rows[change, 0])
        # The left foot lands in the very first frame: half of that event is outside the record.
        out[foot] = times[times > 0.05]
    return out


def foot_markers() -> tuple[dict[str, Floats], float]:
    """Return heel and toe (T, 2, 3) of both feet, mm, z up, and the rate."""
    series = read_trc(data_folder() / "opensim_gait/Pipelines/Gait2354_Simbody/subject01_walk1.trc")
    points = np.stack([series.positions[..., 0], -series.positions[..., 2], series.positions[..., 1]], axis=-1)
    names = list(series.names)
    feet = {foot: points[:, [names.index(f"{foot}.Heel"), names.index(f"{foot}.Toe.Tip")]] for foot in ("R", "L")}
    return feet, series.rate_hz


def plate_scores() -> dict[str, float]:
    """Compare the events found with those of the plates."""
    truth = plate_events(data_folder() / "opensim_gait/Pipelines/Gait2354_Simbody/subject01_walk1_grf.mot")
    feet, rate = foot_markers()
    belt = ground_of(feet, rate)
    errors: list[float] = []
    extra = 0
    strides, duties, cadence = [], [], []
    stance_speeds = []
    for foot, points in feet.items():
        found = detect_contacts(points, rate, belt=belt)
        assert found.spans is not None
        events = np.sort(np.concatenate([found.touch_down_s, found.lift_off_s]))
        for time in truth[foot]:
            near = events[np.argmin(np.abs(events - time))] if len(events) else np.inf
            if abs(near - time) < 0.1:
                errors.append(1e3 * abs(float(near - time)))
        extra += max(0, len(events) - len(truth[foot]))
        strides.append(_stride(found.touch_down_s) / _stride(_ons(truth[foot], foot)) - 1.0)
        cadence.append(abs(1.0 / (1.0 + strides[-1]) - 1.0))
        duties.append(_duty(found.touch_down_s, found.lift_off_s) - _duty(_ons(truth[foot], foot), _offs(truth, foot)))
        for begin, end in found.spans:
            # The toe in the middle of the stances that are whole, or nearly so.
            first, last = max(begin, 0.0), min(end, len(points) - 1.0)
            inner = slice(int(first + 0.35 * (last - first)), int(first + 0.7 * (last - first)))
            if last - first > 0.3 * rate:
                times = np.arange(inner.stop - inner.start) / rate
                stance_speeds.append(float(np.linalg.norm(np.polyfit(times, points[inner, 1, :2], 1)[0])))
    speeds = np.array(stance_speeds)
    return {
        "plate_events_found": float(len(errors)), "plate_events_extra": float(extra),
        "plate_mean_ms": float(np.mean(errors)), "plate_worst_ms": float(np.max(errors)),
        "plate_stride_error": float(np.max(np.abs(strides))), "plate_cadence_error": float(np.max(cadence)),
        "plate_duty_error": float(np.max(np.abs(duties))), "belt_mm_s": belt.speed_mm_s,
        "belt_between_stances": float(np.max(np.abs(speeds / belt.speed_mm_s - 1.0))),
    }  # fmt: skip


def _ons(times: Floats, foot: str) -> Floats:
    """Both feet leave the plate first within the record."""
    return times[1::2]


def _offs(truth: dict[str, Floats], foot: str) -> Floats:
    return truth[foot][0::2]


def _stride(ons: Floats) -> float:
    return float(np.diff(ons).mean())


def _duty(ons: Floats, offs: Floats) -> float:
    """Share of the stride in stance, of the stride between two landings."""
    off = offs[(offs > ons[0]) & (offs < ons[1])]
    return float((off[0] - ons[0]) / (ons[1] - ons[0])) if len(off) else float("nan")
