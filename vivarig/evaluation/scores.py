"""Estimates and truths of a recording, brought to the same joints and frames, and the tables made of their scores."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calibration.foundation.arrays import Floats, Ints
from calibration.foundation.errors import InputError, nearest
from calibration.foundation.files import atomic_path, write_text
from calibration.foundation.hdf5_files import words_of
from calibration.foundation.result_files import open_results
from calibration.foundation.tables import read_toml
from calibration.foundation.trust import Trust
from capture.recordings.masks import first_frame, mask_cameras
from skeleton.analysis.scoring import JointScores
from skeleton.motion_files import JointMotion, MarkerSeries, read_motion

__all__ = ["JointSeries", "cage_estimate", "common_joints", "load_estimate", "load_truth", "write_score_table"]

PLOT_SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True, eq=False)
class JointSeries:
    """Named joints over time.

    Attributes:
        names: (J,).
        positions: (T, J, 3) mm, world; NaN not observed.
        rate_hz: frames per second, None where the file does not say.
        trust: (T,) 0 trusted, 1 doubtful, 2 lost; zeros for a truth.
        first: frame of the recording that the first row is, where only a part of it was worked on.
        turned_from: vertical axis of the file, where it says that it is not z: the positions were turned.
    """

    names: tuple[str, ...]
    positions: Floats
    rate_hz: float | None
    trust: Ints
    first: int = 0
    turned_from: str = ""


def _first(results: Path, count: int) -> int:
    """Return the recording frame of the first of ``count`` rows, which are those of the silhouettes."""
    path = results / "silhouettes.h5"
    if not path.is_file():
        return 0
    frames = mask_cameras(path)[1]
    if frames != count:
        raise InputError(
            f"{results}: results of different runs (frames: silhouettes.h5 {frames}, skeleton.h5 {count}); bring them "
            f"up to date with `vivarig run {results.parent}`"
        )
    return first_frame(path)


def load_estimate(results: Path) -> JointSeries:
    """Read the landmarks of the inverse-kinematics skeleton (``skeleton.h5``)."""
    with open_results(results / "skeleton.h5", stage="skeleton") as file:
        return JointSeries(
            words_of(file["landmark_names"]),
            np.asarray(file["landmarks"][:], dtype=np.float64),
            float(file.attrs["rate_hz"]),
            np.asarray(file["trust"][:], dtype=np.int64),
            _first(results, len(file["trust"])),
        )


def cage_estimate(results: Path) -> JointSeries | None:
    """Read the joints as carried by the cage, None where tracking left none."""
    with open_results(results / "skeleton.h5", stage="skeleton") as file:
        if "cage_joints" not in file:
            return None
        return JointSeries(
            words_of(file["cage_joint_names"]),
            np.asarray(file["cage_joints"][:], dtype=np.float64),
            float(file.attrs["rate_hz"]),
            np.asarray(file["trust"][:], dtype=np.int64),
            _first(results, len(file["trust"])),
        )


def load_truth(path: Path) -> JointSeries:
    """Read true joints: the studio's ``truth.h5``, or points of any motion file (C3D, TRC, CSV), turned to z up."""
    if path.suffix == ".h5" and path.is_file():
        with open_results(path, stage="simulate") as file:
            positions = np.asarray(file["landmarks/positions"][:], dtype=np.float64)
            return JointSeries(words_of(file["landmarks/names"]), positions, None, np.zeros(len(positions), np.int64))
    motion = read_motion(path)
    if isinstance(motion, JointMotion):
        motion = motion.as_markers()
    if not isinstance(motion, MarkerSeries) or motion.positions.shape[2] != 3:
        raise InputError(f"{path}: wanted 3D points as truth, this file holds something else")
    up = "" if motion.up == "z" else motion.up
    points = motion.with_z_up().positions if up else motion.positions
    return JointSeries(tuple(motion.names), points, motion.rate_hz, np.zeros(len(points), np.int64), turned_from=up)


def load_joint_map(path: Path | None) -> dict[str, str]:
    """Read a TOML of truth joint = "estimated joint" lines."""
    if path is None:
        return {}
    root = read_toml(path)
    return {key: root.text(key) for key in root.content}


def common_joints(
    estimate: JointSeries, truth: JointSeries, joint_map: Mapping[str, str], *, offset_frames: float = 0.0
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return the joints that both have, (T, J, 3) each, at the estimate's frames.

    With a joint map only its joints count; without one the joints of the same name. A truth of another rate is
    interpolated between its frames, never beyond them; ``offset_frames`` is the truth's frame at the recording's first.
    """
    if joint_map:
        for wanted, other in joint_map.items():
            for name, there, what in ((wanted, truth.names, "truth"), (other, estimate.names, "estimate")):
                if name not in there:
                    raise InputError(f"joint map: '{name}' is not in the {what}; {nearest(name, there)}")
        pairs = list(joint_map.items())
    else:
        pairs = [(name, name) for name in truth.names if name in estimate.names]
    if not pairs:
        raise InputError(
            f"truth and estimate share no joint name; truth has {', '.join(truth.names[:8])} ..., "
            f"the estimate {', '.join(estimate.names[:8])} ...; give a joint map with --map"
        )
    e = estimate.positions[:, [estimate.names.index(other) for _, other in pairs]]
    t = truth.positions[:, [truth.names.index(name) for name, _ in pairs]]
    return tuple(name for name, _ in pairs), e, _at_frames(t, truth, estimate, offset_frames)


def _at_frames(positions: Floats, truth: JointSeries, estimate: JointSeries, offset: float) -> Floats:
    count = len(estimate.positions)
    same_rate = truth.rate_hz is None or estimate.rate_hz is None or abs(truth.rate_hz / estimate.rate_hz - 1) < 1e-6
    if truth.rate_hz is None and offset == 0 and len(positions) < estimate.first + count:
        raise InputError(
            f"truth has {len(positions)} frames, the results are frames {estimate.first} to "
            f"{estimate.first + count - 1}; they must be of the same recording"
        )
    ratio = 1.0 if same_rate or truth.rate_hz is None or estimate.rate_hz is None else truth.rate_hz / estimate.rate_hz
    at = offset + ratio * (estimate.first + np.arange(count))
    low = np.floor(at + 1e-9).astype(np.int64)
    share = (at - low)[:, None, None]
    out = np.full((count, *positions.shape[1:]), np.nan)
    inside = (low >= 0) & (low < len(positions))
    high = np.minimum(low + 1, len(positions) - 1)
    exact = np.abs(share) < 1e-9
    blended = positions[low[inside]] * (1 - share[inside]) + positions[high[inside]] * share[inside]
    out[inside] = np.where(exact[inside], positions[low[inside]], blended)
    beyond = inside & (low + 1 >= len(positions)) & ~exact[:, 0, 0]
    out[beyond] = np.nan
    return out


def write_score_table(path: Path, scores: JointScores, trust: Ints) -> None:
    """Write the errors as CSV: a row per frame with its mean, trust and one column per joint, mm."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["frame", "valid", "trust", "mean_mm", *(f"{name}_mm" for name in scores.names)])
    rows = zip(scores.valid, trust, scores.per_frame, scores.errors, strict=True)
    for frame, (valid, trusted, mean, errors) in enumerate(rows):
        writer.writerow([frame, int(valid), int(trusted), *(_cell(value) for value in (mean, *errors))])
    write_text(path, text.getvalue())


def _cell(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else ""


def write_score_plot(path: Path, scores: JointScores, trust: Ints, title: str) -> None:
    """Draw the frame error over time and the mean error per joint, to PNG, PDF or SVG by suffix."""
    if path.suffix.lower() not in PLOT_SUFFIXES:
        raise InputError(f"--plot {path}: wanted a file name that ends in {', '.join(PLOT_SUFFIXES)}")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (over_time, by_joint) = pyplot.subplots(1, 2, figsize=(12, 4.5), width_ratios=(3, 2), layout="constrained")
    frames = np.arange(len(scores.valid))
    over_time.plot(frames, scores.per_frame, color="#1f6f8b")
    doubtful = trust > Trust.TRUSTED
    over_time.plot(frames[doubtful], scores.per_frame[doubtful], "x", color="#c0392b", label="not trusted")
    over_time.set(xlabel="frame", ylabel="mean joint error (mm)", title=title, ylim=(0, None))
    if doubtful.any():
        over_time.legend()
    by_joint.barh(scores.names, scores.per_joint, color="#1f6f8b")
    by_joint.invert_yaxis()
    by_joint.set(xlabel="mean error (mm)")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=120, metadata={"Software": None} if path.suffix == ".png" else None)
    pyplot.close(figure)


def score_lines(title: str, scores: JointScores, names: Sequence[str] = ()) -> list[str]:
    """Return the scores for people."""
    how = "" if scores.alignment == "none" else f", after {scores.alignment} alignment of each frame"
    relative = "" if scores.relative_to is None else f", relative to {scores.relative_to}"
    lines = [
        f"{title}: mean joint error {scores.mean:.2f} mm (median {scores.median:.2f}, SD {scores.sd:.2f}) over "
        f"{int(scores.valid.sum())} of {len(scores.valid)} frames, {len(scores.names)} joints{relative}{how}"
    ]
    worst = np.argsort(-np.nan_to_num(scores.per_joint))[:3]
    parts = [f"{scores.names[i]} {scores.per_joint[i]:.2f}" for i in worst]
    lines.append(f"  worst joints: {', '.join(parts)} mm; missing {100 * scores.missing_share:.1f} %")
    return lines
