"""Compression of the three published clips that exist: curve of ratio against distortion, peers, feet, time."""

from __future__ import annotations

import time
import zlib

import numpy as np
from scipy.interpolate import make_lsq_spline

from benchmarks.pose_space_parts.clips import Clip, load_clip
from calibration.geometry.transforms import (
    quaternion_from_rotation,
    rotation_from_quaternion,
)
from skeleton.pose_spaces.coding.motion_coding import code_motion, decode_motion, same_sides
from skeleton.pose_spaces.coding.vpg_files import pack_motion, unpack_motion
from skeleton.pose_spaces.principal_geodesics import learn_pose_space
from skeleton.pose_spaces.rotation_tree import place_rotations

#: Clip to published modes, ratio and distortion in % (Tournier et al. 2009).
PUBLISHED = {"09_06": (6, 18.0, 0.36), "17_10": (12, 61.0, 0.49), "85_12": (15, 97.0, 0.56)}


def distortion(truth: np.ndarray, shown: np.ndarray) -> float:
    """``100 |A - A'| / |A - E(A)|`` of joint places (T, J, 3)."""
    return float(100 * np.linalg.norm(truth - shown) / np.linalg.norm(truth - truth.mean(axis=0)))


def _relative(places: np.ndarray) -> np.ndarray:
    return np.asarray(places - places[:, :1])


def _stands(clip: Clip, places: np.ndarray) -> np.ndarray:
    """(T, 2) frames in which a toe stands: low and slow in the original."""
    out = []
    for name in ("LeftToeBase", "RightToeBase"):
        toe = places[:, clip.tree.index(name)]
        speed = np.linalg.norm(np.gradient(toe, axis=0), axis=1) * clip.rate_hz
        out.append((toe[:, 1] < np.percentile(toe[:, 1], 5) + 40.0) & (speed < 300.0))
    return np.array(out).T


def slide_mm(clip: Clip, places: np.ndarray, stands: np.ndarray) -> float:
    """Mean way, level, from the middle of its stand, of a toe that stands for 50 ms or more."""
    ways = []
    for column, name in enumerate(("LeftToeBase", "RightToeBase")):
        toe = places[:, clip.tree.index(name)][:, [0, 2]]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], stands[:, column], [0]])))
        for first, stop in zip(edges[::2], edges[1::2], strict=True):
            if stop - first >= 0.05 * clip.rate_hz:
                ways.append(np.linalg.norm(toe[first:stop] - toe[first:stop].mean(axis=0), axis=1))
    return float(np.concatenate(ways).mean()) if ways else float("nan")


def _decoded(clip: Clip, step: float) -> tuple[int, np.ndarray, int]:
    coded = code_motion(clip.tree, clip.rotations, clip.root, rate_hz=clip.rate_hz, step_mm=step)
    data = pack_motion(coded)
    rotations, root = decode_motion(unpack_motion(data, "memory"))
    return len(data), place_rotations(clip.tree, rotations, root).positions, coded.modes


def _spline_bytes(clip: Clip, truth: np.ndarray, wanted: float) -> int:
    """Bytes (4 a number) of cubic splines, one per channel (root place, quaternions' vectors), of that distortion."""
    times = np.arange(len(clip.root), dtype=float)
    quaternions = np.stack(
        [same_sides(quaternion_from_rotation(clip.rotations[:, j])) for j in range(len(clip.tree.names))], axis=1
    )
    channels = np.concatenate([clip.root, quaternions.reshape(len(times), -1)], axis=1)
    low, high = 4, len(times) - 4
    while high - low > max(1, low // 50):
        count = (low + high) // 2
        inner = np.linspace(0, len(times) - 1, count)[1:-1]
        knots = np.concatenate([[0.0] * 4, inner, [len(times) - 1.0] * 4])
        fitted = make_lsq_spline(times, channels, knots)(times)
        shown = place_rotations(
            clip.tree, rotation_from_quaternion(fitted[:, 3:].reshape(len(times), -1, 4)), fitted[:, :3]
        ).positions
        if distortion(truth, shown) > wanted:
            low = count
        else:
            high = count
    return 4 * (high + 2) * (3 + 3 * len(clip.tree.names))  # a quaternion counts as the 3 numbers it needs


def _best_of_modes(clip: Clip, truth: np.ndarray, modes: int) -> float:
    """Distortion of the exact root and the nearest pose of so many modes: what no coding of them can go below."""
    space = learn_pose_space(clip.rotations, clip.tree.names, body="cmu", use=clip.tree.names[1:]).truncated(modes)
    shown = space.rotations(space.coordinates(clip.rotations))
    shown[:, 0] = clip.rotations[:, 0]
    return distortion(truth, place_rotations(clip.tree, shown, clip.root).positions)


def compression() -> dict[str, object]:
    """Code the clips at the published distortion and print the curve."""
    clips: dict[str, dict[str, object]] = {}
    slowest = 0.0
    for name, (modes, ratio, wanted) in PUBLISHED.items():
        clip = load_clip(name)
        truth = place_rotations(clip.tree, clip.rotations, clip.root).positions
        plain = 4 * len(clip.root) * 3 * (len(clip.tree.names) + 1)
        stands = _stands(clip, truth)
        curve = []
        for step in (10.0, 20.0, 40.0, 80.0, 160.0):
            size, shown, _ = _decoded(clip, step)
            curve.append((round(plain / size, 1), round(distortion(truth, shown), 3)))
        low, high = 1.0, 400.0
        for _ in range(11):
            middle = float(np.sqrt(low * high))
            if distortion(truth, _decoded(clip, middle)[1]) > wanted:
                high = middle
            else:
                low = middle
        if (
            plain / _decoded(clip, low)[0] > ratio
        ):  # room left at the published distortion: finer, at the published ratio
            fine = 0.1 * low
            for _ in range(11):
                middle = float(np.sqrt(fine * low))
                if plain / _decoded(clip, middle)[0] > ratio:
                    low = middle
                else:
                    fine = middle
        size, shown, used = _decoded(clip, low)
        data = pack_motion(code_motion(clip.tree, clip.rotations, clip.root, rate_hz=clip.rate_hz, step_mm=low))
        begin = time.process_time()
        decode_motion(unpack_motion(data, "memory"))
        slowest = max(slowest, 1e3 * (time.process_time() - begin) / len(clip.root))
        channels = np.concatenate([clip.root, _vectors(clip)], axis=1).astype("<f4")
        clips[name] = {
            "ratio": plain / size, "distortion": distortion(truth, shown),
            "distortion_without_path": distortion(_relative(truth), _relative(shown)), "bytes": size, "modes": used,
            "published_ratio": ratio, "published_distortion": wanted, "curve": curve,
            "least_distortion_of_published_modes": _best_of_modes(clip, truth, modes),
            "slide_mm": slide_mm(clip, shown, stands), "slide_mm_original": slide_mm(clip, truth, stands),
            "gzip_ratio": plain / len(zlib.compress(channels.tobytes(), 9)),
            "zstd_ratio": plain / _zstd_bytes(channels.tobytes()),
            "spline_ratio": plain / _spline_bytes(clip, truth, wanted),
        }  # fmt: skip
    return {"compression": clips, "decode_ms": slowest}


def _zstd_bytes(data: bytes) -> float:
    """Bytes that Zstandard leaves at level 19; NaN where it is not installed."""
    try:
        import zstandard
    except ImportError:
        return float("nan")
    return float(len(zstandard.ZstdCompressor(level=19).compress(data)))


def _vectors(clip: Clip) -> np.ndarray:
    from calibration.geometry.transforms import vector_from_rotation

    return np.asarray(vector_from_rotation(clip.rotations).reshape(len(clip.root), -1))
