"""The rhythm of a gait from silhouettes alone, before any calibration.

Favreau et al. 2004 (Animal gaits from video, SCA): the binarised images, cropped to the subject, are taken apart into
principal components; a regular gait shows as components that repeat. Here the stride frequency is the one whose
multiples stand out as lines of all cameras' spectra, and the regularity r that of the two combinations of leading
components that repeat best. What moves slowly (a turn, a change of distance) is taken out first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import cv2
import numpy as np
from scipy.ndimage import gaussian_filter1d

from calibration.foundation.arrays import Bools, Floats
from calibration.foundation.errors import InputError

__all__ = ["Rhythm", "find_rhythm", "key_frames", "silhouette_components"]

SIDE = 32
"""Pixels of a cropped silhouette."""
_COMPONENTS = 6
"""Leading components that the frequency is looked for in."""
_HARMONICS = 3
_FASTEST_HZ = 12.0
"""Strides per second that no gait exceeds."""
_FEWEST = 4.0
"""Strides that a recording must hold, at least, to be called regular."""
_REGULAR = 0.6
"""Regularity from which a component repeats (Favreau et al.)."""
_LEFT_AND_RIGHT = 0.9
"""Regularity from which every second step is told from the others: chance reaches 0.6 or, in few strides, 0.8."""
_LEAST_LINE = 1e-3
"""Power below this share of the strongest line's is noise: its own ups and downs are no lines."""
_LEAST_SHARE = 0.005
"""Share of the silhouette that must repeat: legs are several times that, sniffing or grooming a tenth."""


@dataclass(frozen=True, eq=False)
class Rhythm:
    """How regular a gait is.

    Attributes:
        stride_hz: strides per second; NaN if there is no regular gait.
        camera: the camera that shows it best.
        regularity: r of the two combinations of its components that repeat best.
        phase: (T,) cycles since the first frame, finer than frames; NaN without a regular gait.
        components: (T, 2) what repeats best in that camera, unit variance.
    """

    stride_hz: float
    camera: str
    regularity: tuple[float, float]
    phase: Floats
    components: Floats

    @property
    def regular(self) -> bool:
        """Whether there is a regular gait."""
        return bool(np.isfinite(self.stride_hz))

    def words(self) -> str:
        """Say it in one line."""
        r = f"r = {self.regularity[0]:.2f} and {self.regularity[1]:.2f} in {self.camera}"
        return (
            f"regular gait, {self.stride_hz:.2f} strides per second, {r}" if self.regular else f"no regular gait ({r})"
        )


def silhouette_components(crops: Floats, cycles: float) -> Floats:
    """Return the leading principal components (T, 6) of cropped silhouettes (T, 32, 32), less what is slower than
    ``cycles`` per recording."""
    flat = _brisk(crops.reshape(len(crops), -1), cycles)
    u, s, _ = np.linalg.svd(flat - flat.mean(axis=0), full_matrices=False)
    return np.asarray(u[:, :_COMPONENTS] * s[:_COMPONENTS])


def _brisk(values: Floats, cycles: float) -> Floats:
    """Return values (T, ...) without what is slower than 0.6 of ``cycles`` per recording: half of that goes."""
    return values - gaussian_filter1d(values, 0.313 * len(values) / cycles, axis=0, mode="nearest")


def _crops(masks: Sequence[Bools] | Bools) -> Floats:
    """(T, 32, 32) silhouettes about their middle, of one size, turned to one direction."""
    frames = len(masks)
    middles, sizes, turns = np.zeros((frames, 2)), np.zeros(frames), np.zeros(frames, dtype=np.complex128)
    for t in range(frames):
        found = cv2.moments(np.asarray(masks[t], dtype=np.uint8), binaryImage=True)
        if found["m00"] > 0:
            middles[t] = found["m10"] / found["m00"], found["m01"] / found["m00"]
            sizes[t] = np.sqrt(found["m00"])
            # A direction has no sign: twice its angle has one.
            turns[t] = found["mu20"] - found["mu02"] + 2j * found["mu11"]
    seen = sizes > 0
    if not seen.any():
        raise InputError("rhythm: no silhouette in any frame")
    index = np.arange(frames)
    for values in (middles[:, 0], middles[:, 1], sizes):
        values[:] = np.interp(index, index[seen], values[seen])
    slow = frames / 8.0
    size = gaussian_filter1d(sizes, slow, mode="nearest")
    angle = 0.5 * np.unwrap(np.angle(gaussian_filter1d(turns.real, slow) + 1j * gaussian_filter1d(turns.imag, slow)))
    out = np.zeros((frames, SIDE, SIDE))
    for t in index[seen]:
        scale = SIDE / (3.2 * size[t])
        cosine, sine = scale * np.cos(angle[t]), scale * np.sin(angle[t])
        move = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0]])
        move[:, 2] = 0.5 * (SIDE - 1) - move[:, :2] @ middles[t]
        image = np.asarray(masks[t], dtype=np.uint8) * np.uint8(255)
        if scale < 0.7:
            image = cv2.GaussianBlur(image, (0, 0), 0.4 / scale)
        out[t] = cv2.warpAffine(image, move, (SIDE, SIDE), flags=cv2.INTER_LINEAR) / 255.0
    return out


def find_rhythm(masks: Mapping[str, Sequence[Bools] | Bools], rate_hz: float) -> Rhythm:
    """Judge the rhythm of silhouettes (T, H, W) of one or more cameras, of equal lengths."""
    if not masks:
        raise InputError("rhythm: wanted the silhouettes of one camera at least")
    crops = {camera: _crops(some) for camera, some in masks.items()}
    frames = len(next(iter(crops.values())))
    strides = _halved(crops, _strides(crops, rate_hz))
    scores = {camera: silhouette_components(some, strides) for camera, some in crops.items()}
    # By how they change, which tells multiples of the frequency finer and hears less of a slow turn.
    changes = [np.gradient(values, axis=0) for values in scores.values()]
    cycles = _refined(np.concatenate([v / max(float(np.linalg.norm(v)), 1e-12) for v in changes], axis=1), strides)
    repeating = {camera: _repeating(values, cycles) for camera, values in scores.items()}
    best = max(repeating, key=lambda camera: repeating[camera][0][1])
    regularity, shown = repeating[best]
    explained = sum(_explained(values, cycles) for values in scores.values())
    share = explained / max(sum(float((some**2).sum()) for some in crops.values()), 1e-300)
    if min(regularity) < _REGULAR or share < _LEAST_SHARE or cycles < _FEWEST * 0.95:
        return Rhythm(np.nan, best, regularity, np.full(frames, np.nan), shown)
    phase = _phase(np.concatenate([_weighed(*one) for one in repeating.values()], axis=1), cycles)
    slope = float(np.polyfit(np.arange(frames), phase, 1)[0])
    return Rhythm(slope * rate_hz, best, regularity, phase, shown)


def _weighed(regularity: tuple[float, float], shown: Floats) -> Floats:
    """(T, 2) what repeats in a camera, in units of what does not."""
    r = np.minimum(np.array(regularity), 0.995)
    return np.asarray(shown * (r / np.sqrt(1.0 - r**2)))


def _strides(crops: Mapping[str, Floats], rate_hz: float) -> float:
    """Return how many strides the recording holds, to some tenths, if it holds strides at all.

    Strides show as lines of the spectrum at their frequency and its multiples, and as none half-way between: a comb.
    Half of the frequency has lines missing, twice the frequency has lines between its own, and a slow turn, however
    large, has no lines at all.
    """
    frames = len(next(iter(crops.values())))
    most = min(frames / 6.0, frames / rate_hz * _FASTEST_HZ)
    at = np.arange(0.0, min((_HARMONICS + 0.5) * most, 0.5 * frames), 0.05)
    power = np.asarray(sum(_spectrum(some, at) for some in crops.values()))
    level = np.log(power + max(_LEAST_LINE * float(power[at >= 0.9 * _FEWEST].max(initial=0.0)), 1e-300))
    tried = np.arange(0.9 * _FEWEST, max(most, 0.9 * _FEWEST + 0.02), 0.02)
    contrast = np.zeros(len(tried))
    for harmonic in range(1, _HARMONICS + 1):
        below, line, above = (np.interp((harmonic + shift) * tried, at, level) for shift in (-0.5, 0.0, 0.5))
        contrast += (line - 0.5 * (below + above)) / harmonic
    return float(tried[int(np.argmax(contrast))])


def _halved(crops: Mapping[str, Floats], steps: float) -> float:
    """Return half of a frequency if that repeats in a view by itself: left and right look alike in the others."""
    half = 0.5 * steps
    if half < 0.9 * _FEWEST:
        return steps
    scores = [silhouette_components(some, half) for some in crops.values()]
    odd = max(_repeating(values, half, (1, 3))[0][0] for values in scores)
    return half if odd >= _LEFT_AND_RIGHT else steps


def _spectrum(crops: Floats, cycles: Floats) -> Floats:
    """Return the power of silhouettes (T, 32, 32) at frequencies in cycles per recording, less a slow cubic trend."""
    frames = len(crops)
    flat = crops.reshape(frames, -1)
    trend = np.linalg.qr(np.linspace(-1.0, 1.0, frames)[:, None] ** np.arange(4))[0]
    flat = flat - trend @ (trend.T @ flat)
    u, s, _ = np.linalg.svd(flat, full_matrices=False)
    window = np.hanning(frames + 2)[1:-1]
    waves = np.exp(-2j * np.pi * cycles[:, None] * np.arange(frames) / frames) * window
    return np.asarray((np.abs(waves @ (u[:, :20] * s[:20])) ** 2).sum(axis=1))


def _harmonics(frames: int, cycles: float, harmonics: Sequence[int] = (1, 2, 3)) -> Floats:
    """(T, 2 H) orthonormal sines and cosines of multiples of ``cycles`` per recording."""
    turn = 2 * np.pi * cycles * np.arange(frames)[:, None] / frames * np.array(harmonics)
    return np.asarray(np.linalg.qr(np.concatenate([np.cos(turn), np.sin(turn)], axis=1))[0])


def _explained(scores: Floats, cycles: float) -> float:
    """Return the variance of scores (T, K) that a frequency and its harmonics explain."""
    return float(((_harmonics(len(scores), cycles).T @ scores) ** 2).sum())


def _refined(scores: Floats, cycles: float) -> float:
    """Return the frequency near ``cycles`` that explains most, to a thousandth of a cycle."""
    for width in (0.3, 0.06, 0.012, 0.003):
        near = cycles + width * np.linspace(-1.0, 1.0, 11)
        cycles = float(near[int(np.argmax([_explained(scores, one) for one in near]))])
    return cycles


def _repeating(
    scores: Floats, cycles: float, harmonics: Sequence[int] = (1, 2, 3)
) -> tuple[tuple[float, float], Floats]:
    """Return r of the two combinations of components (T, 6) that repeat best, and these (T, 2) of unit variance.

    The components themselves are ordered by size, and a turn of the body is larger than its steps.
    """
    free, size, _ = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
    free = free[:, size > 1e-9 * max(float(size[0]), 1e-300)]
    if free.shape[1] < 2:
        return (0.0, 0.0), np.zeros((len(scores), 2))
    turned, shares, _ = np.linalg.svd(free.T @ _harmonics(len(scores), cycles, harmonics), full_matrices=False)
    shown = free @ turned[:, :2]
    return (float(shares[0]), float(shares[1])), shown / np.maximum(shown.std(axis=0), 1e-12)


def _phase(scores: Floats, cycles: float) -> Floats:
    """(T,) cycles since the first frame: the steady count, and what the components are early or late against it.

    Each harmonic's own phase, in a window of a stride, is compared with its mean pattern; they are weighed by power.
    """
    frames = len(scores)
    steady = cycles * np.arange(frames) / frames
    width = 0.5 * frames / cycles
    late, weight = np.zeros(frames), np.zeros(frames)
    for harmonic in (1, 2):
        carrier = np.exp(-2j * np.pi * harmonic * steady)[:, None] * scores
        local = gaussian_filter1d(carrier.real, width, axis=0, mode="nearest") + 1j * gaussian_filter1d(
            carrier.imag, width, axis=0, mode="nearest"
        )
        pattern = carrier.mean(axis=0)
        turn = (local * pattern.conj()).sum(axis=1)
        late += harmonic * np.abs(turn) * np.unwrap(np.angle(turn)) / (2 * np.pi)
        weight += harmonic**2 * np.abs(turn)
    return np.asarray(steady + late / np.maximum(weight, 1e-300))


def key_frames(rhythm: Rhythm, count: int) -> list[int]:
    """Return the frames to place key poses in: those that tell the poses of a cycle apart best.

    Favreau et al.: the subset of frames whose radial basis functions in the plane of the first two components have the
    least condition number; looked for among frames spread over one cycle, or over all without a regular gait.
    """
    points = rhythm.components
    if count < 2 or count > len(points):
        raise InputError(f"key frames: wanted 2 to {len(points)}, got {count}")
    chosen = np.arange(len(points))
    if rhythm.regular:
        middle = float(np.nanmedian(rhythm.phase))
        chosen = np.flatnonzero(np.abs(rhythm.phase - middle) <= 0.5)
    some = chosen[np.unique(np.linspace(0, len(chosen) - 1, max(count, min(len(chosen), 20))).round().astype(int))]
    apart = np.linalg.norm(points[some][:, None] - points[some][None], axis=2)
    basis = np.exp(-np.log(2.0) * apart**2)
    if count <= 4:
        subsets = combinations(range(len(some)), count)
        best = min(subsets, key=lambda one: float(np.linalg.cond(basis[np.ix_(one, one)])))
        return [int(some[index]) for index in best]
    picked = [0]
    while len(picked) < count:
        rest = [index for index in range(len(some)) if index not in picked]
        picked.append(min(rest, key=lambda i: float(np.linalg.cond(basis[np.ix_([*picked, i], [*picked, i])]))))
    return sorted(int(some[index]) for index in picked)
